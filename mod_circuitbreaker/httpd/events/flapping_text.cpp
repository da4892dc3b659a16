#include "flapping_text.hpp"

#include <cstdarg>
#include <cstring>

namespace cb::httpd {
namespace {

__attribute__((format(printf, 2, 3))) void add(char (&text)[kFlappingText], const char* format, ...) noexcept {
    const std::size_t length = std::strlen(text);
    std::va_list arguments;
    va_start(arguments, format);
    apr_vsnprintf(text + length, kFlappingText - length, format, arguments);
    va_end(arguments);
}

struct Duration {
    char text[24];
    explicit Duration(core::Millis time) noexcept {
        if (time < core::kMillisPerSecond) {
            apr_snprintf(text, sizeof text, "%u ms", static_cast<unsigned>(time));
        } else {
            apr_snprintf(text, sizeof text, "%.1f s", static_cast<double>(time) / 1000.0);
        }
    }
};

double percent(std::uint64_t part, std::uint64_t whole) noexcept {
    return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

void flapping_text(char (&text)[kFlappingText], const core::Flapping& figures) noexcept {
    const core::Suggestions& suggestions = figures.suggestions;
    text[0] = '\0';
    add(text, "opened %u times within 10 of its open times (%s)", figures.openings, Duration(figures.span).text);
    if (suggestions == core::Suggestions{}) {
        add(text, "; the figures suggest no other setting: the member itself comes and goes");
        return;
    }
    if (suggestions.open_time && figures.is_recovered) {
        add(text, "; it took %s to be well again, longer than its open time of %s: raise CircuitBreakerOpenTime",
            Duration(figures.recovery).text, Duration(figures.open_time).text);
    } else if (suggestions.open_time) {
        add(text,
            "; it has been failing for %s now, longer than its open time of %s: if it needs so long to "
            "recover, "
            "raise CircuitBreakerOpenTime",
            Duration(figures.recovery).text, Duration(figures.open_time).text);
    }
    if (suggestions.probe_timeout) {
        add(text,
            "; %u of its last %u failed probes ran into the timeout for probes: if it is no more than slow, raise "
            "CircuitBreakerProbeTimeout (%s)",
            figures.timed_out_probes, figures.failed_probes, Duration(figures.probe_timeout).text);
    }
    if (suggestions.slow_call && figures.slow_probes > 0) {
        add(text,
            "; %u of its last %u failed probes were only a little too slow: raise the time of CircuitBreakerSlowCall "
            "(%s)",
            figures.slow_probes, figures.failed_probes, Duration(figures.slow_call.threshold).text);
    } else if (suggestions.slow_call) {
        add(text,
            "; %.1f %% of all its calls are slow, which is close to the limit of %u %%: raise the time or the rate of "
            "CircuitBreakerSlowCall",
            percent(figures.slow_calls, figures.calls), figures.slow_call.rate);
    }
    if (suggestions.failure_rate) {
        add(text,
            "; %.1f %% of all its calls fail, which is close to the limit of %u %%: raise CircuitBreakerFailureRate, "
            "or "
            "look at more calls (CircuitBreakerMinimumCalls)",
            percent(figures.failures, figures.calls), figures.failure_rate);
    }
    if (suggestions.consecutive_failures) {
        add(text,
            "; %.1f %% of all its calls fail, so that %u in a row come about by chance: raise "
            "CircuitBreakerConsecutiveFailures",
            percent(figures.failures, figures.calls), figures.consecutive_failures);
    }
    if (suggestions.ramp_up) {
        add(text, "; it opens again soon after it is back: let its load grow slowly (CircuitBreakerRampUp)");
    }
}

void flapping_summary(char (&text)[kFlappingSummary], const core::Flapping& figures) noexcept {
    const core::Suggestions& suggestions = figures.suggestions;
    const struct {
        bool is_suggested;
        const char* directive;
    } all[] = {
        {suggestions.open_time, "CircuitBreakerOpenTime"},
        {suggestions.probe_timeout, "CircuitBreakerProbeTimeout"},
        {suggestions.slow_call, "CircuitBreakerSlowCall"},
        {suggestions.failure_rate, "CircuitBreakerFailureRate"},
        {suggestions.consecutive_failures, "CircuitBreakerConsecutiveFailures"},
        {suggestions.ramp_up, "CircuitBreakerRampUp"},
    };
    int length = apr_snprintf(text, kFlappingSummary, "opened %u times within 10 of its open times", figures.openings);
    const char* separator = ": ";
    for (const auto& each : all) {
        if (!each.is_suggested) continue;
        length += apr_snprintf(text + length, kFlappingSummary - static_cast<apr_size_t>(length), "%s%s", separator,
                               each.directive);
        separator = ", ";
    }
}

}  // namespace cb::httpd
