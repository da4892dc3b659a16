// Flapping: a breaker that opens again and again, in figures, and what they suggest.
//
// Purpose: more than kFlappingOpenings openings within kFlappingSpans of its open times is flapping. shm/flapping
// gathers the figures; suggest() reads them; httpd/ puts them in words.
// Thread safety: pure functions on values.
#ifndef CIRCUITBREAKER_CORE_FLAPPING_HPP
#define CIRCUITBREAKER_CORE_FLAPPING_HPP

#include <cstdint>

#include "policy.hpp"

namespace cb::core {

inline constexpr std::uint32_t kFlappingOpenings = 3;
inline constexpr std::uint32_t kFlappingSpans = 10;

/// What would help, as far as the figures tell. Several may hold, or none.
struct Suggestions {
    bool open_time = false;             // it is shorter than the recovery seen
    bool failure_rate = false;          // close to the usual share of failures
    bool consecutive_failures = false;  // so many in a row come by chance
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
    // From its first opening until its probes succeeded, if it opened again in between; the longest time of the span.
    Millis recovery = 0;        // 0: none
    bool is_recovered = false;  // false: it is the time so far, as none has ended
    // All its calls that counted, ever.
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
