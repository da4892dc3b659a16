// What the figures of a flapping breaker suggest.
#include "core/flapping.hpp"

#include "vocabulary.hpp"

namespace cb::test {
namespace {

/// Opened four times for no reason that a setting could change.
Flapping four_openings() {
    Flapping figures;
    figures.openings = 4;
    figures.span = 300'000;
    figures.all_openings = 4;
    return figures;
}

Suggestions suggested(Flapping figures, const Policy& policy = default_policy()) {
    suggest(figures, policy);
    return figures.suggestions;
}

TEST(Flaps, SuggestNothingByThemselves) {
    EXPECT_EQ(suggested(four_openings()), Suggestions{});
}

TEST(Flaps, CarryTheLimitsInForce) {
    Policy policy = default_policy();
    policy.slow_call = {2000, 40};
    policy.probe_timeout = 700;
    Flapping figures = four_openings();
    suggest(figures, policy);
    EXPECT_EQ(figures.open_time, 5'000U);
    EXPECT_EQ(figures.failure_rate, 50U);
    EXPECT_EQ(figures.consecutive_failures, 5U);
    EXPECT_EQ(figures.slow_call.threshold, 2000U);
    EXPECT_EQ(figures.slow_call.rate, 40U);
    EXPECT_EQ(figures.probe_timeout, 700U);
}

TEST(Flaps, WhoseRecoveryTookLongerThanTheOpenTimeWantALongerOne) {
    Flapping figures = four_openings();
    figures.recovery = 5'000;
    EXPECT_FALSE(suggested(figures).open_time);
    figures.recovery = 5'001;
    EXPECT_TRUE(suggested(figures).open_time) << "so far";
    figures.is_recovered = true;
    EXPECT_TRUE(suggested(figures).open_time);
}

TEST(Flaps, WhoseProbesFailByTheirTimeoutWantMoreTimeForProbesAndNoLongerOpenTime) {
    Policy policy = default_policy();
    policy.probe_timeout = 1000;
    Flapping figures = four_openings();
    figures.recovery = 100'000;
    figures.failed_probes = 3;
    figures.timed_out_probes = 1;
    EXPECT_FALSE(suggested(figures, policy).probe_timeout);
    figures.timed_out_probes = 2;
    EXPECT_TRUE(suggested(figures, policy).probe_timeout);
    EXPECT_FALSE(suggested(figures, policy).open_time);
    figures.is_recovered = true;
    EXPECT_TRUE(suggested(figures, policy).open_time) << "but a recovery that was seen is one";
}

TEST(Flaps, WhoseProbesAreALittleTooSlowWantAnotherLimitForSlowCalls) {
    Policy policy = default_policy();
    policy.slow_call = {1000, 100};
    Flapping figures = four_openings();
    figures.failed_probes = 4;
    figures.slow_probes = 1;
    EXPECT_FALSE(suggested(figures, policy).slow_call);
    figures.slow_probes = 2;
    EXPECT_TRUE(suggested(figures, policy).slow_call);
}

TEST(Flaps, AreJustAboveALimitUpToAQuarterAndATenthOfASecond) {
    EXPECT_FALSE(is_just_above(999, 1000));
    EXPECT_TRUE(is_just_above(1000, 1000));
    EXPECT_TRUE(is_just_above(1350, 1000));
    EXPECT_FALSE(is_just_above(1351, 1000));
    EXPECT_FALSE(is_just_above(0, 0));
    EXPECT_FALSE(is_just_above(50, 0)) << "no limit";
}

// --- thresholds: 20 calls at least, 50 percent ---

Flapping with_failures(std::uint64_t failures, std::uint64_t calls) {
    Flapping figures = four_openings();
    figures.failures = failures;
    figures.calls = calls;
    return figures;
}

TEST(Flaps, ByAFailureRateCloseToTheUsualOneWantAHigherOne) {
    const auto is_suggested = [](std::uint64_t percent, std::uint32_t minimum_calls = 20) {
        Policy policy = default_policy();
        policy.minimum_calls = minimum_calls;
        Flapping figures = with_failures(percent * 100, 10'000);
        figures.by_failure_rate = 1;
        return suggested(figures, policy).failure_rate;
    };
    EXPECT_FALSE(is_suggested(5));
    EXPECT_FALSE(is_suggested(20));
    EXPECT_TRUE(is_suggested(25)) << "20 calls show 25 +- 29 percent";
    EXPECT_TRUE(is_suggested(45));
    EXPECT_TRUE(is_suggested(55));
    EXPECT_FALSE(is_suggested(99)) << "it is down, then";
    EXPECT_FALSE(is_suggested(100));
    EXPECT_FALSE(is_suggested(25, 100)) << "100 calls show it more exactly";
    EXPECT_TRUE(is_suggested(40, 100));
}

TEST(Flaps, ByAnotherReasonOrAfterTooFewCallsSayNothingOfTheFailureRate) {
    EXPECT_FALSE(suggested(with_failures(4000, 10'000)).failure_rate);
    Flapping figures = with_failures(39, 99);
    figures.by_failure_rate = 4;
    EXPECT_FALSE(suggested(figures).failure_rate);
    figures = with_failures(40, 100);
    figures.by_failure_rate = 4;
    EXPECT_TRUE(suggested(figures).failure_rate);
}

TEST(Flaps, ByFailuresInARowThatComeByChanceWantMoreOfThem) {
    const auto is_suggested = [](std::uint64_t failures, std::uint64_t calls, std::uint64_t openings) {
        Flapping figures = with_failures(failures, calls);
        figures.by_consecutive_failures = 1;
        figures.all_openings = openings;
        return suggested(figures).consecutive_failures;
    };
    EXPECT_TRUE(is_suggested(3000, 10'000, 17)) << "0.3^5: 17 times in 10,000 calls";
    EXPECT_TRUE(is_suggested(3000, 10'000, 34));
    EXPECT_FALSE(is_suggested(3000, 10'000, 35)) << "twice as often as that is no chance";
    EXPECT_FALSE(is_suggested(100, 10'000, 4)) << "0.01^5";
    EXPECT_FALSE(is_suggested(100, 100, 4)) << "it is down";
    EXPECT_FALSE(is_suggested(30, 99, 1)) << "too few calls";
}

TEST(Flaps, ByASlowRateCloseToTheUsualOneWantAnotherLimit) {
    Policy policy = default_policy();
    policy.slow_call = {500, 60};
    Flapping figures = with_failures(0, 1000);
    figures.by_slow_rate = 2;
    figures.slow_calls = 20;
    EXPECT_FALSE(suggested(figures, policy).slow_call);
    figures.slow_calls = 450;
    EXPECT_TRUE(suggested(figures, policy).slow_call);
}

TEST(Flaps, ThatComeRightAfterRecoveriesWantARampUnlessThereIsOne) {
    Policy policy = default_policy();
    Flapping figures = four_openings();
    figures.after_recovery = 1;
    EXPECT_FALSE(suggested(figures, policy).ramp_up);
    figures.after_recovery = 2;
    EXPECT_TRUE(suggested(figures, policy).ramp_up);
    policy.ramp_up.duration = 60'000;
    EXPECT_FALSE(suggested(figures, policy).ramp_up);
}

}  // namespace
}  // namespace cb::test
