// The budget of CircuitBreakerFailover: a share of all members', within a span, exact under concurrency.
#include "shm/retries.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace cb::shm {
namespace {

class Retries : public testing::Test {
  protected:
    bool take(Slot& failed, std::uint64_t allowed, core::Millis now, core::Millis span = 1600) {
        Slot* const members[] = {&slots_[0], nullptr, &slots_[1]};
        return take_retry(failed, members, 3, span, allowed, now);
    }
    std::unique_ptr<Slot[]> slots_ = std::make_unique<Slot[]>(2);
};

TEST_F(Retries, AreAsManyAsAllowedAndNoMore) {
    for (int i = 0; i < 5; ++i)
        EXPECT_TRUE(take(slots_[0], 5, 100'000));
    EXPECT_FALSE(take(slots_[0], 5, 100'000));
    EXPECT_TRUE(take(slots_[0], 6, 100'000)) << "one that was refused was not counted";
    EXPECT_FALSE(take(slots_[0], 0, 100'000));
}

TEST_F(Retries, OfAllMembersAreOneBudget) {
    EXPECT_TRUE(take(slots_[0], 2, 100'000));
    EXPECT_TRUE(take(slots_[1], 2, 100'000));
    EXPECT_FALSE(take(slots_[0], 2, 100'000));
    EXPECT_FALSE(take(slots_[1], 2, 100'000));
}

TEST_F(Retries, AreForgottenAfterTheSpan) {
    EXPECT_TRUE(take(slots_[0], 2, 100'000));
    EXPECT_TRUE(take(slots_[0], 2, 100'900));
    EXPECT_FALSE(take(slots_[0], 2, 101'500));
    EXPECT_TRUE(take(slots_[0], 2, 101'600)) << "the first has passed";
    EXPECT_FALSE(take(slots_[0], 2, 101'600)) << "the second hasn't";
    EXPECT_TRUE(take(slots_[0], 2, 200'000));
    EXPECT_TRUE(take(slots_[0], 2, 200'000)) << "an hour later none is left";
    EXPECT_FALSE(take(slots_[0], 2, 200'000));
}

TEST_F(Retries, OfAProcessWhoseClockReadingIsALittleLaterCount) {
    EXPECT_TRUE(take(slots_[0], 1, 100'000));
    EXPECT_FALSE(take(slots_[1], 1, 99'999)) << "in the tenth of the span before";
}

TEST_F(Retries, CountedInSpansOfAnotherLengthAreNotTakenForThoseOfNow) {
    EXPECT_TRUE(take(slots_[1], 2, 100'000, 160)) << "a member with a shorter window, or the same one before a restart";
    EXPECT_TRUE(take(slots_[1], 2, 100'000, 160));
    EXPECT_TRUE(take(slots_[0], 2, 500'000));
    EXPECT_TRUE(take(slots_[0], 2, 500'000));
    EXPECT_FALSE(take(slots_[0], 2, 500'000));
}

TEST_F(Retries, AtOnceAreNeverMoreThanAllowed) {
    constexpr std::uint64_t kAllowed = 100;
    std::vector<unsigned> taken(8);
    {
        std::vector<std::jthread> threads;
        for (std::size_t t = 0; t < taken.size(); ++t) {
            threads.emplace_back([&, t] {
                for (int i = 0; i < 2000; ++i)
                    taken[t] += take(slots_[t % 2], kAllowed, 100'000) ? 1U : 0U;
            });
        }
    }
    std::uint64_t total = 0;
    for (const unsigned some : taken)
        total += some;
    EXPECT_LE(total, kAllowed);
    while (take(slots_[0], kAllowed, 100'000))
        ++total;
    EXPECT_EQ(total, kAllowed) << "what was refused left nothing behind";
}

}  // namespace
}  // namespace cb::shm
