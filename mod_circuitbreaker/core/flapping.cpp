#include "flapping.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "breaker.hpp"

namespace cb::core {
namespace {

template <std::size_t size, class... Values>
void append(char (&text)[size], const char* format, Values... values) noexcept {
    const std::size_t used = std::strlen(text);
    (void)std::snprintf(text + used, size - used, format, values...);
}

double seconds(Millis time) noexcept {
    return static_cast<double>(time) / kMillisPerSecond;
}

}  // namespace

FlappingText::FlappingText(const Flapping& figures, const Policy& policy) noexcept {
    const auto opened_by = [&](Reason reason) { return (figures.reasons >> static_cast<unsigned>(reason) & 1U) != 0; };
    const auto are_most = [](std::uint32_t part, std::uint32_t whole) { return part > 0 && part * 2 >= whole; };
    // Within three standard deviations of what CircuitBreakerMinimumCalls calls show.
    const auto is_close = [&](double share, std::uint32_t percent) {
        return std::pow(share - percent / 100.0, 2) * policy.minimum_calls < 9 * share * (1 - share);
    };
    const double run = policy.consecutive_failures;
    const double chance_runs = figures.calls_per_opening * (1 - figures.failing) * std::pow(figures.failing, run);
    const double recovery = seconds(figures.recovery), open_time = seconds(policy.open_time.base);
    const bool is_long = recovery > open_time;
    const bool is_timeout_short = are_most(figures.timed_out_probes, figures.failed_probes);
    const bool are_probes_slow = are_most(figures.slow_probes, figures.failed_probes);

    append(summary, "opened %u times within %u of its open times", figures.openings, kFlappingSpans);
    append(text, "%s (%g s)", summary, seconds(figures.span));
    const char* separator = ": ";
    // `sentence`: the directive ends it; a format for these numbers.
    const auto suggest = [&](bool applies, const char* directive, const char* sentence, double first, double second = 0,
                             double third = 0) {
        if (!applies) return;
        append(summary, "%s%s", separator, directive);
        append(text, sentence, first, second, third);
        append(text, " %s", directive);
        separator = ", ";
    };
    suggest(is_long && figures.is_recovered, "CircuitBreakerOpenTime",
            "; it took %g s to be well again, longer than its open time of %g s: raise", recovery, open_time);
    // (Probes that fail by their limits don't show how long a recovery takes.)
    suggest(is_long && !figures.is_recovered && !is_timeout_short && !are_probes_slow, "CircuitBreakerOpenTime",
            "; it has been failing for %g s, longer than its open time of %g s: if it needs so long to recover, raise",
            recovery, open_time);
    suggest(is_timeout_short, "CircuitBreakerProbeTimeout",
            "; %g of its last %g failed probes timed out after %g s: if it is no more than slow, raise",
            figures.timed_out_probes, figures.failed_probes, seconds(policy.probe_timeout));
    suggest(are_probes_slow, "CircuitBreakerSlowCall",
            "; %g of its last %g failed probes were only a little slower than %g s: raise the time of",
            figures.slow_probes, figures.failed_probes, seconds(policy.slow_call.threshold));
    suggest(!are_probes_slow && opened_by(Reason::slow_rate) && is_close(figures.slow, policy.slow_call.rate),
            "CircuitBreakerSlowCall",
            "; %.3g %% of all its calls are slow, close to the limit of %g %%: raise the time or the rate of",
            figures.slow * 100, policy.slow_call.rate);
    suggest(opened_by(Reason::failure_rate) && is_close(figures.failing, policy.failure_rate),
            "CircuitBreakerFailureRate",
            "; %.3g %% of all its calls fail, close to the limit of %g %%: raise CircuitBreakerMinimumCalls or",
            figures.failing * 100, policy.failure_rate);
    suggest(opened_by(Reason::consecutive_failures) && chance_runs * 2 >= 1, "CircuitBreakerConsecutiveFailures",
            "; %.3g %% of all its calls fail, so that %g in a row come by chance: raise", figures.failing * 100, run);
    suggest(policy.ramp_up.duration == 0 && are_most(figures.after_recovery, figures.openings), "CircuitBreakerRampUp",
            "; %g of these times it had just recovered: let its load grow slowly with", figures.after_recovery);
    if (*separator == ':')
        append(text, "; %s", "the figures suggest no other setting: the member itself comes and goes");
}

}  // namespace cb::core
