// A round of half-open: how many probes it admits, what each result of a probe does, and how the round ends.
#include <array>
#include <cstdint>
#include <vector>

#include "vocabulary.hpp"

namespace cb::test {
namespace {

Policy probing(std::uint32_t round, std::uint32_t concurrent, std::uint32_t tolerate, std::uint32_t successes) {
    Policy policy = default_policy();
    policy.probes = {round, concurrent, tolerate, successes, round};
    return policy;
}

/// Takes slots from 0 on until none is given; returns how many were.
unsigned take_all(Word& word, const Policy& policy) {
    unsigned taken = 0;
    for (unsigned slot = 0; slot < 16; ++slot) {
        if ((word.slots >> slot & 1U) != 0) continue;
        const bool has_room = step_of(word, asks(), policy).decision == Decision::probe;
        const Step step = apply(word, asks_with_lease(slot), policy);
        EXPECT_EQ(step.decision == Decision::probe, has_room);
        EXPECT_FALSE(step.transition);
        taken += step.decision == Decision::probe;
    }
    return taken;
}

Word in_slot_zero(std::uint8_t round) {
    Word word = empty_round(round);
    word.slots = 1;
    return word;
}

// ---- Admission.

TEST(HalfOpen, AdmitsNoMoreThanTheRoundNorTheConcurrentProbes) {
    for (std::uint8_t round = 1; round <= kMaxProbes; ++round) {
        for (std::uint32_t concurrent = 1; concurrent <= kMaxConcurrent; ++concurrent) {
            Word word = empty_round(round);
            const Policy policy = probing(round, concurrent, 0, round);
            ASSERT_EQ(probe_room(word, policy, kNow), std::min<std::uint32_t>(round, concurrent));
            ASSERT_EQ(take_all(word, policy), std::min<std::uint32_t>(round, concurrent));
            ASSERT_EQ(probe_room(word, policy, kNow), 0U);
        }
    }
}

TEST(HalfOpen, AdmitsOverAWholeRoundOneProbeForEachSuccessItMayStillNeed) {
    const Policy policy = probing(5, 2, 0, 5);
    Word word = empty_round(5);
    for (unsigned success = 0; success < 5; ++success) {
        take_all(word, policy);
        EXPECT_EQ(static_cast<unsigned>(std::popcount(word.slots)), std::min(2U, 5 - success));
        const auto slot = static_cast<unsigned>(std::countr_zero(word.slots));
        apply(word, probe_ended(slot, Verdict::success), policy);
    }
    EXPECT_EQ(word.state, State::closed);
}

TEST(HalfOpen, CountsSuccessesAgainstTheRound) {
    Word word = empty_round(3);
    word.successes = 2;
    EXPECT_EQ(probe_room(word, probing(3, 3, 0, 3), kNow), 1U);
    EXPECT_EQ(take_all(word, probing(3, 3, 0, 3)), 1U);
}

TEST(HalfOpen, KeepsTheRoundItBeganWithWhateverThePolicySaysNow) {
    Word word = empty_round(2);
    EXPECT_EQ(take_all(word, probing(10, 10, 0, 2)), 2U);
    word = empty_round(6);
    EXPECT_EQ(take_all(word, probing(2, 16, 0, 2)), 6U);
}

TEST(HalfOpen, RefusesRequestsWhenItsRoundIsFullAndWritesNothing) {
    Word word = empty_round(2);
    word.slots = 0b11;
    expect_unchanged(word, step_of(word, asks(), probing(2, 2, 0, 2)), Decision::refuse);
    expect_unchanged(word, step_of(word, asks_with_lease(5), probing(2, 2, 0, 2)), Decision::refuse);
}

TEST(HalfOpen, GivesNoSlotTwice) {
    const Word word = in_slot_zero(3);
    expect_unchanged(word, step_of(word, asks_with_lease(0), probing(3, 3, 0, 3)), Decision::refuse);
}

TEST(HalfOpen, AdmitsNoMoreWhenMoreAreInFlightThanThePolicyNowAllows) {
    Word word = empty_round(16);
    word.slots = 0xFF;
    EXPECT_EQ(probe_room(word, probing(16, 3, 0, 3), kNow), 0U);
    EXPECT_EQ(take_all(word, probing(16, 3, 0, 3)), 0U);
}

TEST(HalfOpen, StaysHalfOpenHoweverMuchTimeGoesBy) {
    const Word word = sample(State::half_open);
    EXPECT_EQ(unpack(step_of(word, asks(), default_policy(), kNow + 365 * kDay).word), word);
}

// ---- Success.

TEST(HalfOpen, ClosesAtTheSuccessThatMakesEnoughKeepingItsLevel) {
    const Policy policy = probing(5, 5, 0, 3);
    Word word = empty_round(5);
    word.slots = 0b11111;
    for (unsigned slot = 0; slot < 2; ++slot) {
        EXPECT_FALSE(apply(word, probe_ended(slot, Verdict::success), policy).transition);
        EXPECT_EQ(word.successes, slot + 1);
        EXPECT_EQ((word.slots >> slot & 1U), 0U);
    }
    const Step step = apply(word, probe_ended(2, Verdict::success), policy);
    EXPECT_TRUE(step.transition);
    EXPECT_EQ(step.reason, Reason::probes_succeeded);
    EXPECT_EQ(step.decision, Decision::counted);
    Word expected = fresh_closed(8);
    expected.level = 2;
    expected.tripped = true;
    EXPECT_EQ(word, expected);
}

TEST(HalfOpen, BecomesRecoveringInsteadWhereARampIsSet) {
    Policy policy = probing(1, 1, 0, 1);
    policy.ramp_up.duration = 60'000;
    for (const Millis now : {kNow, Millis{1} << 31 | 640, Millis{1} << 32 | 640}) {
        const Step step = step_of(in_slot_zero(1), probe_ended(0, Verdict::success), policy, now);
        Word expected;
        expected.state = State::recovering;
        expected.level = 2;
        expected.generation = 8;
        expected.ramp_start = static_cast<std::uint32_t>(now / 64 % (1U << 26));
        EXPECT_EQ(unpack(step.word), expected);
        EXPECT_TRUE(step.transition);
        EXPECT_EQ(step.reason, Reason::probes_succeeded);
        EXPECT_EQ(ramp_elapsed(expected, policy.ramp_up, now), 0U);
    }
}

TEST(HalfOpen, CanStillEndARoundOfAnOlderPolicyThatIsSmallerThanTheSuccessesNeededNow) {
    const Policy today = probing(10, 10, 0, 10);
    Word word = empty_round(2);
    word.slots = 0b11;
    EXPECT_FALSE(apply(word, probe_ended(0, Verdict::success), today).transition);
    EXPECT_TRUE(apply(word, probe_ended(1, Verdict::success), today).transition);
    EXPECT_EQ(word.state, State::closed);
}

TEST(HalfOpen, CanEndTheLargestRoundOfAll) {
    const Policy policy = probing(63, 16, 15, 63);
    Word word = empty_round(63);
    for (unsigned i = 1; i <= 63; ++i) {
        ASSERT_EQ(apply(word, asks_with_lease(i % 16), policy).decision, Decision::probe);
        ASSERT_EQ(apply(word, probe_ended(i % 16, Verdict::success), policy).transition, i == 63);
    }
}

// ---- Failure.

TEST(HalfOpen, OpensAgainOneLevelHigherAtTheFirstFailureMoreThanItTolerates) {
    for (std::uint32_t tolerate = 0; tolerate <= kMaxTolerate; ++tolerate) {
        const Policy policy = probing(3, 3, tolerate, 3);
        Word word = empty_round(3);
        for (std::uint32_t failure = 1; failure <= tolerate; ++failure) {
            ASSERT_EQ(apply(word, asks_with_lease(0), policy).decision, Decision::probe);
            ASSERT_FALSE(apply(word, probe_ended(0, Verdict::failure), policy).transition);
            ASSERT_EQ(word.failures, failure);
        }
        ASSERT_EQ(apply(word, asks_with_lease(0), policy).decision, Decision::probe);
        expect_trip(word, step_of(word, probe_ended(0, Verdict::failure), policy), Reason::probe_failed, 3);
    }
}

TEST(HalfOpen, ReplacesAToleratedFailure) {
    const Policy policy = probing(2, 2, 1, 2);
    Word word = empty_round(2);
    EXPECT_EQ(take_all(word, policy), 2U);
    apply(word, probe_ended(0, Verdict::failure), policy);
    EXPECT_EQ(take_all(word, policy), 1U);
    apply(word, probe_ended(0, Verdict::success), policy);
    apply(word, probe_ended(1, Verdict::success), policy);
    EXPECT_EQ(word.state, State::closed);
}

TEST(HalfOpen, ReplacesNoToleratedFailureWhereTheRestOfTheRoundIsEnough) {
    const Policy policy = probing(4, 4, 1, 3);
    Word word = empty_round(4);
    EXPECT_EQ(take_all(word, policy), 4U);
    apply(word, probe_ended(0, Verdict::failure), policy);
    EXPECT_EQ(take_all(word, policy), 0U);
    for (unsigned slot = 1; slot < 4; ++slot)
        apply(word, probe_ended(slot, Verdict::success), policy);
    EXPECT_EQ(word.state, State::closed);
}

TEST(HalfOpen, AdmitsOneMoreProbeWhereThePolicyNowNeedsFewerSuccessesThanThereAre) {
    Word word = empty_round(3);
    word.successes = 2;
    word.failures = 1;
    const Policy policy = probing(3, 3, 1, 1);
    EXPECT_EQ(take_all(word, policy), 1U);
    apply(word, probe_ended(0, Verdict::success), policy);
    EXPECT_EQ(word.state, State::closed);
}

TEST(HalfOpen, ToleratesAndNeedsSharesOfTheRoundThatItHas) {
    Probes probes{.round = 4, .concurrent = 4, .tolerate = 50, .successes = 0, .max = 63, .is_tolerate_share = true};
    for (std::uint32_t round = 1; round <= kMaxProbes; ++round) {
        for (const std::uint32_t percent : {0U, 1U, 33U, 50U, 75U, 99U, 100U}) {
            probes.tolerate = percent;
            probes.successes = 0;
            probes.is_successes_share = false;
            EXPECT_EQ(tolerated(probes, round), std::min(round * percent / 100, 15U)) << percent << " % of " << round;
            EXPECT_EQ(needed(probes, round), std::max(round - tolerated(probes, round), 1U));
            if (percent == 0) continue;
            probes.successes = percent;
            probes.is_successes_share = true;
            EXPECT_EQ(needed(probes, round), std::max(1U, (round * percent + 99) / 100))
                << percent << " % of " << round;
        }
    }
    Policy policy = default_policy();
    policy.probes = {.round = 4,
                     .concurrent = 8,
                     .tolerate = 50,
                     .successes = 75,
                     .max = 8,
                     .is_tolerate_share = true,
                     .is_successes_share = true};
    for (const auto& [round, failures, successes] : {std::array<std::uint8_t, 3>{4, 2, 3}, {8, 4, 6}, {5, 2, 4}}) {
        Word word = empty_round(round);
        word.slots = 1;
        word.failures = failures;
        EXPECT_TRUE(step_of(word, probe_ended(0, Verdict::failure), policy).transition) << +round;
        --word.failures;
        EXPECT_FALSE(step_of(word, probe_ended(0, Verdict::failure), policy).transition) << +round;
        word.successes = static_cast<std::uint8_t>(successes - 1);
        EXPECT_TRUE(step_of(word, probe_ended(0, Verdict::success), policy).transition) << +round;
        --word.successes;
        EXPECT_FALSE(step_of(word, probe_ended(0, Verdict::success), policy).transition) << +round;
    }
}

TEST(HalfOpen, OpensAgainOnAFatalOutcomeWhateverItsTolerance) {
    const Policy policy = probing(3, 3, 15, 3);
    expect_trip(in_slot_zero(3), step_of(in_slot_zero(3), probe_ended(0, Verdict::fatal), policy), Reason::fatal, 3);
}

TEST(HalfOpen, TakesASlowCallForAFailureWhateverItsVerdict) {
    for (const Verdict verdict : {Verdict::success, Verdict::failure, Verdict::tolerate, Verdict::ignore}) {
        expect_trip(in_slot_zero(3), step_of(in_slot_zero(3), probe_ended(0, verdict, true), probing(3, 3, 0, 3)),
                    Reason::probe_failed, 3);
        Word word = in_slot_zero(3);
        apply(word, probe_ended(0, verdict, true), probing(3, 3, 1, 3));
        EXPECT_EQ(word.failures, 1U);
        EXPECT_EQ(word.successes, 0U);
        EXPECT_EQ(word.neutral, 0U);
    }
    EXPECT_EQ(step_of(in_slot_zero(3), probe_ended(0, Verdict::fatal, true), probing(3, 3, 15, 3)).reason,
              Reason::fatal);
}

TEST(HalfOpen, OpensAgainNoHigherThanTheHighestLevel) {
    Word word = in_slot_zero(3);
    word.level = kMaxLevel;
    expect_trip(word, step_of(word, probe_ended(0, Verdict::failure), default_policy()), Reason::probe_failed,
                kMaxLevel);
}

TEST(HalfOpen, OpensAtTheNextFailureWhenThePolicyNowToleratesFewerThanThereWere) {
    Word word = in_slot_zero(3);
    word.failures = 9;
    EXPECT_TRUE(step_of(word, probe_ended(0, Verdict::failure), probing(3, 3, 2, 3)).transition);
}

// ---- Neutral.

TEST(HalfOpen, GivesTheAdmissionOfANeutralProbeBack) {
    for (const Verdict verdict : {Verdict::ignore, Verdict::tolerate}) {
        const Policy policy = probing(2, 2, 0, 2);
        Word word = empty_round(2);
        take_all(word, policy);
        EXPECT_FALSE(apply(word, probe_ended(1, verdict), policy).transition);
        EXPECT_EQ(word.slots, 0b01);
        EXPECT_EQ(word.neutral, 1U);
        EXPECT_EQ(word.successes, 0U);
        EXPECT_EQ(word.failures, 0U);
        EXPECT_EQ(take_all(word, policy), 1U);
    }
}

TEST(HalfOpen, OpensAgainAtTheSameLevelAtTheFifteenthNeutralProbe) {
    const Policy policy = probing(3, 3, 15, 3);
    Word word = empty_round(3);
    for (unsigned neutral = 1; neutral <= 15; ++neutral) {
        ASSERT_EQ(apply(word, asks_with_lease(0), policy).decision, Decision::probe);
        const Word before = word;
        const Verdict verdict = neutral % 2 == 0 ? Verdict::ignore : Verdict::tolerate;
        const Step step = apply(word, probe_ended(0, verdict), policy);
        if (neutral < 15) {
            ASSERT_FALSE(step.transition) << neutral;
            ASSERT_EQ(word.neutral, neutral);
        } else {
            expect_trip(before, step, Reason::no_evidence, 2);
        }
    }
}

TEST(HalfOpen, IsEndedByNoClientHoweverManyProbesItGivesUp) {
    const Policy policy = probing(3, 3, 15, 3);
    Word word = empty_round(3);
    word.neutral = 14;
    Event given_up = probe_ended(0, Verdict::ignore);
    given_up.by_client = true;
    for (int i = 0; i < 100; ++i) {
        const Word before = word;
        ASSERT_EQ(apply(word, asks_with_lease(0), policy).decision, Decision::probe);
        ASSERT_FALSE(apply(word, given_up, policy).transition) << i;
        ASSERT_EQ(word, before);
    }
}

TEST(HalfOpen, CountsNeutralProbesAnewInEachRound) {
    Word word = empty_round(3);
    word.slots = 1;
    word.neutral = 14;
    apply(word, probe_ended(0, Verdict::ignore), default_policy());
    apply(word, asks_with_lease(4), default_policy(), kNow + kDay);
    Word expected = empty_round(3);
    expected.generation = 9;
    expected.slots = 1 << 4;
    EXPECT_EQ(word, expected);
}

// ---- Results that come too late.

TEST(HalfOpen, IgnoresTheEndOfAProbeWhoseSlotIsNotTaken) {
    for (const State state : kAllStates) {
        const Word word = sample(state);  // half-open: slot 1 is taken
        for (const Verdict verdict : kAllVerdicts) {
            expect_unchanged(word, step_of(word, probe_ended(0, verdict), default_policy()), Decision::ignored);
        }
    }
}

TEST(HalfOpen, SettlesAProbeOnce) {
    Word word = in_slot_zero(3);
    apply(word, probe_ended(0, Verdict::success), default_policy());
    expect_unchanged(word, step_of(word, probe_ended(0, Verdict::success), default_policy()), Decision::ignored);
}

TEST(HalfOpen, DecidesNothingOnTheResultOfAnOrdinaryCall) {
    for (const Verdict verdict : kAllVerdicts) {
        expect_unchanged(sample(State::half_open),
                         step_of(sample(State::half_open), ended(verdict, {100, 100, 100, 100}), default_policy()),
                         Decision::ignored);
    }
}

TEST(HalfOpen, SettlesASlotWithoutTouchingTheOthers) {
    for (unsigned slot = 0; slot < 16; ++slot) {
        Word word = empty_round(63);
        word.slots = 0xFFFF;
        apply(word, probe_ended(slot, Verdict::success), probing(63, 16, 0, 63));
        EXPECT_EQ(word.slots, 0xFFFF & ~(1U << slot));
    }
}

}  // namespace
}  // namespace cb::test
