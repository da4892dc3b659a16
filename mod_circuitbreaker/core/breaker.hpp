// The state machine of one breaker, as a pure function.
//
// Purpose: next(word, event, policy, now) decides what an event does to the control word. What it can't know by itself
// (the window's sums, a random draw, MaxOpen's answer, the size of an adaptive round) comes in with the event. shm/
// applies the result in one CAS loop; httpd/ reports it.
// Invariants:
// - A Step with a transition changes the generation. The one exception is the end of a ramp (recovering -> closed).
// - An early round changes the generation when it begins and when it fails. Neither is a transition.
// - Within a state a reset advances the generation by one, a new window shape by two, so that the words differ.
// - A Step with an unchanged word needs no CAS.
#ifndef CIRCUITBREAKER_CORE_BREAKER_HPP
#define CIRCUITBREAKER_CORE_BREAKER_HPP

#include <cstdint>

#include "policy.hpp"
#include "verdict.hpp"
#include "word.hpp"

namespace cb::core {

/// Sums of a window of one generation. Failures and slow calls are counted against different numbers of calls.
struct Sums {
    std::uint32_t calls = 0;
    std::uint32_t failures = 0;
    std::uint32_t timed_calls = 0;  // calls of the slow ring
    std::uint32_t slow_calls = 0;
};

enum class EventKind : std::uint8_t {
    admit,          ///< a request asks; uses draw, early
    admit_probe,    ///< the same with lease `slot` in hand; uses slot, round, early
    result,         ///< a call ended; uses generation, late, verdict, slow, sums, draw, max_open, least_open_time
    settle_probe,   ///< a probe ended; uses slot, verdict, slow, draw, least_open_time, interrupted
    force_open,     ///< operator
    force_closed,   ///< operator
    reset,          ///< operator: closed, all history cleared
    automatic,      ///< operator: ends a forced state; does nothing in others
    reshape,        ///< the window has a new shape: the same state, generation + 2
    end_open_time,  ///< a passing health check: an open breaker may be probed at once; uses generation
};

enum class MaxOpen : std::uint8_t { unasked, granted, denied };

struct Event {
    EventKind kind = EventKind::admit;
    Verdict verdict = Verdict::success;
    bool slow = false;
    bool late = false;       // the permit is older than kMaxPermitAge
    bool by_client = false;  // a probe that proved nothing because of its client: not counted towards kMaxNeutral
    bool longer = false;     // adaptive probing: an open time that begins now is that of the next level
    bool early = false;      // no other member is left: an open breaker may be probed before its open time is over, and
                             // a half-open one beyond the size of its round
    MaxOpen max_open = MaxOpen::unasked;
    std::uint8_t slot = 0;         // 0..15
    std::uint8_t round = 0;        // size of a round that begins now; 0: the policy's
    std::uint32_t generation = 0;  // of the permit, or of the open state that the health check is about
    std::uint32_t draw = 0;        // uniform over 32 bits: ramp admission, jitter
    Millis least_open_time = 0;    // the failing answer's own Retry-After
    Millis interrupted = 0;        // of an early round: when the open time ends that it began in
    Sums sums;                     // of the permit's generation, after this call was written
};

enum class Decision : std::uint8_t {
    pass,          ///< admit, admit_probe: an ordinary call
    probe,         ///< admit: may be a probe, take a lease and ask again with it; admit_probe: it is one
    refuse,        ///< admit, admit_probe
    counted,       ///< result, settle_probe, operator: done
    ignored,       ///< result, settle_probe, operator: nothing to do (the state has changed since, the slot is gone)
    ask_max_open,  ///< result: would trip; ask MaxOpen and come back with its answer
    suppressed,    ///< result: would have tripped, MaxOpen denied it
    again,         ///< a transition was due first: apply it, then the same event again
};

enum class Reason : std::uint8_t {
    none,
    failure_rate,
    slow_rate,
    consecutive_failures,
    fatal,
    open_time_over,
    no_other_member,  ///< half-open before the open time was over
    probe_failed,
    no_evidence,  ///< kMaxNeutral probes of one round proved nothing
    probes_succeeded,
    ramp_over,
    forced,
    reset,
    failure_count,
};
inline constexpr std::uint32_t kReasons = 14;

struct Step {
    std::uint64_t word;  // the new word; it may be the old one
    Decision decision;
    bool transition;      // a change of state to report
    Reason reason;        // of the transition, or of a refusal to trip
    Millis open_for = 0;  // to open: the open time drawn, or what is left of the one that an early round began in
};

[[nodiscard]] Step next(std::uint64_t word, const Event& event, const Policy& policy, Millis now) noexcept;

/// How many more probes the word admits, given `concurrent` leases. 0 unless the breaker is half-open or its open time
/// is over. With `is_last_resort` (the request finds no other member) only `concurrent` is a limit.
[[nodiscard]] std::uint32_t probe_room(const Word& word, const Policy& policy, Millis now,
                                       bool is_last_resort = false) noexcept;

/// Has the breaker been ready for a probe, and got none, for a whole open time of its level (without jitter)?
/// `probed_at`: when the last probe was admitted; 0: never. False unless the breaker is half-open, or open with its
/// open time over.
[[nodiscard]] bool has_waited_in_vain(const Word& word, const Policy& policy, Millis probed_at, Millis now) noexcept;

/// The reason to open that the window's sums give; Reason::none if they give none.
[[nodiscard]] Reason evidence(const Sums& sums, const Policy& policy) noexcept;

/// Is the step from one word to the next a change of state, or a reset of a closed breaker? Both are reported. New
/// counts, a new window shape, and an early round that begins or fails are neither.
[[nodiscard]] constexpr bool is_change(std::uint64_t before, std::uint64_t after) noexcept {
    if (is_early(after) || (is_early(before) && state_of(after) == State::open)) return false;
    return state_of(before) != state_of(after) ||
           ((generation_of(after) - generation_of(before)) & kGenerationMask) == 1;
}

[[nodiscard]] const char* name(Reason reason) noexcept;

}  // namespace cb::core

#endif
