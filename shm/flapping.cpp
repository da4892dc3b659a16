#include "flapping.hpp"

#include <algorithm>

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
constexpr Millis kTimeMask = (1ULL << 36U) - 1;       // times in the history wrap
constexpr std::uint32_t kNoJitter = 1U << 31U;

struct History {
    HistoryEntry entry[kHistory];
    std::uint32_t first = 0;  // since an operator last had a hand in it
    std::uint32_t count = 0;

    explicit History(const Slot& slot) noexcept : count(read_history(slot, entry)) {
        for (std::uint32_t i = 0; i < count; ++i) {
            if (entry[i].reason == Reason::reset || entry[i].reason == Reason::forced) first = i + 1;
        }
    }
};

Millis between(Millis from, Millis to) noexcept {
    return (to - from) & kTimeMask;
}

void count_openings(Flapping& figures, const History& history, Millis now) noexcept {
    for (std::uint32_t i = history.first; i < history.count; ++i) {
        const HistoryEntry& entry = history.entry[i];
        if (entry.to != State::open || between(entry.at, now) > figures.span) continue;
        ++figures.openings;
        if (entry.reason == Reason::failure_rate) ++figures.by_failure_rate;
        if (entry.reason == Reason::slow_rate) ++figures.by_slow_rate;
        if (entry.reason == Reason::consecutive_failures) ++figures.by_consecutive_failures;
        const bool was_closed = i > history.first && (history.entry[i - 1].to == State::closed ||
                                                      history.entry[i - 1].to == State::recovering);
        if (was_closed && entry.level > 0) ++figures.after_recovery;
    }
}

void measure_recovery(Flapping& figures, const History& history, Millis now) noexcept {
    Millis began = 0;
    std::uint32_t openings = 0;  // since then
    for (std::uint32_t i = history.first; i < history.count; ++i) {
        const HistoryEntry& entry = history.entry[i];
        if (entry.to == State::open && openings++ == 0) began = entry.at;
        if (entry.to != State::closed && entry.to != State::recovering) continue;
        if (openings > 1 && between(entry.at, now) <= figures.span) {
            figures.recovery = std::max(figures.recovery, between(began, entry.at));
            figures.is_recovered = true;
        }
        openings = 0;
    }
    if (!figures.is_recovered && openings > 1) figures.recovery = between(began, now);
}

/// A call that began and ended within one half-open state was a probe.
bool was_probe(const FailedCall& call, const History& history) noexcept {
    for (std::uint32_t i = 0; i < history.count; ++i) {
        if (history.entry[i].to != State::half_open) continue;
        const bool is_last = i + 1 == history.count;
        if (call.at >= history.entry[i].at + call.latency && (is_last || call.at <= history.entry[i + 1].at))
            return true;
    }
    return false;
}

void look_at_probes(Flapping& figures, const Slot& slot, const History& history, const core::Policy& policy) noexcept {
    FailedCall calls[kRecordedCalls];
    const std::uint32_t count = read_failed_calls(slot, calls);
    for (std::uint32_t i = 0; i < count; ++i) {
        if (!was_probe(calls[i], history)) continue;
        ++figures.failed_probes;
        if (calls[i].outcome == core::Outcome::timeout) {
            if (core::is_just_above(calls[i].latency, policy.probe_timeout)) ++figures.timed_out_probes;
        } else if (core::is_just_above(calls[i].latency, policy.slow_call.threshold)) {
            ++figures.slow_probes;
        }
    }
}

void add_totals(Flapping& figures, const Totals& totals) noexcept {
    const auto of = [&](core::Verdict verdict) noexcept {
        return totals.verdict[static_cast<std::size_t>(verdict)].load(kRelaxed);
    };
    figures.failures = of(core::Verdict::failure) + of(core::Verdict::fatal) + of(core::Verdict::tolerate);
    figures.calls = figures.failures + of(core::Verdict::success);
    figures.slow_calls = std::min(totals.slow.load(kRelaxed), figures.calls);
    for (const auto& from : totals.transition)
        figures.all_openings += from[static_cast<std::size_t>(State::open)].load(kRelaxed);
}

Flapping openings_at(const History& history, const core::Policy& policy, std::uint32_t level, Millis now) noexcept {
    Flapping figures;
    figures.span = core::kFlappingSpans * core::open_time_at(policy.open_time, level, kNoJitter);
    count_openings(figures, history, now);
    return figures;
}

void complete(Flapping& figures, const Slot& slot, const History& history, const core::Policy& policy,
              Millis now) noexcept {
    measure_recovery(figures, history, now);
    look_at_probes(figures, slot, history, policy);
    add_totals(figures, slot.totals);
    core::suggest(figures, policy);
}

bool was_proven_well(const core::Word& before, const core::Word& after) noexcept {
    return after.state == State::closed && before.state == State::closed && before.tripped && !after.tripped;
}

}  // namespace

Flapping figures_of(const Slot& slot, const core::Policy& policy, std::uint32_t level, Millis now) noexcept {
    const History history(slot);
    Flapping figures = openings_at(history, policy, level, now);
    complete(figures, slot, history, policy, now);
    return figures;
}

void watch_flapping(Slot& slot, const core::Word& before, const core::Word& after, const core::Policy& policy,
                    const Process& process, Millis now) noexcept {
    if (after.state != State::open && !was_proven_well(before, after)) return;
    if (after.state == before.state && slot.flapping.load(kRelaxed) == 0) return;
    const History history(slot);
    Flapping figures = openings_at(history, policy, after.level, now);
    if (figures.openings <= core::kFlappingOpenings) {
        if (after.level == 0) slot.flapping.store(0, kRelaxed);
        return;
    }
    if (after.state != State::open) return;
    step("flapping.found");
    std::uint64_t none = 0;
    // The CAS alone decides who reports; nothing else is read through it.
    if (!slot.flapping.compare_exchange_strong(none, std::uint64_t{after.generation} + 1, kRelaxed)) return;
    if (process.observer == nullptr) return;
    complete(figures, slot, history, policy, now);
    process.observer->on_flapping(slot, figures);
}

}  // namespace cb::shm
