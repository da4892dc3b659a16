// The breaker: one pure function that decides.
//
// Purpose: next(word, event, policy, now) is the whole state machine of DESIGN 2. What it can't know (sums of the
// window, a random draw, MaxOpen's answer, the size of an adaptive round) comes in with the event. shm/ applies it with
// one CAS loop; httpd/ reports it.
// Thread safety: pure functions on values; no clock, no atomics, no httpd.
// Invariants: a Step that carries a transition changes the generation, except recovering -> closed (the ramp's end);
// an early round changes it when it begins and when it fails, without a transition;
// within a state a reset takes one generation and a window of another shape two, so that the words tell them apart;
// a Step with an unchanged word needs no CAS.
#ifndef CIRCUITBREAKER_CORE_BREAKER_HPP
#define CIRCUITBREAKER_CORE_BREAKER_HPP

#include <cstdint>

#include "policy.hpp"
#include "verdict.hpp"
#include "word.hpp"

namespace cb::core {

/// Sums of a window of one generation. Failures and slow calls have their own count of calls.
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
    automatic,      ///< operator: ends a forced state, otherwise nothing
    reshape,        ///< the window has another shape: a new generation of the same state, two further on
    end_open_time,  ///< a passing health check: an open breaker may be probed at once
};

enum class MaxOpen : std::uint8_t { unasked, granted, denied };

struct Event {
    EventKind kind = EventKind::admit;
    Verdict verdict = Verdict::success;
    bool slow = false;
    bool late = false;       // the permit is older than kMaxPermitAge
    bool by_client = false;  // a probe that proved nothing, by its client's doing: no client can end a round so
    bool longer = false;     // adaptive probing: an open time that begins now is that of one level more
    bool early = false;  // there is no other member: an open breaker may be probed before its open time is over, and
                         // a half-open one by more than its round
    MaxOpen max_open = MaxOpen::unasked;
    std::uint8_t slot = 0;         // 0..15
    std::uint8_t round = 0;        // size of a round that begins now; 0: the policy's
    std::uint32_t generation = 0;  // of the permit
    std::uint32_t draw = 0;        // uniform over 32 bits: ramp admission, jitter
    Millis least_open_time = 0;    // the failing answer's own Retry-After
    Millis interrupted = 0;        // of an early round: the end of the open time that it began in
    Sums sums;                     // of the permit's generation, after this call was written
};

enum class Decision : std::uint8_t {
    pass,          ///< admit, admit_probe: an ordinary call
    probe,         ///< admit: may be a probe, take a lease and ask again with it; admit_probe: it is one
    refuse,        ///< admit, admit_probe
    counted,       ///< result, settle_probe, operator: done
    ignored,       ///< result, settle_probe, operator: nothing to decide (the breaker has moved on, the slot is gone)
    ask_max_open,  ///< result: would trip; ask MaxOpen and come back with its answer
    suppressed,    ///< result: would have tripped, MaxOpen denied it
    again,         ///< a transition was due first: apply it, then the same event once more
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
    no_evidence,  ///< kMaxNeutral probes of a round proved nothing
    probes_succeeded,
    ramp_over,
    forced,
    reset,
};

struct Step {
    std::uint64_t word;  // what to CAS in, if it differs
    Decision decision;
    bool transition;      // a change of state to report
    Reason reason;        // of the transition, or of a refusal to trip
    Millis open_for = 0;  // to open: the open time drawn, or what is left of the one that an early round began in
};

[[nodiscard]] Step next(std::uint64_t word, const Event& event, const Policy& policy, Millis now) noexcept;

/// Probes that the word lets in still, given `concurrent` leases (0 unless open time is over or half-open).
/// For a request that finds no other member (`is_last_resort`) neither the open time nor the size of the round is a
/// limit.
[[nodiscard]] std::uint32_t probe_room(const Word& word, const Policy& policy, Millis now,
                                       bool is_last_resort = false) noexcept;

/// Has it waited for a probe, and none been taken, for a whole open time of its level (without jitter)? `probed_at`:
/// when the last one was; 0: never. False unless it is half-open, or open and its open time over.
[[nodiscard]] bool has_waited_in_vain(const Word& word, const Policy& policy, Millis probed_at, Millis now) noexcept;

/// Evidence in the window that trips by itself; Reason::none if there is none.
[[nodiscard]] Reason evidence(const Sums& sums, const Policy& policy) noexcept;

/// Of two words that follow on one another: is the step between them a change of state, or a reset of a closed breaker?
/// Both are reported. (Not: counts, a window of another shape, and an early round that begins, or fails: it leaves the
/// breaker as it was.)
[[nodiscard]] constexpr bool is_change(std::uint64_t before, std::uint64_t after) noexcept {
    if (is_early(after) || (is_early(before) && state_of(after) == State::open)) return false;
    return state_of(before) != state_of(after) ||
           ((generation_of(after) - generation_of(before)) & kGenerationMask) == 1;
}

[[nodiscard]] const char* name(Reason reason) noexcept;

}  // namespace cb::core

#endif
