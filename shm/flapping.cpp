#include "flapping.hpp"

#include <algorithm>
#include <span>

#include "history.hpp"
#include "recorder.hpp"
#include "step.hpp"

namespace cb::shm {
namespace {

using core::Flapping;
using core::Millis;
using core::Reason;
using core::State;

constexpr auto kRelaxed = std::memory_order_relaxed;  // figures for people
constexpr std::uint32_t kNoJitter = 1U << 31U;

using History = std::span<const HistoryEntry>;

/// Times in the history wrap.
Millis between(Millis from, Millis to) noexcept {
    return (to - from) & core::kTimeMask;
}

void look_at_openings(Flapping& figures, History history, Millis now) noexcept {
    bool was_closed = false;
    Millis began = 0;
    std::uint32_t openings = 0;  // since then
    for (const HistoryEntry& entry : history) {
        const bool is_within = between(entry.at, now) <= figures.span;
        const bool is_closed = entry.to == State::closed || entry.to == State::recovering;
        if (entry.reason == Reason::reset || entry.reason == Reason::forced) {  // counted anew from here on
            figures = {.span = figures.span};
            openings = 0;
            was_closed = false;
            continue;
        }
        if (entry.to == State::open && openings++ == 0) began = entry.at;
        if (entry.to == State::open && is_within) {
            ++figures.openings;
            figures.by_failure_rate |= entry.reason == Reason::failure_rate;
            figures.by_slow_rate |= entry.reason == Reason::slow_rate;
            figures.by_consecutive_failures |= entry.reason == Reason::consecutive_failures;
            if (was_closed && entry.level > 0) ++figures.after_recovery;
        }
        if (is_closed && openings > 1 && is_within) {
            figures.recovery = std::max(figures.recovery, between(began, entry.at));
            figures.is_recovered = true;
        }
        if (is_closed) openings = 0;
        was_closed = is_closed;
    }
    if (!figures.is_recovered && openings > 1) figures.recovery = between(began, now);
}

/// A call that began and ended within one half-open state was a probe.
bool was_probe(const FailedCall& call, History history) noexcept {
    for (std::size_t i = 0; i < history.size(); ++i) {
        if (history[i].to != State::half_open || call.at < history[i].at + call.latency) continue;
        if (i + 1 == history.size() || call.at <= history[i + 1].at) return true;
    }
    return false;
}

}  // namespace

Flapping figures_of(const Slot& slot, const core::Policy& policy, std::uint32_t level, Millis now) noexcept {
    HistoryEntry entries[kHistory];
    const History history(entries, read_history(slot, entries));
    Flapping figures{.span = core::kFlappingSpans * core::open_time_at(policy.open_time, level, kNoJitter)};
    look_at_openings(figures, history, now);
    FailedCall calls[kRecordedCalls];
    for (const FailedCall& call : std::span(calls, read_failed_calls(slot, calls))) {
        if (!was_probe(call, history)) continue;
        ++figures.failed_probes;
        const bool is_timeout = call.outcome == core::Outcome::timeout;
        const Millis limit = is_timeout ? policy.probe_timeout : policy.slow_call.threshold;
        if (core::is_just_above(call.latency, limit)) ++(is_timeout ? figures.timed_out_probes : figures.slow_probes);
    }
    const Totals& totals = slot.totals;
    for (const core::Verdict verdict : {core::Verdict::failure, core::Verdict::fatal, core::Verdict::tolerate})
        figures.failures += totals.verdict[static_cast<std::size_t>(verdict)].load(kRelaxed);
    figures.calls = figures.failures + totals.verdict[static_cast<std::size_t>(core::Verdict::success)].load(kRelaxed);
    figures.slow_calls = std::min(totals.slow.load(kRelaxed), figures.calls);
    for (const auto& from : totals.transition)
        figures.all_openings += from[static_cast<std::size_t>(State::open)].load(kRelaxed);
    return figures;
}

void watch_flapping(Slot& slot, const core::Word& before, const core::Word& after, const core::Policy& policy,
                    const Process& process, Millis now) noexcept {
    const bool is_proven_well =
        after.state == State::closed && before.state == State::closed && before.tripped && !after.tripped;
    if (after.state != State::open && !is_proven_well) return;
    if (after.state == before.state && slot.flapping.load(kRelaxed) == 0) return;
    const Flapping figures = figures_of(slot, policy, after.level, now);
    if (figures.openings <= core::kFlappingOpenings) {
        if (after.level == 0) slot.flapping.store(0, kRelaxed);
        return;
    }
    if (after.state != State::open) return;
    step("flapping.found");
    std::uint64_t none = 0;
    // The CAS alone decides who reports; nothing else is read through it.
    if (!slot.flapping.compare_exchange_strong(none, std::uint64_t{after.generation} + 1, kRelaxed)) return;
    if (process.observer != nullptr) process.observer->on_flapping(slot, figures, policy);
}

}  // namespace cb::shm
