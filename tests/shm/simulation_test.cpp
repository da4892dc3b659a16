// What the README says of the simulation, as far as it is a claim.
#include <gtest/gtest.h>

#include <map>

#include "bench/recovery.hpp"

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

}  // namespace
}  // namespace cb::test
