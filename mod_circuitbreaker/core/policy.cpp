#include "policy.hpp"

#include <algorithm>

namespace cb::core {

Millis open_time_at(const OpenTime& open_time, std::uint32_t level, std::uint32_t draw) noexcept {
    const Millis cap = std::clamp(open_time.max, kMinOpenTime, kMaxOpenTime);
    // In microseconds, so that a small factor is not rounded away level by level; below 2^37 times 2^17, no overflow.
    std::uint64_t micros = std::clamp(open_time.base, kMinOpenTime, kMaxOpenTime) * 1000;
    for (std::uint32_t i = 0; i < level && micros < cap * 1000; ++i)
        micros = micros * open_time.factor_milli / 1000;
    const Millis time = std::min(micros / 1000, cap);
    // A draw of 0 is the shortest, 2^32 - 1 the longest, 2^31 none.
    const Millis spread = time * std::min(open_time.jitter, 100U) / 100;
    const Millis shift = 2 * spread * draw >> 32;
    return std::clamp(time - spread + shift, kMinOpenTime, kMaxOpenTime);
}

std::uint64_t allowed_retries(const Failover& failover, std::uint64_t calls, Millis span) noexcept {
    if (failover.budget == 0) return 0;
    return std::max(failover.budget * calls / 100, kLeastRetriesPerSecond * span / kMillisPerSecond);
}

std::uint32_t ramp_share(const RampUp& ramp_up, Millis elapsed) noexcept {
    constexpr std::uint32_t kWhole = 65536;
    if (elapsed >= ramp_up.duration) return kWhole;
    const std::uint64_t from = std::uint64_t{std::min(ramp_up.from, 100U)} * kWhole / 100;
    return static_cast<std::uint32_t>(from + (kWhole - from) * elapsed / ramp_up.duration);
}

std::uint32_t tolerated(const Probes& probes, std::uint32_t round) noexcept {
    const std::uint32_t failures = probes.is_tolerate_share ? round * probes.tolerate / 100 : probes.tolerate;
    return std::min(failures, kMaxTolerate);
}

std::uint32_t needed(const Probes& probes, std::uint32_t round) noexcept {
    std::uint32_t successes = probes.successes;
    if (probes.is_successes_share) {
        successes = (round * probes.successes + 99) / 100;
    } else if (successes == 0) {
        successes = round - std::min(round, tolerated(probes, round));
    }
    // A round begun under another policy may be smaller than today's `successes`: it must still be able to end.
    return std::clamp(successes, 1U, std::max(round, 1U));
}

const char* contradiction(const Policy& policy, bool has_fatal) noexcept {
    if (policy.mode == Mode::off) return nullptr;
    const bool needs_calls = policy.failure_rate > 0 || policy.failure_count > 0 || policy.slow_call.has_rate();
    if (needs_calls && policy.window.calls > 0 && policy.minimum_calls > policy.window.calls) {
        return "CircuitBreakerMinimumCalls (20 unless set) is greater than the calls of CircuitBreakerWindow, so no "
               "rate and no CircuitBreakerFailureCount could ever trip: lower CircuitBreakerMinimumCalls or widen "
               "CircuitBreakerWindow";
    }
    if (policy.window.calls > 0 && policy.failure_count > policy.window.calls) {
        return "CircuitBreakerFailureCount is greater than the calls of CircuitBreakerWindow, so it could never trip: "
               "lower CircuitBreakerFailureCount or widen CircuitBreakerWindow";
    }
    if (!has_fatal && policy.failure_rate == 0 && policy.failure_count == 0 && policy.consecutive_failures == 0 &&
        !policy.slow_call.has_rate()) {
        return "CircuitBreakerFailureRate, CircuitBreakerFailureCount, CircuitBreakerConsecutiveFailures and "
               "CircuitBreakerSlowCall (or its rate) are all Off, so nothing could ever trip: set one of them, or a "
               "CircuitBreakerVerdict fatal, or CircuitBreaker Off";
    }
    return nullptr;
}

}  // namespace cb::core
