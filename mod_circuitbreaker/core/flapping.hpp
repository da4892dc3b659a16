// Flapping in figures, which shm/flapping gathers, and in words: what happened, and which directives to change.
#ifndef CIRCUITBREAKER_CORE_FLAPPING_HPP
#define CIRCUITBREAKER_CORE_FLAPPING_HPP

#include "policy.hpp"

namespace cb::core {

inline constexpr std::uint32_t kFlappingOpenings = 3;  // more of them are flapping,
inline constexpr std::uint32_t kFlappingSpans = 10;    // within so many of its open times

struct Flapping {
    Millis span = 0;                   // kFlappingSpans of its open times at the present level
    std::uint32_t openings = 0;        // within `span`
    std::uint32_t reasons = 0;         // of these, a bit for each Reason
    std::uint32_t after_recovery = 0;  // of these, when it had been closed and was not proven well yet
    // The longest time of the span from an opening until its probes succeeded, if it opened again in between.
    Millis recovery = 0;
    bool is_recovered = false;  // false: no such time has ended, `recovery` is the present one so far
    // Of all calls that ever counted and were no probes; 0 if they are too few.
    double failing = 0;  // share
    double slow = 0;     // share
    double calls_per_opening = 0;
    // Among the last failing calls.
    std::uint32_t failed_probes = 0;
    std::uint32_t timed_out_probes = 0;  // after CircuitBreakerProbeTimeout, or a little more
    std::uint32_t slow_probes = 0;       // good, but a little later than CircuitBreakerSlowCall allows
};

struct FlappingText {
    char text[1280] = "";
    char summary[256] = "";  // "opened 4 times within 10 of its open times: CircuitBreakerOpenTime"

    FlappingText(const Flapping& figures, const Policy& policy) noexcept;
};

}  // namespace cb::core

#endif
