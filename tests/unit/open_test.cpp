// An open breaker, and what decides before it opens: how long it stays open, and whether MaxOpen allows it.
#include <cstdint>

#include "vocabulary.hpp"

namespace cb::test {
namespace {

/// A fatal outcome of a breaker that trips at `level`.
Step trip_at(std::uint32_t level, const Policy& policy, std::uint32_t draw = kNoJitter, Millis least_open_time = 0) {
    Word word = fresh_closed();
    if (level > 0) {
        word.tripped = true;
        word.level = static_cast<std::uint8_t>(level - 1);
    }
    Event event = ended(Verdict::fatal);
    event.draw = draw;
    event.least_open_time = least_open_time;
    return step_of(word, event, policy);
}

// ---- How long.

TEST(Open, LastsTheOpenTimeOfItsLevel) {
    const Policy policy = default_policy();
    const Millis expected[] = {5'000, 10'000, 20'000, 40'000, 80'000, 160'000, 300'000, 300'000};
    for (std::uint32_t level = 0; level < 8; ++level) {
        const Step step = trip_at(level, policy);
        EXPECT_EQ(step.open_for, expected[level]) << level;
        EXPECT_EQ(unpack(step.word).open_until, kNow + expected[level]) << level;
        EXPECT_EQ(unpack(step.word).level, level);
    }
}

TEST(Open, LastsAsLongAsTheDrawOfItsJitterSays) {
    const Policy policy = default_policy();
    for (const std::uint32_t draw : {0U, 1U << 30, kNoJitter, 3U << 30, kLargestDraw}) {
        EXPECT_EQ(trip_at(1, policy, draw).open_for, open_time_at(policy.open_time, 1, draw));
    }
    EXPECT_LT(trip_at(1, policy, 0).open_for, trip_at(1, policy, kLargestDraw).open_for);
}

TEST(Open, LastsAtLeastAsLongAsTheAnswersOwnRetryAfterUpToTheMaximum) {
    Policy policy = default_policy();
    policy.open_time.retry_after = true;
    EXPECT_EQ(trip_at(0, policy, kNoJitter, 3'000).open_for, 5'000U);
    EXPECT_EQ(trip_at(0, policy, kNoJitter, 5'001).open_for, 5'001U);
    EXPECT_EQ(trip_at(0, policy, kNoJitter, 299'999).open_for, 299'999U);
    EXPECT_EQ(trip_at(0, policy, kNoJitter, 365 * kDay).open_for, 300'000U);
    EXPECT_EQ(
        trip_at(9, policy, kLargestDraw, 10'000).open_for,
        open_time_at(policy.open_time, 9, kLargestDraw));  // jitter may pass the maximum; Retry-After takes nothing
}

TEST(Open, TakesNoNoteOfRetryAfterUnlessToldTo) {
    EXPECT_EQ(trip_at(0, default_policy(), kNoJitter, 200'000).open_for, 5'000U);
}

TEST(Open, KeepsRetryAfterAlsoWhenAProbeFails) {
    Policy policy = default_policy();
    policy.open_time.retry_after = true;
    Word word = empty_round(3);
    word.slots = 1;
    Event event = probe_ended(0, Verdict::failure);
    event.least_open_time = 290'000;
    EXPECT_EQ(step_of(word, event, policy).open_for, 290'000U);
}

// ---- Refusing.

TEST(Open, RefusesUntilItsOpenTimeIsOver) {
    const Policy policy = default_policy();
    const Word word = open_until(kNow + 1000, 2);
    for (const Millis at : {kNow, kNow + 1, kNow + 999}) {
        expect_unchanged(word, step_of(word, asks(), policy, at), Decision::refuse);
        expect_unchanged(word, step_of(word, asks_with_lease(0), policy, at), Decision::refuse);
        EXPECT_EQ(probe_room(word, policy, at), 0U);
    }
}

TEST(Open, RefusesUntilItsOpenTimeIsOverWhereTheClockOutgrowsItsField) {
    const Policy policy = default_policy();
    const Millis turn = 1ULL << 36;
    Word word = fresh_closed();
    apply(word, ended(Verdict::fatal), policy, turn - 2'000);
    EXPECT_EQ(word.open_until, 3'000U);
    EXPECT_EQ(step_of(word, asks(), policy, turn - 2'000).decision, Decision::refuse);
    EXPECT_EQ(step_of(word, asks(), policy, turn).decision, Decision::refuse);
    EXPECT_EQ(step_of(word, asks(), policy, turn + 2'999).decision, Decision::refuse);
    EXPECT_EQ(step_of(word, asks(), policy, turn + 3'000).decision, Decision::probe);
}

TEST(Open, IsLeftByNoResultOfAnyCall) {
    const Word word = open_until(kNow + 1000, 2);
    for (const Millis at : {kNow, kNow + 1000, kNow + kDay}) {
        for (const Verdict verdict : kAllVerdicts) {
            expect_unchanged(word, step_of(word, ended(verdict, {100, 100, 100, 100}), default_policy(), at),
                             Decision::ignored);
            expect_unchanged(word, step_of(word, probe_ended(0, verdict), default_policy(), at), Decision::ignored);
        }
    }
}

// ---- Into half-open.

TEST(Open, OffersAProbeWhenItsOpenTimeIsOverAndStaysOpenUntilOneIsTaken) {
    const Word word = open_until(kNow, 2);
    for (const Millis at : {kNow, kNow + 1, kNow + 30 * kDay}) {
        expect_unchanged(word, step_of(word, asks(), default_policy(), at), Decision::probe);
        EXPECT_EQ(probe_room(word, default_policy(), at), 3U);
    }
}

TEST(Open, BecomesHalfOpenWithTheFirstProbeInItsSlot) {
    for (const unsigned slot : {0U, 2U, 15U}) {
        const Step step = step_of(open_until(kNow, 2), asks_with_lease(slot), default_policy());
        Word expected = empty_round(3);
        expected.generation = 8;
        expected.slots = static_cast<std::uint16_t>(1U << slot);
        EXPECT_EQ(unpack(step.word), expected);
        EXPECT_EQ(step.decision, Decision::probe);
        EXPECT_TRUE(step.transition);
        EXPECT_EQ(step.reason, Reason::open_time_over);
    }
}

TEST(Open, BeginsARoundOfTheAdaptiveNumberWhereThereIsOneAndElseOfThePolicys) {
    Policy policy = default_policy();
    policy.probes.round = 5;
    EXPECT_EQ(unpack(step_of(open_until(kNow, 2), asks_with_lease(0, 0), policy).word).round, 5U);
    EXPECT_EQ(unpack(step_of(open_until(kNow, 2), asks_with_lease(0, 10), policy).word).round, 10U);
    for (const auto too_many : {std::uint8_t{64}, std::uint8_t{100}, std::uint8_t{255}}) {
        EXPECT_EQ(unpack(step_of(open_until(kNow, 2), asks_with_lease(0, too_many), policy).word).round, kMaxProbes);
    }
    policy.probes.round = kMaxProbes;
    EXPECT_EQ(unpack(step_of(open_until(kNow, 2), asks_with_lease(0), policy).word).round, kMaxProbes);
}

TEST(Open, BecomesHalfOpenOnlyOnce) {
    Word word = open_until(kNow, 2);
    EXPECT_TRUE(apply(word, asks_with_lease(0), default_policy()).transition);
    const Step second = apply(word, asks_with_lease(1), default_policy());
    EXPECT_EQ(second.decision, Decision::probe);
    EXPECT_FALSE(second.transition);
    EXPECT_EQ(word.generation, 8U);
    EXPECT_EQ(word.slots, 0b11);
}

// ---- A passing health check.

TEST(EndOpenTime, LetsAnOpenBreakerBeProbedAtOnceAndClosesNothing) {
    Word word = open_until(kNow + 100'000, 2);
    Word expected = word;
    expected.open_until = kNow;
    const Step step = apply(word, end_of_open_time(word.generation), default_policy());
    EXPECT_EQ(step.decision, Decision::counted);
    EXPECT_FALSE(step.transition);
    EXPECT_EQ(word, expected);
    EXPECT_EQ(step_of(word, asks(), default_policy()).decision, Decision::probe);
}

TEST(EndOpenTime, LeavesAnyOtherBreakerAsItIs) {
    const Word due = open_until(kNow - 5, 2);
    expect_unchanged(due, step_of(due, end_of_open_time(due.generation), default_policy()), Decision::ignored);
    for (const State state : kAllStates) {
        if (state == State::open) continue;
        const Event event = end_of_open_time(sample(state).generation);
        expect_unchanged(sample(state), step_of(sample(state), event, default_policy()), Decision::ignored);
    }
}

TEST(EndOpenTime, LeavesABreakerThatHasOpenedAnewSinceTheCheckAsItIs) {
    const Word word = open_until(kNow + 100'000, 2);
    const Event event = end_of_open_time(word.generation - 1);
    expect_unchanged(word, step_of(word, event, default_policy()), Decision::ignored);
}

// ---- MaxOpen.

Policy with_max_open(std::uint32_t percent) {
    Policy policy = default_policy();
    policy.max_open = percent;
    return policy;
}
Event answered(Event event, MaxOpen answer) {
    event.max_open = answer;
    return event;
}

TEST(MaxOpen, IsAskedBeforeATripAndNothingIsWrittenUntilItAnswers) {
    for (const std::uint32_t percent : {1U, 50U, 99U}) {
        for (const State state : {State::closed, State::recovering}) {
            Word word = sample(state);
            word.consecutive = 4;
            Policy policy = with_max_open(percent);
            policy.ramp_up.duration = 60'000;
            for (const Verdict verdict : {Verdict::failure, Verdict::fatal, Verdict::tolerate}) {
                expect_unchanged(word, step_of(word, ended(verdict), policy), Decision::ask_max_open);
            }
        }
    }
}

TEST(MaxOpen, IsNotAskedWhereItCouldNotSayNo) {
    EXPECT_TRUE(step_of(fresh_closed(), ended(Verdict::fatal), with_max_open(100)).transition);
    EXPECT_TRUE(
        step_of(fresh_closed(), answered(ended(Verdict::fatal), MaxOpen::denied), with_max_open(100)).transition);
}

TEST(MaxOpen, IsNotAskedByACallThatWouldNotTrip) {
    for (const Verdict verdict : {Verdict::success, Verdict::failure, Verdict::ignore}) {
        EXPECT_EQ(step_of(fresh_closed(), ended(verdict), with_max_open(1)).decision, Decision::counted);
    }
}

TEST(MaxOpen, LetsTheTripBeCarriedOutWhenItGrants) {
    const Step step =
        step_of(sample(State::closed), answered(ended(Verdict::fatal), MaxOpen::granted), with_max_open(50));
    expect_trip(sample(State::closed), step, Reason::fatal, 3);
}

TEST(MaxOpen, SuppressesTheTripWhenItDeniesAndTheFailureStillCounts) {
    Word word = fresh_closed();
    word.consecutive = 4;
    const Step step = step_of(word, answered(ended(Verdict::failure), MaxOpen::denied), with_max_open(50));
    EXPECT_EQ(step.decision, Decision::suppressed);
    EXPECT_EQ(step.reason, Reason::consecutive_failures);
    EXPECT_FALSE(step.transition);
    word.consecutive = 5;
    EXPECT_EQ(unpack(step.word), word);
}

TEST(MaxOpen, IsAskedAgainByTheNextFailureAfterItDenied) {
    const Policy policy = with_max_open(50);
    Word word = fresh_closed();
    for (int i = 0; i < 10; ++i)
        apply(word, answered(ended(Verdict::failure), MaxOpen::denied), policy);
    EXPECT_EQ(word.state, State::closed);
    EXPECT_EQ(word.generation, 7U);
    EXPECT_EQ(step_of(word, ended(Verdict::failure), policy).decision, Decision::ask_max_open);
    EXPECT_TRUE(step_of(word, answered(ended(Verdict::failure), MaxOpen::granted), policy).transition);
}

TEST(MaxOpen, HasNoSayOverABreakerThatIsHalfOpenAndSoCountedAlready) {
    Word word = empty_round(3);
    word.slots = 1;
    for (const MaxOpen answer : {MaxOpen::unasked, MaxOpen::denied}) {
        expect_trip(word, step_of(word, answered(probe_ended(0, Verdict::failure), answer), with_max_open(1)),
                    Reason::probe_failed, 3);
    }
}

}  // namespace
}  // namespace cb::test
