#include "flapping.hpp"

#include <algorithm>
#include <span>

#include "history.hpp"
#include "recorder.hpp"
#include "step.hpp"

namespace cb::shm {
namespace {

using core::Millis;
using core::Reason;
using core::State;
using core::Verdict;

constexpr auto kRelaxed = std::memory_order_relaxed;  // figures for people
constexpr double kEnoughCalls = 100;                  // before anything is called usual

core::Flapping figures_of(const Slot& slot, const core::Policy& policy, std::uint32_t level, Millis now) noexcept {
    const Millis span =
        core::kFlappingSpans * core::open_time_at(policy.open_time, level, 1U << 31U);  // without jitter
    core::Flapping figures{.span = span};
    HistoryEntry entries[kHistory];
    std::uint32_t openings = 0;  // since it was last closed
    Millis began = 0;            // the first of them
    Millis anew = 0;             // the last reset
    for (const HistoryEntry& entry : std::span(entries, read_history(slot, entries))) {
        const bool is_within = between(entry.at, now) <= span;
        if (entry.reason == Reason::reset) {  // counted anew; it ends what an operator has forced too
            figures = {.span = span};
            openings = 0;
            anew = entry.at;
        } else if (entry.to == State::open) {
            if (is_within) {
                ++figures.openings;
                figures.reasons |= 1U << static_cast<unsigned>(entry.reason);
                figures.after_recovery += openings == 0 && entry.level > 0;
            }
            if (openings++ == 0) began = entry.at;
        } else if (entry.to != State::half_open) {
            if (openings > 1 && is_within) {
                figures.recovery = std::max(figures.recovery, between(began, entry.at));
                figures.is_recovered = true;
            }
            openings = 0;
        }
    }
    if (!figures.is_recovered && openings > 1) figures.recovery = between(began, now);

    FailedCall calls[kRecordedCalls];
    for (const FailedCall& call : std::span(calls, read_failed_calls(slot, calls))) {
        if (!call.is_probe || call.at <= anew + call.latency) continue;  // (those had begun before)
        ++figures.failed_probes;
        const bool is_timeout = call.outcome == core::Outcome::timeout;
        const bool is_good = call.is_slow && core::builtin_verdict(call.outcome) == Verdict::success;
        const Millis limit = is_timeout ? policy.probe_timeout : is_good ? policy.slow_call.threshold : 0;
        if (limit > 0 && call.latency >= limit && call.latency <= limit + limit / 4 + 100)
            ++(is_timeout ? figures.timed_out_probes : figures.slow_probes);
    }

    const auto number = [](const Atomic64& total) { return static_cast<double>(total.load(kRelaxed)); };
    const auto judged = [&](Verdict verdict) {
        return number(slot.totals.verdict[false][static_cast<unsigned>(verdict)]);
    };
    const double failures = judged(Verdict::failure) + judged(Verdict::fatal) + judged(Verdict::tolerate);
    const double all = failures + judged(Verdict::success);
    double all_openings = 0;
    for (const auto& from : slot.totals.transition)
        all_openings += number(from[static_cast<unsigned>(State::open)]);
    if (all >= kEnoughCalls) {
        figures.failing = failures / all;
        figures.slow = std::min(number(slot.totals.slow[false]) / all, 1.0);
        figures.calls_per_opening = all / all_openings;
    }
    return figures;
}

}  // namespace

void watch_flapping(Slot& slot, const core::Word& before, const core::Word& after, const core::Policy& policy,
                    const Process& process, Millis now) noexcept {
    const bool is_proven_well = after.state == State::closed && before.tripped && !after.tripped;
    if (after.state != State::open && !is_proven_well) return;
    const core::Flapping figures = figures_of(slot, policy, after.level, now);
    if (figures.openings <= core::kFlappingOpenings) {
        if (after.level == 0) slot.flapping.store(0, kRelaxed);
        return;
    }
    if (is_proven_well) return;
    step("flapping.found");
    std::uint64_t none = 0;
    // The CAS alone decides who reports; nothing else is read through it.
    if (!slot.flapping.compare_exchange_strong(none, std::uint64_t{after.generation} + 1, kRelaxed)) return;
    if (process.observer != nullptr) process.observer->on_flapping(slot, figures, policy);
}

}  // namespace cb::shm
