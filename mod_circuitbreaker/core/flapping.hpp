// Flapping: a breaker that opens again and again, in figures and in words.
//
// Purpose: more than kFlappingOpenings openings within kFlappingSpans of its open times is flapping. shm/flapping
// gathers the figures; the words say what happened, and which directive the figures suggest to change.
// Thread safety: pure functions on values.
#ifndef CIRCUITBREAKER_CORE_FLAPPING_HPP
#define CIRCUITBREAKER_CORE_FLAPPING_HPP

#include "policy.hpp"

namespace cb::core {

inline constexpr std::uint32_t kFlappingOpenings = 3;
inline constexpr std::uint32_t kFlappingSpans = 10;

struct Flapping {
    Millis span = 0;             // kFlappingSpans times its open time at the present level
    std::uint32_t openings = 0;  // within `span`; whether one of them came about by:
    bool by_failure_rate = false;
    bool by_slow_rate = false;
    bool by_consecutive_failures = false;
    std::uint32_t after_recovery = 0;  // of them, when it had just been closed and was not proven well yet
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
};

/// A latency beyond `limit`, but not by more than a quarter and 100 ms. False if there is no limit.
[[nodiscard]] constexpr bool is_just_above(Millis latency, Millis limit) noexcept {
    return limit > 0 && latency >= limit && latency <= limit + limit / 4 + 100;
}

/// English without a full stop at the end.
struct FlappingText {
    char text[1280];
    char summary[256];  // "opened 4 times within 10 of its open times: CircuitBreakerOpenTime", as the text suggests

    FlappingText(const Flapping& figures, const Policy& policy) noexcept;

  private:
    __attribute__((format(printf, 3, 4))) void suggest(const char* directive, const char* format, ...) noexcept;
};

}  // namespace cb::core

#endif
