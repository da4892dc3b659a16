#include "flapping.hpp"

namespace cb::core {
namespace {

constexpr std::uint64_t kEnoughCalls = 100;  // before anything is called usual

/// Whether a share of `hits` makes `calls` reach or miss the threshold by chance: it lies within three standard
/// deviations of what a window of `calls` calls shows.
bool is_close(double share, std::uint32_t percent, std::uint32_t calls) noexcept {
    const double distance = share - percent / 100.0;
    return distance * distance * calls <= 9 * share * (1 - share);
}

/// Runs of so many failures, at this share of failures, come at least half as often as the breaker has opened.
bool are_runs_chance(double share, std::uint32_t run, const Flapping& figures) noexcept {
    double runs = static_cast<double>(figures.calls) * (1 - share);
    for (std::uint32_t i = 0; i < run; ++i)
        runs *= share;
    return runs * 2 >= static_cast<double>(figures.all_openings);
}

bool are_most(std::uint32_t part, std::uint32_t whole) noexcept {
    return part > 0 && part * 2 >= whole;
}

}  // namespace

bool is_just_above(Millis latency, Millis limit) noexcept {
    return limit > 0 && latency >= limit && latency <= limit + limit / 4 + 100;
}

void suggest(Flapping& figures, const Policy& policy) noexcept {
    figures.open_time = policy.open_time.base;
    figures.failure_rate = policy.failure_rate;
    figures.consecutive_failures = policy.consecutive_failures;
    figures.slow_call = policy.slow_call;
    figures.probe_timeout = policy.probe_timeout;
    Suggestions& suggestions = figures.suggestions;
    suggestions = Suggestions{};
    if (figures.calls >= kEnoughCalls) {
        const auto calls = static_cast<double>(figures.calls);
        const double failing = static_cast<double>(figures.failures) / calls;
        const double slow = static_cast<double>(figures.slow_calls) / calls;
        suggestions.failure_rate =
            figures.by_failure_rate > 0 && is_close(failing, policy.failure_rate, policy.minimum_calls);
        suggestions.slow_call = figures.by_slow_rate > 0 && is_close(slow, policy.slow_call.rate, policy.minimum_calls);
        suggestions.consecutive_failures =
            figures.by_consecutive_failures > 0 && are_runs_chance(failing, policy.consecutive_failures, figures);
    }
    suggestions.slow_call = suggestions.slow_call || are_most(figures.slow_probes, figures.failed_probes);
    suggestions.probe_timeout = are_most(figures.timed_out_probes, figures.failed_probes);
    suggestions.ramp_up = policy.ramp_up.duration == 0 && are_most(figures.after_recovery, figures.openings);
    // Probes that fail by their limits say nothing about how long a recovery takes.
    const bool is_probe_at_fault = suggestions.probe_timeout || are_most(figures.slow_probes, figures.failed_probes);
    suggestions.open_time = figures.recovery > policy.open_time.base && (figures.is_recovered || !is_probe_at_fault);
}

}  // namespace cb::core
