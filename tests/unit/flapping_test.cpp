// What the figures of a flapping breaker suggest, and the words for it.
#include "core/flapping.hpp"

#include <string>

#include "vocabulary.hpp"

namespace cb::test {
namespace {

/// Opened four times for no reason that a setting could change, under the default policy.
struct Flaps : testing::Test {
    Flaps() {
        figures.openings = 4;
        figures.all_openings = 4;
        figures.span = 300'000;
    }
    [[nodiscard]] std::string text() const { return FlappingText(figures, policy).text; }
    [[nodiscard]] std::string suggested() const {
        const std::string summary = FlappingText(figures, policy).summary;
        const std::string plain = "opened 4 times within 10 of its open times";
        EXPECT_TRUE(summary.starts_with(plain)) << summary;
        return summary.size() > plain.size() ? summary.substr(plain.size() + 2) : "";
    }
    /// The same with so many of its calls failed.
    std::string suggested_with(std::uint64_t failures, std::uint64_t calls) {
        figures.failures = failures;
        figures.calls = calls;
        return suggested();
    }

    Flapping figures;
    Policy policy = default_policy();
};

TEST_F(Flaps, SuggestNothingByThemselves) {
    EXPECT_EQ(suggested(), "");
    EXPECT_EQ(text(),
              "opened 4 times within 10 of its open times (300.0 s); the figures suggest no other setting: the member "
              "itself comes and goes");
}

TEST_F(Flaps, WhoseRecoveryTookLongerThanTheOpenTimeWantALongerOne) {
    figures.recovery = 5'000;
    EXPECT_EQ(suggested(), "");
    figures.recovery = 5'001;
    EXPECT_EQ(suggested(), "CircuitBreakerOpenTime");
    EXPECT_TRUE(
        text().ends_with("; it has been failing for 5.0 s now, longer than its open time of 5.0 s: if it needs "
                         "so long to recover, raise CircuitBreakerOpenTime"))
        << text();
    figures.is_recovered = true;
    EXPECT_EQ(suggested(), "CircuitBreakerOpenTime");
    EXPECT_TRUE(
        text().ends_with("; it took 5.0 s to be well again, longer than its open time of 5.0 s: raise "
                         "CircuitBreakerOpenTime"))
        << text();
}

TEST_F(Flaps, WhoseProbesFailByTheirTimeoutWantMoreTimeForProbesAndNoLongerOpenTime) {
    policy.probe_timeout = 700;
    figures.recovery = 100'000;
    figures.failed_probes = 3;
    figures.timed_out_probes = 1;
    EXPECT_EQ(suggested(), "CircuitBreakerOpenTime");
    figures.timed_out_probes = 2;
    EXPECT_EQ(suggested(), "CircuitBreakerProbeTimeout");
    EXPECT_TRUE(
        text().ends_with("; 2 of its last 3 failed probes ran into the timeout for probes: if it is no more "
                         "than slow, raise CircuitBreakerProbeTimeout (700 ms)"))
        << text();
    figures.is_recovered = true;
    EXPECT_EQ(suggested(), "CircuitBreakerOpenTime, CircuitBreakerProbeTimeout") << "a recovery that was seen is one";
}

TEST_F(Flaps, WhoseProbesAreALittleTooSlowWantAnotherLimitForSlowCalls) {
    policy.slow_call = {1000, 100};
    figures.recovery = 100'000;
    figures.failed_probes = 4;
    figures.slow_probes = 1;
    EXPECT_EQ(suggested(), "CircuitBreakerOpenTime");
    figures.slow_probes = 2;
    EXPECT_EQ(suggested(), "CircuitBreakerSlowCall");
    EXPECT_TRUE(
        text().ends_with("; 2 of its last 4 failed probes were only a little too slow: raise the time of "
                         "CircuitBreakerSlowCall (1.0 s)"))
        << text();
}

TEST_F(Flaps, AreJustAboveALimitUpToAQuarterAndATenthOfASecond) {
    for (const Millis latency : {999U, 1351U})
        EXPECT_FALSE(is_just_above(latency, 1000)) << latency;
    for (const Millis latency : {1000U, 1350U})
        EXPECT_TRUE(is_just_above(latency, 1000)) << latency;
    for (const Millis latency : {0U, 50U})
        EXPECT_FALSE(is_just_above(latency, 0)) << "no limit";
}

// --- thresholds: 20 calls at least, 50 percent ---

TEST_F(Flaps, ByAFailureRateCloseToTheUsualOneWantAHigherOne) {
    figures.by_failure_rate = true;
    for (const std::uint64_t far : {5U, 20U, 99U, 100U})
        EXPECT_EQ(suggested_with(far, 100), "") << far;
    for (const std::uint64_t close : {25U, 45U, 55U})
        EXPECT_EQ(suggested_with(close, 100), "CircuitBreakerFailureRate") << close << ": 20 calls show 25 +- 29";
    EXPECT_EQ(suggested_with(39, 99), "") << "too few calls";
    policy.minimum_calls = 100;
    EXPECT_EQ(suggested_with(2500, 10'000), "") << "100 calls show it more exactly";
    EXPECT_EQ(suggested_with(4000, 10'000), "CircuitBreakerFailureRate");
    EXPECT_TRUE(
        text().ends_with("; 40.0 % of all its calls fail, which is close to the limit of 50 %: raise "
                         "CircuitBreakerFailureRate, or look at more calls (CircuitBreakerMinimumCalls)"))
        << text();
    figures.by_failure_rate = false;
    EXPECT_EQ(suggested(), "") << "it opened for another reason";
}

TEST_F(Flaps, ByFailuresInARowThatComeByChanceWantMoreOfThem) {
    figures.by_consecutive_failures = true;
    figures.all_openings = 34;  // 0.3^5 comes 17 times in 10,000 calls
    EXPECT_EQ(suggested_with(3000, 10'000), "CircuitBreakerConsecutiveFailures");
    EXPECT_TRUE(
        text().ends_with("; 30.0 % of all its calls fail, so that 5 in a row come about by chance: raise "
                         "CircuitBreakerConsecutiveFailures"))
        << text();
    figures.all_openings = 35;
    EXPECT_EQ(suggested_with(3000, 10'000), "") << "more than twice as often as that is no chance";
    figures.all_openings = 4;
    EXPECT_EQ(suggested_with(100, 10'000), "") << "0.01^5";
    EXPECT_EQ(suggested_with(100, 100), "") << "it is down";
    EXPECT_EQ(suggested_with(30, 99), "") << "too few calls";
}

TEST_F(Flaps, ByASlowRateCloseToTheUsualOneWantAnotherLimit) {
    policy.slow_call = {500, 60};
    figures.by_slow_rate = true;
    figures.slow_calls = 20;
    EXPECT_EQ(suggested_with(0, 1000), "");
    figures.slow_calls = 450;
    EXPECT_EQ(suggested_with(0, 1000), "CircuitBreakerSlowCall");
    EXPECT_TRUE(
        text().ends_with("; 45.0 % of all its calls are slow, which is close to the limit of 60 %: raise the "
                         "time or the rate of CircuitBreakerSlowCall"))
        << text();
}

TEST_F(Flaps, ThatComeRightAfterRecoveriesWantARampUnlessThereIsOne) {
    figures.after_recovery = 1;
    EXPECT_EQ(suggested(), "");
    figures.after_recovery = 2;
    EXPECT_EQ(suggested(), "CircuitBreakerRampUp");
    EXPECT_TRUE(
        text().ends_with("; it opens again soon after it is back: let its load grow slowly "
                         "(CircuitBreakerRampUp)"))
        << text();
    policy.ramp_up.duration = 60'000;
    EXPECT_EQ(suggested(), "");
}

}  // namespace
}  // namespace cb::test
