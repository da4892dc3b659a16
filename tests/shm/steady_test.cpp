// Hours of ordinary traffic with a rare failure, and nights without traffic, through the verbs of a member. (The same
// for windows of time is in window_test.cpp.)
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "executors.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

constexpr core::Millis kHour = 3600ULL * core::kMillisPerSecond;

core::Policy of_last_calls(std::uint32_t calls) {
    core::Policy rules = policy();
    rules.window = {0, calls};
    rules.minimum_calls = 20;
    rules.failure_rate = 30;
    return rules;
}

/// One call in twenty fails, at most two of any ten.
class RareFailures {
  public:
    bool next() {
        const bool fails = random_.below(20) == 0 && std::count(last_.begin(), last_.end(), true) < 2;
        last_.push_back(fails);
        if (last_.size() > 10) last_.pop_front();
        return fails;
    }

  private:
    Random random_{14};
    std::deque<bool> last_;
};

TEST(SteadyTraffic, WithRareFailuresForHoursNeverTripsAWindowOfCalls) {
    for (const std::uint32_t calls : {20U, 100U, 4080U}) {
        World world;
        const core::Policy rules = of_last_calls(calls);
        shm::Slot& slot = world.add("http://a", rules);
        RareFailures failures;
        std::deque<bool> model;
        while (world.board.now < kStart + 8 * kHour) {
            world.pass(200);
            const bool fails = failures.next();
            ASSERT_TRUE(call(slot, rules, world.parent(), fails ? kBad : kGood)) << calls;
            model.push_back(fails);
            if (model.size() > calls) model.pop_front();
            if (model.size() % 97 != 0 && model.size() < calls) continue;
            const core::Sums sums = shm::sums_now(slot, rules, world.parent());
            ASSERT_EQ(sums.calls, model.size());
            ASSERT_EQ(sums.failures, std::count(model.begin(), model.end(), true));
        }
        EXPECT_EQ(core::generation_of(slot.word), 0U);
        EXPECT_EQ(word_of(slot).level, 0U);
    }
}

TEST(SteadyTraffic, WithRareSlowCallsForHoursNeverTripsEither) {
    World world;
    core::Policy rules = policy();
    rules.minimum_calls = 10;
    rules.slow_call = {300, 50};
    shm::Slot& slot = world.add("http://a", rules);
    RareFailures slow;
    while (world.board.now < kStart + 8 * kHour) {
        world.pass(400);
        shm::Ending ending = kGood;
        ending.slow = slow.next();
        ASSERT_TRUE(call(slot, rules, world.parent(), ending));
    }
    EXPECT_EQ(core::generation_of(slot.word), 0U);
}

TEST(SteadyTraffic, AfterATripLeavesNothingOfItInTheNewWindowNorInTheNextMorning) {
    World world;
    core::Policy rules = policy();
    rules.minimum_calls = 20;
    shm::Slot& slot = world.add("http://a", rules);
    for (int n = 0; n < 5; ++n)
        (void)call(slot, rules, world.parent(), kBad);
    ASSERT_EQ(state_of(slot), core::State::open);
    ASSERT_TRUE(recovers(world, slot, rules));
    for (int n = 0; n < 4; ++n)  // an evening of failures that are not enough, and at last a success
        ASSERT_TRUE(call(slot, rules, world.parent(), kBad));
    ASSERT_TRUE(call(slot, rules, world.parent(), kGood));
    for (const core::Millis night : {10 * kHour, 3 * core::kDay}) {
        world.pass(night);
        ASSERT_TRUE(call(slot, rules, world.parent(), kBad));
        EXPECT_EQ(state_of(slot), core::State::closed);
        EXPECT_EQ(shm::sums_now(slot, rules, world.parent()).failures, 1U);
    }
}

}  // namespace
}  // namespace cb::test
