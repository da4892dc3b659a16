// Whether a member has waited in vain for a probe: due for one, and none taken, for a whole open time of its level.
#include <cstdint>

#include "vocabulary.hpp"

namespace cb::test {
namespace {

constexpr Millis kWordWrap = Millis{1} << 36;

Word half_open(std::uint8_t level = 0) {
    Word word = empty_round(3);
    word.level = level;
    return word;
}

Policy policy_of_30s() {
    Policy policy = default_policy();
    policy.open_time.base = 30'000;
    return policy;
}

/// Open times of 30, 60, 120, 240, 300 s.
const Policy kPolicy = policy_of_30s();

TEST(HasWaitedInVain, IsFalseUntilAnOpenTimeAfterTheOpenTimesEnd) {
    const Word word = open_until(kNow);
    for (const Millis at : {kNow - 30'000, kNow - 1, kNow, kNow + 1, kNow + 29'999}) {
        EXPECT_FALSE(has_waited_in_vain(word, kPolicy, 0, at)) << at;
    }
    EXPECT_TRUE(has_waited_in_vain(word, kPolicy, 0, kNow + 30'000));
    EXPECT_TRUE(has_waited_in_vain(word, kPolicy, 0, kNow + 365 * kDay));
}

TEST(HasWaitedInVain, BeginsAnewWithEveryProbe) {
    const Word word = open_until(kNow);
    EXPECT_TRUE(has_waited_in_vain(word, kPolicy, kNow - 60'000, kNow + 30'000)) << "that one was of an earlier round";
    EXPECT_FALSE(has_waited_in_vain(word, kPolicy, kNow + 1, kNow + 30'000));
    EXPECT_TRUE(has_waited_in_vain(word, kPolicy, kNow + 1, kNow + 30'001));
}

TEST(HasWaitedInVain, GoesByTheLastProbeWhileItIsHalfOpen) {
    const Word word = half_open();
    EXPECT_FALSE(has_waited_in_vain(word, kPolicy, kNow, kNow));
    EXPECT_FALSE(has_waited_in_vain(word, kPolicy, kNow, kNow + 29'999));
    EXPECT_TRUE(has_waited_in_vain(word, kPolicy, kNow, kNow + 30'000));
}

TEST(HasWaitedInVain, TakesTheOpenTimeOfTheLevelUpToTheMaximumWithoutJitter) {
    Policy policy = kPolicy;
    policy.open_time.jitter = 100;
    const Millis expected[] = {30'000, 60'000, 120'000, 240'000, 300'000, 300'000};
    for (std::uint8_t level = 0; level < 6; ++level) {
        for (const Word& word : {open_until(kNow, level), half_open(level)}) {
            EXPECT_FALSE(has_waited_in_vain(word, policy, kNow, kNow + expected[level] - 1)) << word.level;
            EXPECT_TRUE(has_waited_in_vain(word, policy, kNow, kNow + expected[level])) << word.level;
        }
    }
}

TEST(HasWaitedInVain, IsFalseInEveryOtherState) {
    for (const State state : {State::closed, State::recovering, State::forced_open, State::forced_closed}) {
        EXPECT_FALSE(has_waited_in_vain(sample(state), kPolicy, 0, kNow + kDay)) << name(state);
    }
}

TEST(HasWaitedInVain, TakesALaterClockReadingOfAnotherProcessForJustNow) {
    EXPECT_FALSE(has_waited_in_vain(half_open(), kPolicy, kNow + 5, kNow));
    EXPECT_FALSE(has_waited_in_vain(open_until(kNow - kDay), kPolicy, kNow + 5, kNow));
}

TEST(HasWaitedInVain, GoesOnWhereTheWordsTimeWraps) {
    for (Millis now = kWordWrap - 90'000; now < kWordWrap + 90'000; now += 1'009) {
        const Word word = open_until(now - 30'000);
        EXPECT_TRUE(has_waited_in_vain(word, kPolicy, 0, now)) << now;
        EXPECT_FALSE(has_waited_in_vain(word, kPolicy, 0, now - 1)) << now;
        EXPECT_FALSE(has_waited_in_vain(word, kPolicy, now - 1, now)) << now;
        EXPECT_FALSE(has_waited_in_vain(open_until(now + 10), kPolicy, 0, now)) << now;
    }
}

TEST(DueFor, IsTheTimeSinceTheOpenTimeEnded) {
    EXPECT_EQ(due_for(open_until(kNow), kNow - 1), 0U);
    EXPECT_EQ(due_for(open_until(kNow), kNow), 0U);
    EXPECT_EQ(due_for(open_until(kNow), kNow + 7), 7U);
    EXPECT_EQ(due_for(open_until(kWordWrap - 3), kWordWrap + 4), 7U);
    EXPECT_EQ(due_for(open_until(kNow), kNow + 700 * kDay), 700 * kDay);
}

}  // namespace
}  // namespace cb::test
