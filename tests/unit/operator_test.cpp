// What an operator can do in each state, and the two events that come from neither calls nor operators.
#include <cstdint>
#include <utility>

#include "vocabulary.hpp"

namespace cb::test {
namespace {

bool is_forced(State state) {
    return state == State::forced_open || state == State::forced_closed;
}
Word of_generation_eight(State state) {
    Word word;
    word.state = state;
    word.generation = 8;
    return word;
}

// ---- Forcing.

TEST(Operator, ForcesABreakerOfAnyStateOpenOrClosed) {
    for (const State from : kAllStates) {
        for (const auto& [kind, to] : {std::pair{EventKind::force_open, State::forced_open},
                                       std::pair{EventKind::force_closed, State::forced_closed}}) {
            if (from == to) continue;
            const Step step = step_of(sample(from), of_kind(kind), default_policy());
            EXPECT_EQ(unpack(step.word), of_generation_eight(to)) << name(from);
            EXPECT_EQ(step.decision, Decision::counted);
            EXPECT_TRUE(step.transition);
            EXPECT_EQ(step.reason, Reason::forced);
        }
    }
}

TEST(Operator, ForcingWhatIsForcedAlreadyChangesNothing) {
    expect_unchanged(sample(State::forced_open),
                     step_of(sample(State::forced_open), of_kind(EventKind::force_open), default_policy()),
                     Decision::ignored);
    expect_unchanged(sample(State::forced_closed),
                     step_of(sample(State::forced_closed), of_kind(EventKind::force_closed), default_policy()),
                     Decision::ignored);
}

TEST(Operator, ForcesOpenWithoutAskingMaxOpen) {
    Policy policy = default_policy();
    policy.max_open = 1;
    EXPECT_TRUE(step_of(fresh_closed(), of_kind(EventKind::force_open), policy).transition);
}

TEST(ForcedOpen, RefusesEverything) {
    const Word word = sample(State::forced_open);
    for (const Millis at : {Millis{0}, kNow, kNow + 365 * kDay}) {
        for (const Event& event : {asks(0), asks(kLargestDraw), asks_with_lease(0), asks_with_lease(15, 63)}) {
            expect_unchanged(word, step_of(word, event, default_policy(), at), Decision::refuse);
        }
        EXPECT_EQ(probe_room(word, default_policy(), at), 0U);
    }
}

TEST(ForcedClosed, LetsEverythingPass) {
    const Word word = sample(State::forced_closed);
    for (const Millis at : {Millis{0}, kNow, kNow + 365 * kDay}) {
        for (const Event& event : {asks(0), asks(kLargestDraw), asks_with_lease(0), asks_with_lease(15, 63)}) {
            expect_unchanged(word, step_of(word, event, default_policy(), at), Decision::pass);
        }
    }
}

TEST(Forced, IsLeftByNothingButTheOperator) {
    Policy policy = default_policy();
    policy.ramp_up.duration = 1000;
    for (const State state : {State::forced_open, State::forced_closed}) {
        for (const Verdict verdict : kAllVerdicts) {
            const Sums worst{1000, 1000, 1000, 1000};
            expect_unchanged(sample(state), step_of(sample(state), ended_slow(verdict, worst), policy),
                             Decision::ignored);
            expect_unchanged(sample(state), step_of(sample(state), probe_ended(0, verdict), policy), Decision::ignored);
        }
        expect_unchanged(sample(state), step_of(sample(state), of_kind(EventKind::end_open_time), policy),
                         Decision::ignored);
    }
}

// ---- Automatic and reset.

TEST(Operator, AutomaticEndsAForcedStateWithACleanBreaker) {
    for (const State state : {State::forced_open, State::forced_closed}) {
        const Step step = step_of(sample(state), of_kind(EventKind::automatic), default_policy());
        EXPECT_EQ(unpack(step.word), of_generation_eight(State::closed));
        EXPECT_EQ(step.decision, Decision::counted);
        EXPECT_TRUE(step.transition);
    }
}

TEST(Operator, AutomaticLeavesABreakerThatIsNotForcedAsItIs) {
    for (const State state : kAllStates) {
        if (is_forced(state)) continue;
        expect_unchanged(sample(state), step_of(sample(state), of_kind(EventKind::automatic), default_policy()),
                         Decision::ignored);
    }
}

TEST(Operator, ResetClosesABreakerOfAnyStateAndClearsItsHistory) {
    for (const State state : kAllStates) {
        const Step step = step_of(sample(state), of_kind(EventKind::reset), default_policy());
        EXPECT_EQ(unpack(step.word), of_generation_eight(State::closed)) << name(state);
        EXPECT_EQ(step.decision, Decision::counted);
        EXPECT_EQ(step.reason, Reason::reset);
        EXPECT_EQ(step.transition, state != State::closed) << name(state);
        EXPECT_TRUE(is_quiet(step.word));
    }
}

TEST(Operator, ResetOfAClosedBreakerMakesTheResultsUnderWayLate) {
    Word word = sample(State::closed);
    apply(word, of_kind(EventKind::reset), default_policy());
    EXPECT_EQ(apply(word, ended(Verdict::fatal), default_policy()).decision, Decision::ignored);
}

TEST(Operator, MakesTheFirstTripAfterAResetOneOfLevelZero) {
    for (const State state : kAllStates) {
        Word word = sample(state);
        apply(word, of_kind(EventKind::reset), default_policy());
        Event event = ended(Verdict::fatal);
        event.generation = word.generation;
        expect_trip(word, step_of(word, event, default_policy()), Reason::fatal, 0);
    }
}

TEST(Operator, TakesTheSlotsOfProbesUnderWayAwaySoThatTheirEndsDecideNothing) {
    for (const EventKind kind : {EventKind::force_open, EventKind::force_closed, EventKind::reset}) {
        Word word = sample(State::half_open);  // slot 1 is taken
        apply(word, of_kind(kind), default_policy());
        for (const Verdict verdict : kAllVerdicts) {
            expect_unchanged(word, step_of(word, probe_ended(1, verdict), default_policy()), Decision::ignored);
        }
    }
}

TEST(Operator, CountsTheGenerationRoundPastItsLastNumber) {
    for (const EventKind kind : {EventKind::force_open, EventKind::reset, EventKind::reshape}) {
        const std::uint32_t steps = kind == EventKind::reshape ? 2 : 1;
        const Step step = step_of(fresh_closed(kGenerationMask), of_kind(kind), default_policy());
        EXPECT_EQ(generation_of(step.word), steps - 1);
        EXPECT_EQ(unpack(step.word).level, 0U);
    }
}

// ---- Another window.

TEST(Reshape, BeginsANewGenerationOfTheSameStateAndIsNoTransition) {
    for (const State state : kAllStates) {
        Word expected = sample(state);
        expected.generation = 9;  // two further on: one would be a reset
        expect_counted(expected, step_of(sample(state), of_kind(EventKind::reshape), default_policy()));
    }
}

TEST(AChange, IsOneOfStateOrAResetAndNothingElse) {
    for (const State state : kAllStates) {
        const std::uint64_t before = pack(sample(state));
        const auto is_one = [&](EventKind kind) {
            return is_change(before, step_of(sample(state), of_kind(kind), default_policy()).word);
        };
        EXPECT_TRUE(is_one(EventKind::reset)) << name(state);
        EXPECT_FALSE(is_one(EventKind::reshape)) << name(state);
        EXPECT_FALSE(is_one(EventKind::end_open_time)) << name(state);
        EXPECT_EQ(is_one(EventKind::force_open), state != State::forced_open) << name(state);
    }
    const std::uint64_t last = pack(fresh_closed(kGenerationMask));
    EXPECT_TRUE(is_change(last, step_of(unpack(last), of_kind(EventKind::reset), default_policy()).word));
    EXPECT_FALSE(is_change(last, step_of(unpack(last), of_kind(EventKind::reshape), default_policy()).word));
}

TEST(Reshape, MakesResultsOfTheOlderWindowLate) {
    Word word = sample(State::closed);
    apply(word, of_kind(EventKind::reshape), default_policy());
    EXPECT_EQ(apply(word, ended(Verdict::fatal), default_policy()).decision, Decision::ignored);
}

TEST(Reshape, LetsARoundOfHalfOpenGoOn) {
    Word word = sample(State::half_open);
    apply(word, of_kind(EventKind::reshape), default_policy());
    EXPECT_EQ(apply(word, probe_ended(1, Verdict::success), default_policy()).decision, Decision::counted);
    EXPECT_EQ(word.successes, 2U);
    EXPECT_EQ(word.slots, 0U);
}

TEST(Reasons, EachHaveANameOfTheirOwn) {
    const Reason reasons[] = {Reason::none,         Reason::failure_rate,     Reason::slow_rate,
                              Reason::fatal,        Reason::open_time_over,   Reason::consecutive_failures,
                              Reason::probe_failed, Reason::probes_succeeded, Reason::no_evidence,
                              Reason::ramp_over,    Reason::forced,           Reason::reset};
    for (const Reason one : reasons) {
        EXPECT_STRNE(name(one), "");
        for (const Reason other : reasons)
            EXPECT_EQ(std::string_view(name(one)) == name(other), one == other);
    }
}

}  // namespace
}  // namespace cb::test
