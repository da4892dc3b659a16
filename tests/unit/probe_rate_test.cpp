// Adaptive probing: what a breaker remembers of its probes, and what follows from it.
#include "core/probe_rate.hpp"

#include <string_view>

#include "vocabulary.hpp"

namespace cb::test {
namespace {

ProbeRate after(std::string_view probes, ProbeRate rate = {}) {
    for (const char each : probes)
        rate = with_sample(rate, each == '+' ? ProbeSample::success : ProbeSample::failure);
    return rate;
}

/// N 4, max 20.
constexpr Probes kAdaptive{4, 4, 0, 4, 20};

TEST(ProbeRates, AreKeptWholeInOneWord) {
    for (const ProbeRate rate :
         {ProbeRate{}, ProbeRate{kRateSamples, kWholeRate, kMaxProbes}, ProbeRate{1, 2, 3}, ProbeRate{10, 32768, 1}}) {
        EXPECT_EQ(ProbeRate::of(rate.bits()), rate);
    }
}

TEST(ProbeRates, SayNothingBeforeTheTenthSample) {
    EXPECT_FALSE(after("+++++++++").is_good());
    EXPECT_TRUE(after("++++++++++").is_good());
    EXPECT_FALSE(after("---------").is_poor());
    EXPECT_TRUE(after("----------").is_poor());
}

TEST(ProbeRates, AreThePlainMeanOfTheFirstTenInWhateverOrder) {
    EXPECT_TRUE(after("-+++++++++").is_good());
    EXPECT_TRUE(after("+++++++++-").is_good());
    EXPECT_FALSE(after("--++++++++").is_good());
    EXPECT_FALSE(after("++++++++--").is_good());
    EXPECT_FALSE(after("-----+++++").is_poor()) << "half of them";
    EXPECT_TRUE(after("++++------").is_poor());
    EXPECT_TRUE(after("------++++").is_poor());
    EXPECT_FALSE(after("+++++++---").is_poor());
}

TEST(ProbeRates, ThenFollowTheNewest) {
    const ProbeRate well = after("++++++++++++++++++++++++++++++++++++++++++++++++++");
    EXPECT_EQ(well.rate, kWholeRate);
    EXPECT_EQ(well.samples, kRateSamples);
    EXPECT_TRUE(after("-", well).is_good()) << "nine tenths";
    EXPECT_FALSE(after("--", well).is_good());
    EXPECT_TRUE(after("--++", well).is_good() == false && after("--+++++++", well).is_good());
    EXPECT_FALSE(after("------", well).is_poor()) << "0.9^6 = 0.53";
    EXPECT_TRUE(after("-------", well).is_poor());
    const ProbeRate ill = after("------------------------------------------------------------------------");
    EXPECT_LT(ill.rate, 10U);
    EXPECT_TRUE(after("++++++", ill).is_poor()) << "1 - 0.9^6 = 0.47";
    EXPECT_FALSE(after("+++++++", ill).is_poor());
}

TEST(ProbeRates, CountWhatProvesSomething) {
    EXPECT_EQ(sample_of(Verdict::success, false), ProbeSample::success);
    EXPECT_EQ(sample_of(Verdict::failure, false), ProbeSample::failure);
    EXPECT_EQ(sample_of(Verdict::fatal, false), ProbeSample::failure);
    EXPECT_EQ(sample_of(Verdict::success, true), ProbeSample::failure) << "a slow probe has failed";
    EXPECT_EQ(sample_of(Verdict::ignore, false), ProbeSample::none);
    EXPECT_EQ(sample_of(Verdict::tolerate, false), ProbeSample::none);
    const ProbeRate rate = after("++-");
    EXPECT_EQ(with_sample(rate, ProbeSample::none), rate);
}

TEST(NextRound, DoublesFromRoundToRoundUpToItsMaximum) {
    ProbeRate rate = after("++++++++++");
    for (const std::uint32_t expected : {8U, 16U, 20U, 20U}) {
        rate.round = next_round(rate, kAdaptive);
        EXPECT_EQ(rate.round, expected);
    }
    EXPECT_EQ(next_round({}, kAdaptive), 4U) << "nothing is known yet";
}

TEST(NextRound, StaysInBetweenAndFallsBackToNWhenMostProbesFail) {
    ProbeRate rate = after("+++++++---");
    rate.round = 16;
    EXPECT_EQ(next_round(rate, kAdaptive), 16U);
    rate = after("-----", rate);
    ASSERT_TRUE(rate.is_poor());
    EXPECT_EQ(next_round(rate, kAdaptive), 4U);
}

TEST(NextRound, OfAnotherPolicyThanThatOfTheMemory) {
    ProbeRate rate = after("++++++++--");
    rate.round = 20;
    EXPECT_EQ(next_round(rate, {3, 3, 0, 3, 6}), 6U);
    EXPECT_EQ(next_round(rate, {30, 16, 0, 30, 40}), 30U);
    EXPECT_EQ(next_round(after("++++++++++"), {3, 3, 0, 3, 3}), 3U) << "not adaptive";
    EXPECT_EQ(next_round({10, kWholeRate, kMaxProbes}, {32, 16, 0, 32, kMaxProbes}), kMaxProbes);
}

// --- the open time after most probes failed ---

TEST(ALongerOpenTime, IsThatOfOneLevelMoreWhileTheLevelIsNot) {
    Policy policy = default_policy();
    policy.open_time = {1000, 60'000, 3000, 0, false};
    Event fatal = ended(Verdict::fatal);
    fatal.longer = true;
    const Step first = step_of(fresh_closed(), fatal, policy);
    expect_trip(fresh_closed(), first, Reason::fatal, 0);
    EXPECT_EQ(first.open_for, 3000U);

    Word probed = empty_round(3);
    probed.slots = 1;
    Event failed = probe_ended(0, Verdict::failure);
    EXPECT_EQ(step_of(probed, failed, policy).open_for, 27'000U);
    failed.longer = true;
    const Step again = step_of(probed, failed, policy);
    expect_trip(probed, again, Reason::probe_failed, 3);
    EXPECT_EQ(again.open_for, 60'000U) << "81 s, but for the maximum";
}

}  // namespace
}  // namespace cb::test
