// The control word: the whole state of one breaker in 64 bits, so that one CAS is one state change.
//
//   63..61 state | 60..56 level | 55..36 generation | 35..0 payload
//
//   state              payload, from its high end
//   closed             consecutive failures:10, has tripped:1, successes since closing:25 (saturating)
//   open               end of the open time:36, ms since segment start
//   half-open          slots:16, round:6, successes:6, failures:4, neutral:4
//   recovering         start of the ramp:26 (64 ms units), consecutive failures:10
//   forced-open/closed 0
//
// The state field has a seventh code, for a half-open breaker whose round began before its open time was over
// (`early`).
//
// Purpose: packing and unpacking, nothing else; breaker.hpp decides.
// Invariants: an all-zero word is a valid closed breaker; unpack(pack(w)) == w for every w within its widths.
#ifndef CIRCUITBREAKER_CORE_WORD_HPP
#define CIRCUITBREAKER_CORE_WORD_HPP

#include <cstdint>

#include "policy.hpp"

namespace cb::core {

enum class State : std::uint8_t { closed, open, half_open, recovering, forced_open, forced_closed };
inline constexpr std::uint32_t kStates = 6;
inline constexpr std::uint32_t kMaxLevel = 31;
inline constexpr std::uint32_t kGenerationBits = 20;
inline constexpr std::uint32_t kGenerationMask = (1U << kGenerationBits) - 1;
inline constexpr std::uint32_t kMaxSuccessesSinceClosing = (1U << 25) - 1;
/// Points of time have 36 bits, here and in the records of shared memory: ms since segment start, modulo two years.
inline constexpr std::uint32_t kTimeBits = 36;
inline constexpr Millis kTimeMask = (Millis{1} << kTimeBits) - 1;
inline constexpr Millis kRampUnit = 64;  // ms

/// The control word, unpacked. Fields that the state does not use are 0.
struct Word {
    State state = State::closed;
    std::uint8_t level = 0;
    std::uint32_t generation = 0;
    std::uint32_t consecutive = 0;              // closed, recovering
    bool tripped = false;                       // closed: it has opened before and is not proven well since
    std::uint32_t successes_since_closing = 0;  // closed
    Millis open_until = 0;                      // open: ms since segment start, modulo 2^36
    std::uint16_t slots = 0;                    // half-open: a bit per probe in flight
    std::uint8_t round = 0;                     // half-open: size of this round
    std::uint8_t successes = 0;                 // half-open
    std::uint8_t failures = 0;                  // half-open
    std::uint8_t neutral = 0;                   // half-open
    std::uint32_t ramp_start = 0;               // recovering: in units of kRampUnit, modulo 2^26
    bool early = false;                         // half-open: the round began before the open time was over
    friend bool operator==(const Word&, const Word&) = default;
};

[[nodiscard]] std::uint64_t pack(const Word& word) noexcept;
[[nodiscard]] Word unpack(std::uint64_t bits) noexcept;

/// The state field of an early half-open word.
inline constexpr std::uint64_t kEarlyCode = kStates;

/// State and generation alone, for the paths that need no more.
[[nodiscard]] constexpr State state_of(std::uint64_t bits) noexcept {
    return bits >> 61 == kEarlyCode ? State::half_open : static_cast<State>(bits >> 61);
}
[[nodiscard]] constexpr bool is_early(std::uint64_t bits) noexcept {
    return bits >> 61 == kEarlyCode;
}
[[nodiscard]] constexpr std::uint32_t generation_of(std::uint64_t bits) noexcept {
    return static_cast<std::uint32_t>(bits >> kTimeBits) & kGenerationMask;
}

/// True for a closed breaker in its usual state (no failures in a row, well for long): a success has nothing to write.
[[nodiscard]] constexpr bool is_quiet(std::uint64_t bits) noexcept {
    return (bits & ~(std::uint64_t{kGenerationMask} << kTimeBits)) == 0;
}

/// Time left until an open breaker may be probed; 0 once it may be. A time further ahead than any legal open time
/// counts as passed: the word was written long ago, and its 36 bits have wrapped.
[[nodiscard]] Millis open_remaining(const Word& word, Millis now) noexcept;
/// Time since the open time was over; 0 until then. Right for two years.
[[nodiscard]] Millis due_for(const Word& word, Millis now) noexcept;
/// Time since the ramp began, at most ramp_up.duration. 0 if it begins later than `now`: another process has read the
/// clock after us.
[[nodiscard]] Millis ramp_elapsed(const Word& word, const RampUp& ramp_up, Millis now) noexcept;

/// The state's name as logs, pages and metrics spell it.
[[nodiscard]] const char* name(State state) noexcept;

}  // namespace cb::core

#endif
