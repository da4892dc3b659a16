// What the README says of the simulation, as far as it is a claim.
#include <gtest/gtest.h>

#include <map>

#include "bench/recovery.hpp"
#include "bench/rolling.hpp"

namespace cb::test {
namespace {

using namespace cb::bench;

class Recovery : public testing::Test {
  protected:
    static const Result& of(bool has_breaker, bool has_ramp, Failover failover) {
        static std::map<int, Result> results;
        const int key = (has_breaker ? 100 : 0) + (has_ramp ? 10 : 0) + static_cast<int>(failover);
        const auto found = results.find(key);
        if (found != results.end()) return found->second;
        return results.emplace(key, run({has_breaker, has_ramp, failover})).first->second;
    }
    static std::uint32_t failed(const Result& result) { return result.failed_before + result.failed_after; }

    const Result& none = of(false, false, Failover::off);
    const Result& flat = of(true, false, Failover::off);
    const Result& ramp = of(true, true, Failover::off);
};

TEST_F(Recovery, OfOneSettingIsAlwaysTheSame) {
    const Result again = run({true, true, Failover::off});
    EXPECT_EQ(again.requests, ramp.requests);
    for (std::uint32_t s = 0; s < kSeconds; ++s) {
        ASSERT_EQ(again.second[s].calls, ramp.second[s].calls) << s;
        ASSERT_EQ(again.second[s].failed, ramp.second[s].failed) << s;
    }
}

TEST_F(Recovery, BeginsAndEndsWithThreeMembersThatShareTheLoadAndFailNothing) {
    for (const Result* result : {&none, &flat, &ramp}) {
        for (const auto& [from, to] : {std::pair{5U, 20U}, std::pair{150U, 180U}}) {
            std::uint32_t calls = 0;
            for (std::uint32_t s = from; s < to; ++s) {
                calls += result->second[s].calls;
                EXPECT_EQ(result->second[s].failed, 0U) << s;
            }
            EXPECT_NEAR(calls / (to - from), kRate / kMembers, 5);
        }
        EXPECT_EQ(result->requests, none.requests);
    }
}

TEST_F(Recovery, WithABreakerFailsATenthOfWhatFailsWithout) {
    EXPECT_GT(none.failed_after, 1000U);
    EXPECT_LT(failed(flat) * 10, failed(none));
    EXPECT_GE(none.peak_load, 400U);
    EXPECT_LT(flat.peak_load, none.peak_load);
}

TEST_F(Recovery, WithoutARampFloodsTheMemberUntilItOpensAgain) {
    EXPECT_GT(flat.failed_after, 100U);
    EXPECT_GT(flat.peak_load, 200U);
    EXPECT_GT(flat.openings, ramp.openings);
}

TEST_F(Recovery, WithARampFailsNothingAndNeverGivesItMoreThanItCanServe) {
    EXPECT_EQ(ramp.failed_after, 0U);
    EXPECT_LT(ramp.peak_load, 100U);
    EXPECT_LT(ramp.longest_queue * 10, flat.longest_queue);
    EXPECT_GT(ramp.full_share_after, flat.full_share_after) << "which takes its time";
}

TEST_F(Recovery, LosesNoProbesWithFailover) {
    for (const bool has_ramp : {false, true}) {
        const Result& off = of(true, has_ramp, Failover::off);
        const Result& probes = of(true, has_ramp, Failover::probes);
        EXPECT_GT(probes.failovers, 0U);
        EXPECT_EQ(failed(probes) + probes.failovers, failed(off));
        EXPECT_EQ(probes.peak_load, off.peak_load);
    }
}

TEST_F(Recovery, SavesWhatTimedOutOnlyIfFailoverHasMoreTimeThanTheTimeout) {
    for (const bool has_ramp : {false, true}) {
        EXPECT_EQ(failed(of(true, has_ramp, Failover::all)), failed(of(true, has_ramp, Failover::probes)));
        EXPECT_EQ(failed(of(true, has_ramp, Failover::all_in_5s)), 0U);
    }
}

/// One run as the table tells it: requests lost, and how long each member was without traffic, ms.
struct Told {
    std::uint32_t lost;
    std::vector<std::uint32_t> idle;
    friend bool operator==(const Told&, const Told&) = default;
};
void PrintTo(const Told& told, std::ostream* out) {
    *out << told.lost << " lost, idle";
    for (const std::uint32_t idle : told.idle)
        *out << ' ' << idle;
}
Told told(const RollingResult& result) {
    return {result.lost, result.idle};
}
/// 6, 3 and 0.5 s apart, and alone.
std::vector<Told> rolled(const Rollout& rollout) {
    std::vector<Told> all;
    for (const std::uint32_t apart : kApart)
        all.push_back(told(roll(of_three(rollout, apart))));
    all.push_back(told(roll(alone(rollout))));
    return all;
}
std::vector<std::uint32_t> lost(const std::vector<Told>& all) {
    std::vector<std::uint32_t> numbers;
    for (const Told& each : all)
        numbers.push_back(each.lost);
    return numbers;
}

TEST(RollingRestarts, CostAsManyRequestsAsTheReadmeSays) {
    using All = std::vector<Told>;
    EXPECT_EQ(rolled({.guard = Guard::stock}),
              (All{{0, {14012, 6010, 58026}}, {0, {8010, 3010, 58021}}, {0, {3011, 510, 58016}}, {447, {11}}}));
    EXPECT_EQ(rolled({.guard = Guard::breaker_as_once}), (All{{4292, {28054, 28058, 28045}},
                                                              {6101, {28054, 28047, 28042}},
                                                              {7625, {28054, 28037, 28047}},
                                                              {9072, {28525}}}));
    EXPECT_EQ(rolled({.guard = Guard::breaker_without_early}),
              (All{{0, {3056, 3069, 3063}}, {0, {3055, 3052, 3062}}, {16, {3054, 3039, 3051}}, {1463, {3527}}}));
    EXPECT_EQ(rolled({.guard = Guard::breaker}),
              (All{{0, {3056, 3069, 3063}}, {0, {3055, 3052, 3062}}, {0, {3010, 3042, 3054}}, {1463, {3527}}}));
    EXPECT_EQ(rolled({.guard = Guard::breaker, .ramp = 30}),
              (All{{1649, {3056, 3064, 51}}, {743, {3055, 3010, 61}}, {1222, {3010, 542, 57}}, {5565, {3527}}}));
}

TEST(RollingRestarts, RefuseWhatComesWhileTheOnlyMemberThatIsWellIsProbed) {
    const std::vector<Told> slow = rolled({.work = 100});
    EXPECT_EQ(lost(slow), (std::vector<std::uint32_t>{0, 0, 29, 1500}));
}

TEST(RollingRestarts, OfMembersThatWaitForEachOthersRampLoseNothing) {
    EXPECT_EQ(roll(of_three({.ramp = 30}, 33'000)).lost, 0U);
}

// What DESIGN.md says of the ways to give refused connections a second look.
TEST(RollingRestarts, GainNothingThatTheyHaveNotByASecondLookAtRefusedConnections) {
    using Numbers = std::vector<std::uint32_t>;
    EXPECT_EQ(lost(rolled({.second_look = SecondLook::short_round})), (Numbers{0, 0, 0, 1459}));
    EXPECT_EQ(lost(rolled({.second_look = SecondLook::uncounted})), (Numbers{0, 0, 0, 1463}));
    EXPECT_EQ(lost(rolled({.second_look = SecondLook::sooner})), (Numbers{0, 0, 0, 878}));

    const RollingResult now = roll({});
    EXPECT_EQ(now.refused_connections, 16U);
    EXPECT_EQ(roll({.second_look = SecondLook::uncounted}).refused_connections, 587U);
    const RollingResult sooner = roll({.second_look = SecondLook::sooner});
    EXPECT_EQ(sooner.refused_connections, 19U);
    EXPECT_EQ(sooner.idle, (Numbers{1060, 1086, 1075}));
}

TEST(RollingRestarts, WithARampLoseWhatTheRampsRefuseAndNothingElse) {
    using Numbers = std::vector<std::uint32_t>;
    EXPECT_EQ(lost(rolled({.ramp = 30, .second_look = SecondLook::short_round})), (Numbers{0, 0, 0, 1459}));
    EXPECT_EQ(lost(rolled({.ramp = 30, .second_look = SecondLook::sooner})), (Numbers{234, 696, 1242, 4943}));
    EXPECT_EQ(lost(rolled({.ramp = 30, .second_look = SecondLook::ramp_yields})), (Numbers{0, 0, 0, 1463}));
}

}  // namespace
}  // namespace cb::test
