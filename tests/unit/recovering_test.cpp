// Recovering: closed with a ramp. The ramp's share, what opens the breaker again, and how the ramp ends.
#include <cstdint>

#include "vocabulary.hpp"

namespace cb::test {
namespace {

constexpr Millis kRamp = 64'000;
constexpr Millis kStart = kNow / kRampUnit * kRampUnit;  // of sample(State::recovering)

Policy ramping(std::uint32_t from = 10) {
    Policy policy = default_policy();
    policy.ramp_up = {kRamp, from};
    return policy;
}
Word recovering() {
    return sample(State::recovering);
}

/// Of 2^16 requests with evenly spread draws, how many pass.
std::uint32_t admitted(const Word& word, const Policy& policy, Millis now) {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < 65'536; ++i) {
        const Step step = step_of(word, asks(i << 16 | 0x7FFF), policy, now);
        EXPECT_EQ(step.word, pack(word));
        EXPECT_TRUE(step.decision == Decision::pass || step.decision == Decision::refuse);
        count += step.decision == Decision::pass;
    }
    return count;
}

// ---- The share.

TEST(Recovering, AdmitsTheShareOfItsRamp) {
    const Policy policy = ramping(10);
    for (const Millis elapsed : {0U, 640U, 32'000U, 63'936U}) {
        EXPECT_EQ(admitted(recovering(), policy, kStart + elapsed), ramp_share(policy.ramp_up, elapsed)) << elapsed;
    }
}

TEST(Recovering, BeginsWithTheShareItIsToldTo) {
    EXPECT_EQ(admitted(recovering(), ramping(0), kStart), 0U);
    EXPECT_EQ(admitted(recovering(), ramping(50), kStart), 32'768U);
    EXPECT_EQ(admitted(recovering(), ramping(100), kStart), 65'536U);
}

TEST(Recovering, NeverAdmitsLessThanAMomentBefore) {
    const Policy policy = ramping(10);
    std::uint32_t before = 0;
    for (Millis elapsed = 0; elapsed < kRamp; elapsed += 1600) {
        const std::uint32_t now = admitted(recovering(), policy, kStart + elapsed);
        EXPECT_GE(now, before) << elapsed;
        before = now;
    }
    EXPECT_GT(before, 62'000U);
}

TEST(Recovering, TreatsARequestThatHoldsALeaseAsAnOrdinaryOne) {
    Event lucky = asks_with_lease(2);
    lucky.draw = 0;
    expect_unchanged(recovering(), step_of(recovering(), lucky, ramping(), kStart), Decision::pass);
    Event unlucky = asks_with_lease(2);
    unlucky.draw = kLargestDraw;
    expect_unchanged(recovering(), step_of(recovering(), unlucky, ramping(), kStart), Decision::refuse);
}

// ---- Its end.

TEST(Recovering, ClosesWhenItsRampIsOverAndKeepsGenerationLevelAndCount) {
    Word expected = fresh_closed();
    expected.level = 2;
    expected.consecutive = 3;
    expected.tripped = true;
    for (const Event& event : {asks(kLargestDraw), asks_with_lease(0), ended(Verdict::success)}) {
        const Step step = step_of(recovering(), event, ramping(), kStart + kRamp);
        EXPECT_EQ(unpack(step.word), expected);
        EXPECT_EQ(step.decision, Decision::again);
        EXPECT_TRUE(step.transition);
        EXPECT_EQ(step.reason, Reason::ramp_over);
    }
}

TEST(Recovering, IsNotOverOneUnitEarlier) {
    const Step step = step_of(recovering(), asks(kLargestDraw), ramping(), kStart + kRamp - 1);
    EXPECT_FALSE(step.transition);
    EXPECT_EQ(unpack(step.word), recovering());
}

TEST(Recovering, LetsTheRequestPassThatFoundTheRampOver) {
    Word word = recovering();
    EXPECT_EQ(apply(word, asks(kLargestDraw), ramping(), kStart + kRamp).decision, Decision::pass);
    EXPECT_EQ(word.state, State::closed);
}

TEST(Recovering, CountsTheResultThatFoundTheRampOver) {
    Word word = recovering();  // 3 failures in a row
    apply(word, ended(Verdict::failure), ramping(), kStart + kRamp);
    EXPECT_EQ(word.state, State::closed);
    EXPECT_EQ(word.consecutive, 4U);
    EXPECT_EQ(apply(word, ended(Verdict::failure), ramping(), kStart + kRamp).reason, Reason::consecutive_failures);
}

TEST(Recovering, StillCountsTheCallsItLetThroughAfterItHasClosed) {
    Word word = recovering();
    apply(word, asks(), ramping(), kStart + kRamp);
    ASSERT_EQ(word.state, State::closed);
    EXPECT_EQ(apply(word, ended(Verdict::failure), ramping()).decision, Decision::counted);
}

TEST(Recovering, IsEndedByNoLateResult) {
    Event event = ended(Verdict::success);
    event.generation = 6;
    expect_unchanged(recovering(), step_of(recovering(), event, ramping(), kStart + kRamp), Decision::ignored);
}

TEST(Recovering, GivesTheWholeMinimumOfSuccessesToBeProvenOnlyAfterItHasClosed) {
    Policy policy = ramping();
    Word word = recovering();
    for (int i = 0; i < 100; ++i)
        apply(word, ended(Verdict::success), policy, kStart);
    EXPECT_EQ(word.state, State::recovering);
    EXPECT_EQ(word.level, 2U);
    for (std::uint32_t i = 0; i < policy.minimum_calls; ++i) {
        EXPECT_EQ(word.level, 2U);
        apply(word, ended(Verdict::success), policy, kStart + kRamp);
    }
    EXPECT_EQ(word, fresh_closed());
}

// ---- Its trips, all of them reopenings.

TEST(Recovering, TripsAsAClosedBreakerDoesButOneLevelHigher) {
    Policy policy = ramping();
    policy.slow_call = {200, 50};
    const struct {
        Event event;
        Reason reason;
    } cases[] = {
        {ended(Verdict::fatal), Reason::fatal},
        {ended(Verdict::failure, {20, 10, 20, 0}), Reason::failure_rate},
        {ended(Verdict::tolerate, {20, 10, 20, 0}), Reason::failure_rate},
        {ended_slow(Verdict::success, {20, 0, 20, 10}), Reason::slow_rate},
    };
    for (const auto& [event, reason] : cases) {
        expect_trip(recovering(), step_of(recovering(), event, policy), reason, 3);
    }
    Word word = recovering();
    word.consecutive = 4;
    for (const Verdict verdict : {Verdict::failure, Verdict::tolerate}) {
        expect_trip(word, step_of(word, ended(verdict), policy), Reason::consecutive_failures, 3);
    }
    EXPECT_FALSE(step_of(recovering(), ended(Verdict::failure, {20, 9, 20, 9}), policy).transition);
    EXPECT_FALSE(step_of(recovering(), ended(Verdict::failure, {19, 19, 19, 19}), policy).transition);
}

TEST(Recovering, RaisesALevelOfZeroAndNeverPassesTheHighest) {
    Word word = recovering();
    word.level = 0;
    expect_trip(word, step_of(word, ended(Verdict::fatal), ramping()), Reason::fatal, 1);
    word.level = kMaxLevel;
    expect_trip(word, step_of(word, ended(Verdict::fatal), ramping()), Reason::fatal, kMaxLevel);
}

TEST(Recovering, CountsFailuresInARowAndForgetsThemOnASuccess) {
    Word word = recovering();
    Word expected = word;
    expected.consecutive = 4;
    expect_counted(expected, apply(word, ended(Verdict::failure), ramping()));
    expect_counted(expected, apply(word, ended(Verdict::ignore), ramping()));
    expected.consecutive = 0;
    expect_counted(expected, apply(word, ended(Verdict::success), ramping()));
}

TEST(Recovering, NeverTripsOnASuccessNorOnANeutralResult) {
    Policy policy = ramping();
    policy.failure_rate = 1;
    policy.consecutive_failures = 1;
    for (const Verdict verdict : {Verdict::success, Verdict::ignore}) {
        const Step step = step_of(recovering(), ended(verdict, {1000, 1000, 1000, 1000}), policy);
        EXPECT_FALSE(step.transition);
        EXPECT_EQ(state_of(step.word), State::recovering);
    }
}

TEST(Recovering, IgnoresLateResultsAndTheEndsOfProbes) {
    for (const Verdict verdict : kAllVerdicts) {
        Event of_older_generation = ended(verdict, {100, 100, 100, 100});
        of_older_generation.generation = 6;
        expect_unchanged(recovering(), step_of(recovering(), of_older_generation, ramping()), Decision::ignored);
        Event too_old = ended(verdict, {100, 100, 100, 100});
        too_old.late = true;
        expect_unchanged(recovering(), step_of(recovering(), too_old, ramping()), Decision::ignored);
        expect_unchanged(recovering(), step_of(recovering(), probe_ended(1, verdict), ramping()), Decision::ignored);
    }
}

TEST(Recovering, StartsWithNoFailuresInARow) {
    Word word = empty_round(1);
    word.slots = 1;
    apply(word, probe_ended(0, Verdict::success), ramping());
    EXPECT_EQ(word.state, State::recovering);
    EXPECT_EQ(word.consecutive, 0U);
}

}  // namespace
}  // namespace cb::test
