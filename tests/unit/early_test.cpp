// Probes before the open time is over, where nothing else can serve.
#include <cstdint>

#include "vocabulary.hpp"

namespace cb::test {
namespace {

constexpr Millis kEnd = kNow + 4000;

Word open_word() {
    return open_until(kEnd, 2);
}

Event without_others(Event event) {
    event.early = true;
    return event;
}

/// An early round that has begun with slot 1, out of open_word().
Word early_word() {
    return unpack(step_of(open_word(), without_others(asks_with_lease(1)), default_policy()).word);
}

Event early_probe_ended(unsigned slot, Verdict verdict) {
    Event event = probe_ended(slot, verdict);
    event.interrupted = kEnd;
    return event;
}

void expect_as_before(const Step& step, Millis now = kNow) {
    Word expected = open_word();
    expected.generation = 9;
    EXPECT_EQ(unpack(step.word), expected);
    EXPECT_EQ(step.decision, Decision::counted);
    EXPECT_FALSE(step.transition);
    EXPECT_EQ(step.open_for, kEnd - now);
}

TEST(EarlyRound, IsOfferedToARequestThatFindsNoOtherMemberAndStaysOpenUntilOneIsTaken) {
    expect_unchanged(open_word(), step_of(open_word(), asks(), default_policy()), Decision::refuse);
    expect_unchanged(open_word(), step_of(open_word(), without_others(asks()), default_policy()), Decision::probe);
}

TEST(EarlyRound, BeginsHalfOpenAndIsNoChangeOfState) {
    const Step step = step_of(open_word(), without_others(asks_with_lease(1)), default_policy());
    Word expected;
    expected.state = State::half_open;
    expected.level = 2;
    expected.generation = 8;
    expected.slots = 0b10;
    expected.round = 3;
    expected.early = true;
    EXPECT_EQ(unpack(step.word), expected);
    EXPECT_EQ(step.decision, Decision::probe);
    EXPECT_EQ(step.reason, Reason::no_other_member);
    EXPECT_FALSE(step.transition);
    EXPECT_FALSE(is_change(pack(open_word()), step.word));
}

TEST(EarlyRound, IsAnOrdinaryOneOnceTheOpenTimeIsOver) {
    const Step step = step_of(open_word(), without_others(asks_with_lease(1)), default_policy(), kEnd);
    EXPECT_EQ(step.reason, Reason::open_time_over);
    EXPECT_TRUE(step.transition);
    EXPECT_FALSE(is_early(step.word));
}

TEST(EarlyRound, HasTheCapOfAnyRound) {
    Word word = early_word();
    EXPECT_EQ(probe_room(word, default_policy(), kNow), 2U);
    EXPECT_EQ(apply(word, asks_with_lease(0), default_policy()).decision, Decision::probe);
    EXPECT_EQ(apply(word, without_others(asks_with_lease(2)), default_policy()).decision, Decision::probe);
    expect_unchanged(word, step_of(word, without_others(asks()), default_policy()), Decision::refuse);
    expect_unchanged(word, step_of(word, without_others(asks_with_lease(3)), default_policy()), Decision::refuse);
    EXPECT_TRUE(word.early);
}

TEST(EarlyRound, IsNoLimitToARequestThatFindsNoOtherMember) {
    // Three of three are admitted, two of them have succeeded: one in flight.
    for (const bool is_early : {true, false}) {
        Word word = empty_round(3);
        word.early = is_early;
        word.slots = 0b001;
        word.successes = 2;
        expect_unchanged(word, step_of(word, asks(), default_policy()), Decision::refuse);
        expect_unchanged(word, step_of(word, without_others(asks()), default_policy()), Decision::probe);
        EXPECT_EQ(apply(word, without_others(asks_with_lease(1)), default_policy()).decision, Decision::probe);
        EXPECT_EQ(apply(word, without_others(asks_with_lease(2)), default_policy()).decision, Decision::probe);
        EXPECT_EQ(word.slots, 0b111);
        EXPECT_EQ(step_of(word, without_others(asks()), default_policy()).decision, Decision::refuse)
            << "`concurrent` is one";
        EXPECT_EQ(apply(word, early_probe_ended(2, Verdict::success), default_policy()).reason,
                  Reason::probes_succeeded);
    }
}

TEST(EarlyRound, ThatFailsLeavesEndAndLevelAsTheyWere) {
    for (const Verdict verdict : {Verdict::failure, Verdict::fatal}) {
        const Step step = step_of(early_word(), early_probe_ended(1, verdict), default_policy(), kNow + 100);
        expect_as_before(step, kNow + 100);
        EXPECT_FALSE(is_change(pack(early_word()), step.word));
    }
    Event slow = early_probe_ended(1, Verdict::success);
    slow.slow = true;
    expect_as_before(step_of(early_word(), slow, default_policy()));
}

TEST(EarlyRound, ThatProvesNothingLeavesEndAndLevelAsTheyWere) {
    Word word = early_word();
    for (std::uint32_t n = 1; n < kMaxNeutral; ++n) {
        ASSERT_EQ(apply(word, early_probe_ended(1, Verdict::ignore), default_policy()).decision, Decision::counted);
        ASSERT_EQ(apply(word, asks_with_lease(1), default_policy()).decision, Decision::probe);
    }
    expect_as_before(step_of(word, early_probe_ended(1, Verdict::ignore), default_policy()));
}

TEST(EarlyRound, ThatFailsAfterTheOpenTimeIsOverMayBeFollowedByAnotherAtOnce) {
    Word word = early_word();
    const Step step = apply(word, early_probe_ended(1, Verdict::failure), default_policy(), kEnd + 50);
    EXPECT_EQ(step.open_for, 0U);
    EXPECT_EQ(word.level, 2);
    const Step next = step_of(word, asks_with_lease(0), default_policy(), kEnd + 50);
    EXPECT_EQ(next.decision, Decision::probe);
    EXPECT_EQ(next.reason, Reason::open_time_over);
}

TEST(EarlyRound, ThatSucceedsIsAsAnyOther) {
    for (const Millis ramp : {Millis{0}, Millis{5000}}) {
        Policy policy = default_policy();
        policy.ramp_up.duration = ramp;
        policy.probes = {1, 1, 0, 1, 1};
        const Step step = step_of(early_word(), early_probe_ended(1, Verdict::success), policy);
        const Word after = unpack(step.word);
        EXPECT_EQ(after.state, ramp > 0 ? State::recovering : State::closed);
        EXPECT_EQ(after.level, 2);
        EXPECT_TRUE(step.transition);
        EXPECT_TRUE(is_change(pack(early_word()), step.word));
        EXPECT_EQ(step.reason, Reason::probes_succeeded);
    }
}

TEST(EarlyRound, TakesNeitherRetryAfterNorALongerTimeFromAProbeThatFails) {
    Policy policy = default_policy();
    policy.open_time.retry_after = true;
    Event event = early_probe_ended(1, Verdict::failure);
    event.least_open_time = 200'000;
    event.longer = true;
    expect_as_before(step_of(early_word(), event, policy));
}

TEST(EarlyRound, IsEndedByAnOperatorAsAnyStateIs) {
    for (const EventKind kind : {EventKind::force_open, EventKind::force_closed, EventKind::reset}) {
        const Step step = step_of(early_word(), of_kind(kind), default_policy());
        EXPECT_TRUE(step.transition);
        EXPECT_TRUE(is_change(pack(early_word()), step.word));
        EXPECT_EQ(unpack(step.word).level, 0);
    }
}

TEST(EarlyRound, StaysOneWhenTheWindowGetsAnotherShape) {
    const Word after = unpack(step_of(early_word(), of_kind(EventKind::reshape), default_policy()).word);
    EXPECT_TRUE(after.early);
    EXPECT_EQ(after.generation, 10U);
}

TEST(EarlyRound, IsForNoStateButOpenAndHalfOpen) {
    for (const State state : {State::closed, State::recovering, State::forced_open, State::forced_closed}) {
        for (const Event& event : {asks(), asks_with_lease(0)}) {
            const Step plain = step_of(sample(state), event, default_policy());
            const Step early = step_of(sample(state), without_others(event), default_policy());
            EXPECT_EQ(early.word, plain.word) << name(state);
            EXPECT_EQ(early.decision, plain.decision) << name(state);
        }
    }
}

}  // namespace
}  // namespace cb::test
