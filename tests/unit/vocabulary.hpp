// What the tests of the core say: words, events and policies by name, and how gtest prints them.
#ifndef CIRCUITBREAKER_TESTS_UNIT_VOCABULARY_HPP
#define CIRCUITBREAKER_TESTS_UNIT_VOCABULARY_HPP

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <ostream>

#include "core/breaker.hpp"

namespace cb::core {

inline void PrintTo(State state, std::ostream* out) {
    *out << name(state);
}
inline void PrintTo(Verdict verdict, std::ostream* out) {
    *out << name(verdict);
}
inline void PrintTo(Reason reason, std::ostream* out) {
    *out << name(reason);
}
inline void PrintTo(Decision decision, std::ostream* out) {
    constexpr const char* kNames[] = {"pass",    "probe",        "refuse",     "counted",
                                      "ignored", "ask_max_open", "suppressed", "again"};
    *out << kNames[static_cast<std::size_t>(decision)];
}
inline void PrintTo(const Word& word, std::ostream* out) {
    *out << name(word.state) << " level " << +word.level << " generation " << word.generation << " {consecutive "
         << word.consecutive << ", tripped " << word.tripped << ", since closing " << word.successes_since_closing
         << ", open until " << word.open_until << ", slots " << word.slots << ", round " << +word.round
         << ", successes " << +word.successes << ", failures " << +word.failures << ", neutral " << +word.neutral
         << ", early " << word.early << ", ramp start " << word.ramp_start << '}';
}

}  // namespace cb::core

namespace cb::test {

using namespace cb::core;  // NOLINT: these files are about nothing else

inline constexpr Millis kNow = 1'000'000;  // a moment in the life of the segment
inline constexpr std::uint32_t kNoJitter = 1U << 31;
inline constexpr std::uint32_t kLargestDraw = ~0U;
inline constexpr Verdict kAllVerdicts[] = {Verdict::success, Verdict::failure, Verdict::fatal, Verdict::tolerate,
                                           Verdict::ignore};
inline constexpr State kAllStates[] = {State::closed,     State::open,        State::half_open,
                                       State::recovering, State::forced_open, State::forced_closed};
/// A window too young for any rate.
inline constexpr Sums kNoSums{};

/// The documented defaults, switched on.
inline Policy default_policy() {
    Policy policy;
    policy.mode = Mode::on;
    return policy;
}
/// Nothing trips but what the test adds.
inline Policy numb_policy() {
    Policy policy = default_policy();
    policy.failure_rate = 0;
    policy.consecutive_failures = 0;
    return policy;
}

/// Every state with generation 7 and something in each field it has.
inline Word sample(State state) {
    Word word;
    word.state = state;
    word.generation = 7;
    switch (state) {
        case State::closed:
            word.level = 2;
            word.consecutive = 3;
            word.tripped = true;
            word.successes_since_closing = 4;
            break;
        case State::open:
            word.level = 2;
            word.open_until = kNow + 5000;
            break;
        case State::half_open:
            word.level = 2;
            word.slots = 0b0010;
            word.round = 3;
            word.successes = 1;
            word.neutral = 1;
            break;
        case State::recovering:
            word.level = 2;
            word.ramp_start = static_cast<std::uint32_t>(kNow / kRampUnit);
            word.consecutive = 3;
            break;
        case State::forced_open:
        case State::forced_closed:
            break;
    }
    return word;
}
/// Closed as at the very beginning, but for its generation.
inline Word fresh_closed(std::uint32_t generation = 7) {
    Word word;
    word.generation = generation;
    return word;
}
inline Word open_until(Millis end, std::uint8_t level = 0) {
    Word word;
    word.state = State::open;
    word.level = level;
    word.generation = 7;
    word.open_until = end % (Millis{1} << 36);
    return word;
}
/// A round of half-open as it begins, but with no slot taken.
inline Word empty_round(std::uint8_t round) {
    Word word;
    word.state = State::half_open;
    word.generation = 7;
    word.level = 2;
    word.round = round;
    return word;
}

inline Event asks(std::uint32_t draw = 0) {
    Event event;
    event.kind = EventKind::admit;
    event.draw = draw;
    return event;
}
inline Event asks_with_lease(unsigned slot, std::uint8_t round = 0) {
    Event event;
    event.kind = EventKind::admit_probe;
    event.slot = static_cast<std::uint8_t>(slot);
    event.round = round;
    return event;
}
/// A call of generation 7 ended.
inline Event ended(Verdict verdict, const Sums& sums = kNoSums) {
    Event event;
    event.kind = EventKind::result;
    event.verdict = verdict;
    event.generation = 7;
    event.draw = kNoJitter;
    event.sums = sums;
    return event;
}
inline Event ended_slow(Verdict verdict, const Sums& sums = kNoSums) {
    Event event = ended(verdict, sums);
    event.slow = true;
    return event;
}
inline Event probe_ended(unsigned slot, Verdict verdict, bool slow = false) {
    Event event;
    event.kind = EventKind::settle_probe;
    event.slot = static_cast<std::uint8_t>(slot);
    event.verdict = verdict;
    event.slow = slow;
    event.draw = kNoJitter;
    return event;
}
inline Event end_of_open_time(std::uint32_t generation) {
    Event event;
    event.kind = EventKind::end_open_time;
    event.generation = generation & kGenerationMask;
    return event;
}

inline Event of_kind(EventKind kind) {
    Event event;
    event.kind = kind;
    return event;
}

/// next() on words instead of bits.
inline Step step_of(const Word& word, const Event& event, const Policy& policy, Millis now = kNow) {
    return next(pack(word), event, policy, now);
}

/// Applies an event to a word that lives on, as the CAS loop of shm/ does: what was due first is carried out first.
inline Step apply(Word& word, const Event& event, const Policy& policy, Millis now = kNow) {
    for (;;) {
        const Step step = step_of(word, event, policy, now);
        word = unpack(step.word);
        if (step.decision != Decision::again) return step;
    }
}

inline void expect_unchanged(const Word& word, const Step& step, Decision decision) {
    EXPECT_EQ(step.decision, decision);
    EXPECT_EQ(unpack(step.word), word);
    EXPECT_EQ(step.word, pack(word));
    EXPECT_FALSE(step.transition);
}

inline void expect_counted(const Word& expected, const Step& step) {
    EXPECT_EQ(step.decision, Decision::counted);
    EXPECT_EQ(unpack(step.word), expected);
    EXPECT_FALSE(step.transition);
}

/// A trip: open, one generation later, at `level`, for as long as the step says, with nothing left of what was before.
inline void expect_trip(const Word& before, const Step& step, Reason reason, std::uint32_t level, Millis now = kNow) {
    Word expected;
    expected.state = State::open;
    expected.level = static_cast<std::uint8_t>(level);
    expected.generation = (before.generation + 1) & kGenerationMask;
    expected.open_until = now + step.open_for;
    EXPECT_EQ(unpack(step.word), expected);
    EXPECT_EQ(step.decision, Decision::counted);
    EXPECT_TRUE(step.transition);
    EXPECT_EQ(step.reason, reason);
    EXPECT_GE(step.open_for, kMinOpenTime);
    EXPECT_LE(step.open_for, kMaxOpenTime);
}

}  // namespace cb::test

#endif
