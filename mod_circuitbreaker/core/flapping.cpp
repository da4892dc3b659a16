#include "flapping.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace cb::core {
namespace {

constexpr std::uint64_t kEnoughCalls = 100;  // before anything is called usual

double share(std::uint64_t part, std::uint64_t whole) noexcept {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::uint64_t per_mille(std::uint64_t part, std::uint64_t whole) noexcept {
    return whole > 0 ? (part * 1000 + whole / 2) / whole : 0;
}

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

/// With one decimal, which is a point in any locale.
struct Tenths {
    char text[32];
    explicit Tenths(std::uint64_t tenths, const char* unit = "") noexcept {
        const auto all = static_cast<unsigned long>(tenths);
        (void)std::snprintf(text, sizeof text, "%lu.%lu%s", all / 10, all % 10, unit);
    }
};

struct Duration : Tenths {
    explicit Duration(Millis time) noexcept : Tenths((time + 50) / 100, " s") {
        if (time < kMillisPerSecond) (void)std::snprintf(text, sizeof text, "%u ms", static_cast<unsigned>(time));
    }
};

}  // namespace

void FlappingText::suggest(const char* directive, const char* format, ...) noexcept {
    const std::size_t used = std::strlen(summary);
    const char* const separator = std::strchr(summary, ':') == nullptr ? ": " : ", ";
    (void)std::snprintf(summary + used, sizeof summary - used, "%s%s", separator, directive);
    const std::size_t length = std::strlen(text);
    std::va_list arguments;
    va_start(arguments, format);
    (void)std::vsnprintf(text + length, sizeof text - length, format, arguments);
    va_end(arguments);
}

FlappingText::FlappingText(const Flapping& figures, const Policy& policy) noexcept {
    const bool is_usual = figures.calls >= kEnoughCalls;
    const double failing = share(figures.failures, figures.calls);
    const double slow = share(figures.slow_calls, figures.calls);
    const Tenths failing_percent(per_mille(figures.failures, figures.calls));
    const bool is_timeout_short = are_most(figures.timed_out_probes, figures.failed_probes);
    const bool are_probes_slow = are_most(figures.slow_probes, figures.failed_probes);
    const auto is_threshold_close = [&](double of, std::uint32_t percent) noexcept {
        return is_usual && is_close(of, percent, policy.minimum_calls);
    };
    (void)std::snprintf(summary, sizeof summary, "opened %u times within 10 of its open times", figures.openings);
    (void)std::snprintf(text, sizeof text, "%s (%s)", summary, Duration(figures.span).text);
    const std::size_t plain = std::strlen(summary);
    const Duration recovery(figures.recovery);
    const Duration open_time(policy.open_time.base);
    if (figures.recovery > policy.open_time.base && figures.is_recovered) {
        suggest("CircuitBreakerOpenTime",
                "; it took %s to be well again, longer than its open time of %s: raise CircuitBreakerOpenTime",
                recovery.text, open_time.text);
    } else if (figures.recovery > policy.open_time.base && !is_timeout_short && !are_probes_slow) {
        // (Probes that fail by their limits say nothing about how long a recovery takes.)
        suggest("CircuitBreakerOpenTime",
                "; it has been failing for %s now, longer than its open time of %s: if it needs so long to recover, "
                "raise CircuitBreakerOpenTime",
                recovery.text, open_time.text);
    }
    if (is_timeout_short) {
        suggest("CircuitBreakerProbeTimeout",
                "; %u of its last %u failed probes ran into the timeout for probes: if it is no more than slow, raise "
                "CircuitBreakerProbeTimeout (%s)",
                figures.timed_out_probes, figures.failed_probes, Duration(policy.probe_timeout).text);
    }
    const bool is_slow_rate_close = figures.by_slow_rate && is_threshold_close(slow, policy.slow_call.rate);
    if (are_probes_slow || (is_slow_rate_close && figures.slow_probes > 0)) {
        suggest("CircuitBreakerSlowCall",
                "; %u of its last %u failed probes were only a little too slow: raise the time of "
                "CircuitBreakerSlowCall (%s)",
                figures.slow_probes, figures.failed_probes, Duration(policy.slow_call.threshold).text);
    } else if (is_slow_rate_close) {
        suggest("CircuitBreakerSlowCall",
                "; %s %% of all its calls are slow, which is close to the limit of %u %%: raise the time or the rate "
                "of CircuitBreakerSlowCall",
                Tenths(per_mille(figures.slow_calls, figures.calls)).text, policy.slow_call.rate);
    }
    if (figures.by_failure_rate && is_threshold_close(failing, policy.failure_rate)) {
        suggest("CircuitBreakerFailureRate",
                "; %s %% of all its calls fail, which is close to the limit of %u %%: raise "
                "CircuitBreakerFailureRate, or look at more calls (CircuitBreakerMinimumCalls)",
                failing_percent.text, policy.failure_rate);
    }
    if (figures.by_consecutive_failures && is_usual && are_runs_chance(failing, policy.consecutive_failures, figures)) {
        suggest("CircuitBreakerConsecutiveFailures",
                "; %s %% of all its calls fail, so that %u in a row come about by chance: raise "
                "CircuitBreakerConsecutiveFailures",
                failing_percent.text, policy.consecutive_failures);
    }
    if (policy.ramp_up.duration == 0 && are_most(figures.after_recovery, figures.openings)) {
        suggest("CircuitBreakerRampUp",
                "; it opens again soon after it is back: let its load grow slowly (CircuitBreakerRampUp)");
    }
    if (std::strlen(summary) == plain) {
        const std::size_t length = std::strlen(text);
        (void)std::snprintf(text + length, sizeof text - length,
                            "; the figures suggest no other setting: the member itself comes and goes");
    }
}

}  // namespace cb::core
