// Flapping: a breaker that opens again and again, in figures, and which settings may help.
//
// Purpose: more than kFlappingOpenings openings within kFlappingSpans of its open times is flapping. shm/flapping
// gathers the figures, suggest() reads them, httpd/ puts them into words.
#ifndef CIRCUITBREAKER_CORE_FLAPPING_HPP
#define CIRCUITBREAKER_CORE_FLAPPING_HPP

#include <cstdint>

#include "policy.hpp"

namespace cb::core {

inline constexpr std::uint32_t kFlappingOpenings = 3;
inline constexpr std::uint32_t kFlappingSpans = 10;

/// What would help, as far as the figures tell. Several may hold, or none.
struct Suggestions {
    bool open_time = false;             // it is shorter than the recovery took
    bool failure_rate = false;          // close to the usual share of failures
    bool consecutive_failures = false;  // that many in a row happen by chance
    bool slow_call = false;             // close to the usual share of slow calls, or to the time that probes take
    bool probe_timeout = false;         // most failed probes ran into it
    bool ramp_up = false;               // there is none, and it opens again as soon as it is back
    friend bool operator==(const Suggestions&, const Suggestions&) = default;
};

struct Flapping {
    std::uint32_t openings = 0;  // within `span`
    Millis span = 0;             // kFlappingSpans times its open time at the present level
    // How they came about.
    std::uint32_t by_failure_rate = 0;
    std::uint32_t by_slow_rate = 0;
    std::uint32_t by_consecutive_failures = 0;
    std::uint32_t after_recovery = 0;  // it had just been closed and was not proven well yet
    // The longest time from an opening until the probes succeeded, if the breaker opened again in between.
    Millis recovery = 0;        // 0: none
    bool is_recovered = false;  // false: no such time has ended, `recovery` is the present one so far
    // All calls that ever counted.
    std::uint64_t calls = 0;
    std::uint64_t failures = 0;
    std::uint64_t slow_calls = 0;
    std::uint64_t all_openings = 0;
    // Among the last failing calls.
    std::uint32_t failed_probes = 0;
    std::uint32_t timed_out_probes = 0;  // after CircuitBreakerProbeTimeout, or a little more
    std::uint32_t slow_probes = 0;       // answered, a little later than CircuitBreakerSlowCall allows
    // The limits in force.
    Millis open_time = 0;
    std::uint32_t failure_rate = 0;
    std::uint32_t consecutive_failures = 0;
    SlowCall slow_call;
    Millis probe_timeout = 0;
    Suggestions suggestions;
};

/// A latency beyond `limit`, but not by more than a quarter and 100 ms. False if there is no limit.
[[nodiscard]] bool is_just_above(Millis latency, Millis limit) noexcept;

/// Fills in the limits of the policy, and what the figures suggest under it.
void suggest(Flapping& figures, const Policy& policy) noexcept;

}  // namespace cb::core

#endif
