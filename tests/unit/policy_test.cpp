// The arithmetic of a policy: open time, ramp share, and what contradicts itself.
#include "core/policy.hpp"

#include <cmath>
#include <cstdint>
#include <string_view>

#include "vocabulary.hpp"

namespace cb::test {
namespace {

OpenTime open_time(Millis base, Millis max, std::uint32_t factor_milli, std::uint32_t jitter) {
    return {base, max, factor_milli, jitter, false};
}

// ---- Open time.

TEST(OpenTimeAt, IsTheBaseTimesTheFactorForEachLevelUpToTheMaximum) {
    const OpenTime defaults{};
    const Millis expected[] = {5'000, 10'000, 20'000, 40'000, 80'000, 160'000, 300'000};
    for (std::uint32_t level = 0; level <= kMaxLevel; ++level) {
        EXPECT_EQ(open_time_at(defaults, level, kNoJitter), expected[std::min(level, 6U)]) << level;
    }
}

TEST(OpenTimeAt, FollowsTheFactorWithinAPercent) {
    for (const Millis base : {Millis{500}, Millis{1000}, Millis{30'000}, Millis{3'600'000}}) {
        for (const std::uint32_t factor : {1000U, 1500U, 2000U, 3333U, 10'000U, 100'000U}) {
            for (std::uint32_t level = 0; level <= kMaxLevel; ++level) {
                const double exact =
                    std::min(static_cast<double>(kDay), static_cast<double>(base) * std::pow(factor / 1000.0, level));
                const auto got = static_cast<double>(open_time_at(open_time(base, kDay, factor, 0), level, kNoJitter));
                EXPECT_NEAR(got, exact, exact / 100) << base << " x " << factor << "/1000 ^ " << level;
            }
        }
    }
}

TEST(OpenTimeAt, GrowsAlsoWhereOneLevelIsLessThanAMillisecond) {
    // 100 ms x 1.005^31 = 116.7 ms
    EXPECT_NEAR(static_cast<double>(open_time_at(open_time(100, kDay, 1005, 0), 31, kNoJitter)), 116.7, 2);
}

TEST(OpenTimeAt, NeverShrinksFromLevelToLevel) {
    for (const std::uint32_t factor : {1000U, 1001U, 1999U, 100'000U}) {
        Millis before = 0;
        for (std::uint32_t level = 0; level <= kMaxLevel; ++level) {
            const Millis now = open_time_at(open_time(101, 100'000, factor, 0), level, kNoJitter);
            EXPECT_GE(now, before);
            before = now;
        }
        EXPECT_LE(before, 100'000U);
    }
}

TEST(OpenTimeAt, StaysWithinItsJitterAndReachesBothEndsOfIt) {
    for (const std::uint32_t jitter : {0U, 1U, 10U, 50U, 99U, 100U}) {
        const OpenTime time = open_time(60'000, 300'000, 2000, jitter);
        const Millis spread = 60'000 * jitter / 100;
        EXPECT_EQ(open_time_at(time, 0, 0), std::max(60'000 - spread, kMinOpenTime));
        EXPECT_EQ(open_time_at(time, 0, kNoJitter), 60'000U);
        EXPECT_LE(open_time_at(time, 0, kLargestDraw), 60'000 + spread);
        EXPECT_GE(open_time_at(time, 0, kLargestDraw) + 1, 60'000 + spread);
        Millis before = 0;
        for (std::uint64_t draw = 0; draw <= kLargestDraw; draw += 0x0100'0001) {
            const Millis now = open_time_at(time, 0, static_cast<std::uint32_t>(draw));
            EXPECT_GE(now, before);
            EXPECT_LE(now, 60'000 + spread);
            before = now;
        }
    }
}

TEST(OpenTimeAt, SpreadsItsJitterEvenly) {
    const OpenTime time{};  // 5 s +- 10 %
    std::uint64_t sum = 0;
    constexpr std::uint64_t kDraws = 1 << 16;
    for (std::uint32_t i = 0; i < kDraws; ++i)
        sum += open_time_at(time, 0, i << 16);
    EXPECT_NEAR(static_cast<double>(sum) / kDraws, 5'000, 2);
}

TEST(OpenTimeAt, TakesItsJitterFromTheCappedTimeSoThatItMayPassTheMaximum) {
    const OpenTime defaults{};
    EXPECT_EQ(open_time_at(defaults, 9, 0), 270'000U);
    EXPECT_NEAR(static_cast<double>(open_time_at(defaults, 9, kLargestDraw)), 330'000, 1);
}

TEST(OpenTimeAt, IsNeverLessThanATenthOfASecondNorMoreThanADay) {
    for (const Millis base : {Millis{0}, Millis{1}, Millis{100}, Millis{150}, kDay, 50 * kDay}) {
        for (const Millis max : {Millis{0}, Millis{100}, kDay, 50 * kDay}) {
            for (const std::uint32_t factor : {1000U, 2000U, 100'000U}) {
                for (const std::uint32_t draw : {0U, kNoJitter, kLargestDraw}) {
                    for (std::uint32_t level = 0; level <= kMaxLevel; ++level) {
                        const Millis time = open_time_at(open_time(base, max, factor, 100), level, draw);
                        ASSERT_GE(time, kMinOpenTime);
                        ASSERT_LE(time, kMaxOpenTime);
                    }
                }
            }
        }
    }
    EXPECT_EQ(open_time_at(open_time(kDay, kDay, 2000, 10), 3, kLargestDraw), kDay);
    EXPECT_EQ(open_time_at(open_time(100, 100, 2000, 10), 0, 0), 100U);
}

// ---- Ramp.

TEST(AllowedRetries, AreAShareOfTheCallsButThreeASecondAtLeast) {
    Failover failover;
    for (const auto& [budget, calls, span, allowed] :
         std::vector<std::tuple<std::uint32_t, std::uint64_t, Millis, std::uint64_t>>{{20, 0, 10'000, 30},
                                                                                      {20, 150, 10'000, 30},
                                                                                      {20, 155, 10'000, 31},
                                                                                      {20, 1'000'000, 10'000, 200'000},
                                                                                      {100, 7, 1000, 7},
                                                                                      {1, 200, 1000, 3},
                                                                                      {1, 400, 1000, 4},
                                                                                      {1, 0, 1500, 4}}) {
        failover.budget = budget;
        EXPECT_EQ(allowed_retries(failover, calls, span), allowed) << budget << " % of " << calls;
    }
}

TEST(AllowedRetries, AreNoneOfABudgetOfNothing) {
    Failover failover;
    failover.budget = 0;
    for (const std::uint64_t calls : {0U, 1U, 1'000'000U})
        EXPECT_EQ(allowed_retries(failover, calls, 10'000), 0U) << calls;
}

TEST(RampShare, RisesInAStraightLineFromItsFirstShareToAll) {
    for (std::uint32_t from = 0; from <= 100; ++from) {
        const RampUp ramp{60'000, from};
        const double first = 65'536.0 * from / 100;
        for (const Millis elapsed : {0U, 1U, 15'000U, 30'000U, 45'000U, 59'999U}) {
            const double exact = first + (65'536.0 - first) * static_cast<double>(elapsed) / 60'000;
            ASSERT_NEAR(ramp_share(ramp, elapsed), exact, 2) << from << " % after " << elapsed;
        }
    }
}

TEST(RampShare, NeverFalls) {
    for (const RampUp ramp : {RampUp{60'000, 10}, RampUp{100, 0}, RampUp{kDay, 99}}) {
        std::uint32_t before = 0;
        for (Millis elapsed = 0; elapsed <= ramp.duration; elapsed += std::max<Millis>(1, ramp.duration / 5000)) {
            const std::uint32_t share = ramp_share(ramp, elapsed);
            ASSERT_GE(share, before);
            ASSERT_LE(share, 65'536U);
            before = share;
        }
    }
}

TEST(RampShare, IsAllFromItsEndOnAndWhereThereIsNone) {
    EXPECT_EQ(ramp_share({60'000, 10}, 60'000), 65'536U);
    EXPECT_EQ(ramp_share({60'000, 10}, 60'001), 65'536U);
    EXPECT_EQ(ramp_share({60'000, 10}, ~Millis{0}), 65'536U);
    EXPECT_EQ(ramp_share({0, 10}, 0), 65'536U);
    EXPECT_EQ(ramp_share({60'000, 100}, 0), 65'536U);
    EXPECT_EQ(ramp_share({60'000, 0}, 0), 0U);
    EXPECT_LT(ramp_share({60'000, 10}, 59'999), 65'536U);
}

// ---- Defaults and contradictions.

TEST(Policy, HasTheDocumentedDefaults) {
    const Policy policy;
    EXPECT_EQ(policy.mode, Mode::off);
    EXPECT_EQ(policy.window, (Window{10'000, 0}));
    EXPECT_EQ(policy.minimum_calls, 20U);
    EXPECT_EQ(policy.failure_rate, 50U);
    EXPECT_EQ(policy.consecutive_failures, 5U);
    EXPECT_EQ(policy.slow_call.threshold, 0U);
    EXPECT_EQ(policy.slow_call.rate, 100U);
    EXPECT_FALSE(policy.slow_call.until_end);
    EXPECT_EQ(policy.failure_count, 0U);
    EXPECT_EQ(policy.open_time.base, 5'000U);
    EXPECT_EQ(policy.open_time.min, 1'000U);
    EXPECT_EQ(policy.open_time.max, 300'000U);
    EXPECT_EQ(policy.open_time.factor_milli, 2000U);
    EXPECT_EQ(policy.open_time.jitter, 10U);
    EXPECT_FALSE(policy.open_time.retry_after);
    EXPECT_EQ(policy.max_open, 100U);
    EXPECT_EQ(policy.probes.round, 3U);
    EXPECT_EQ(policy.probes.concurrent, 3U);
    EXPECT_EQ(policy.probes.tolerate, 0U);
    EXPECT_EQ(policy.probes.successes, 3U);
    EXPECT_EQ(policy.probes.max, 3U);
    EXPECT_EQ(policy.ramp_up.duration, 0U);
    EXPECT_EQ(policy.ramp_up.from, 10U);
    EXPECT_EQ(policy.probe_timeout, 0U);
    EXPECT_EQ(policy.max_concurrent, 0U);
    EXPECT_EQ(policy.settle, 10'000U);
    EXPECT_TRUE(policy.retry_after);
}

bool blames(const Policy& policy, std::string_view directive) {
    const char* const what = contradiction(policy);
    return what != nullptr && std::string_view{what}.find(directive) != std::string_view::npos;
}

TEST(Contradiction, IsNotFoundInTheDefaultsNorInWhatIsOff) {
    EXPECT_EQ(contradiction(Policy{}), nullptr);
    EXPECT_EQ(contradiction(default_policy()), nullptr);
    Policy nonsense = numb_policy();
    nonsense.window.calls = 5;
    nonsense.mode = Mode::off;
    EXPECT_EQ(contradiction(nonsense), nullptr);
}

TEST(Contradiction, IsAMinimumOfCallsThatTheWindowCanNeverHold) {
    for (const Mode mode : {Mode::on, Mode::observe}) {
        Policy policy = default_policy();
        policy.mode = mode;
        policy.window.calls = 20;
        EXPECT_EQ(contradiction(policy), nullptr);
        policy.window.calls = 19;
        EXPECT_TRUE(blames(policy, "CircuitBreakerMinimumCalls"));
        EXPECT_TRUE(blames(policy, "CircuitBreakerWindow"));
    }
}

TEST(Contradiction, IsNoMinimumOfCallsWhereNoRateIsWatched) {
    Policy policy = default_policy();
    policy.window.calls = 10;
    policy.failure_rate = 0;
    EXPECT_EQ(contradiction(policy), nullptr) << "consecutive failures need no minimum of calls";
}

TEST(Contradiction, IsNotFoundWhereOneWayToTripIsLeft) {
    Policy policy = numb_policy();
    policy.consecutive_failures = 5;
    EXPECT_EQ(contradiction(policy), nullptr);
    policy = numb_policy();
    policy.failure_rate = 50;
    EXPECT_EQ(contradiction(policy), nullptr);
    policy = numb_policy();
    policy.failure_count = 10;
    EXPECT_EQ(contradiction(policy), nullptr);
    policy = numb_policy();
    policy.slow_call.threshold = 200;
    EXPECT_EQ(contradiction(policy), nullptr);
}

TEST(Contradiction, IsALimitOfSlowCallsWithoutARateThatWouldBeTheOnlyWayToTrip) {
    Policy policy = numb_policy();
    policy.slow_call = {200, 0};
    EXPECT_TRUE(blames(policy, "CircuitBreakerSlowCall"));
    EXPECT_TRUE(blames(policy, "CircuitBreakerFailureCount"));
    EXPECT_EQ(contradiction(policy, true), nullptr) << "a rule may say fatal";
    policy.consecutive_failures = 5;
    policy.window.calls = 10;
    EXPECT_EQ(contradiction(policy), nullptr) << "without a rate it needs no minimum of calls";
}

TEST(Contradiction, IsACountOfFailuresThatTheWindowCanNeverHold) {
    Policy policy = numb_policy();
    policy.failure_count = 30;
    policy.window.calls = 29;
    EXPECT_TRUE(blames(policy, "CircuitBreakerFailureCount"));
    EXPECT_TRUE(blames(policy, "CircuitBreakerWindow"));
    policy.window.calls = 30;
    EXPECT_EQ(contradiction(policy), nullptr);
    policy.failure_count = 5;
    policy.window.calls = 19;
    EXPECT_TRUE(blames(policy, "CircuitBreakerMinimumCalls"));
    policy.window.calls = 0;
    policy.failure_count = kMaxFailureCount;
    EXPECT_EQ(contradiction(policy), nullptr) << "a time may have any number of calls";
}

}  // namespace
}  // namespace cb::test
