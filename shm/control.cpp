#include "control.hpp"

#include "adaptive.hpp"
#include "changes.hpp"
#include "core/probe_rate.hpp"
#include "early.hpp"
#include "flapping.hpp"
#include "history.hpp"
#include "newcomers.hpp"
#include "outages.hpp"
#include "step.hpp"
#include "window.hpp"

namespace cb::shm {

#ifdef CB_TEST_STEPS
void (*on_step)(const char* place) noexcept = nullptr;
#endif

namespace {

void note_change(Slot& slot, std::uint64_t before_bits, const core::Step& step, std::uint64_t number,
                 const core::Event& event, const core::Policy& policy, const Process& process,
                 core::Millis now) noexcept {
    const core::Word before = core::unpack(before_bits);
    const core::Word after = core::unpack(step.word);
    // A reset of a closed breaker too: it is no change of state, but what is said once is said again from there on.
    const bool is_change = core::is_change(before_bits, step.word);
    // An early round is no change of state until it succeeds.
    const core::State left = before.early ? core::State::open : before.state;
    if (step.transition) {
        // Totals and times are for people: at most the update a killed child was in is lost. Release: who sees one of
        // them sees the new word too (stays.cpp).
        const core::Millis since = slot.since.exchange(now, std::memory_order_release);
        if (now > since)
            slot.totals.state_ms[static_cast<std::size_t>(left)].fetch_add(now - since, std::memory_order_release);
        slot.totals.transition[static_cast<std::size_t>(left)][static_cast<std::size_t>(after.state)].fetch_add(
            1, std::memory_order_relaxed);
    }
    // After the times: what is in the history is in them too.
    if (is_change) note_history(slot, number, {now, after.level, after.state, step.reason});
    if (before.state != core::State::half_open && after.state == core::State::half_open) {
        forget_newcomers(slot);
        note_first_probe(slot, core::due_for(before, now), now);
    }
    if (event.kind == core::EventKind::reset) {
        slot.flapping.store(0, std::memory_order_relaxed);  // all for people
        slot.kept_calls.store(0, std::memory_order_relaxed);
        slot.too_cautious.store(0, std::memory_order_relaxed);
    }
    if (step.transition) {
        shm::step("change.won");
        if (process.observer != nullptr) {
            const std::uint32_t consecutive = before.consecutive + (event.kind == core::EventKind::result ? 1 : 0);
            process.observer->on_change(slot, {left, after.state, step.reason, number, after.level, event.sums,
                                               consecutive, round_of(before, event), step.open_for});
        }
    } else if (is_change && process.observer != nullptr) {
        process.observer->on_reset(slot, number);
    }
    if (after.state == core::State::open && before.generation != after.generation) {
        note_opened(slot, step.word, now);
        forget_proof(slot);
    }
    const bool is_recovered = step.reason == core::Reason::ramp_over || step.reason == core::Reason::probes_succeeded;
    if (is_recovered && after.state == core::State::closed) note_end_of_outage(slot, number, policy, process);
    watch_flapping(slot, before, after, policy, process, now);
    // Release: who sees the report counted also sees that it was made.
    if (is_change) slot.reports.fetch_add(1, std::memory_order_release);
}

/// A probe shows that the member is well, or that it is not.
void note_sign(Slot& slot, const core::Event& event, core::Millis now) noexcept {
    if (event.kind != core::EventKind::settle_probe) return;
    const core::ProbeSample sample = core::sample_of(event.verdict, event.slow);
    if (sample == core::ProbeSample::success) note_proof(slot, now);
    if (sample == core::ProbeSample::failure) forget_proof(slot);
}

/// An early round has begun, or failed.
void note_early(Slot& slot, const Seen& seen, const core::Event& event, const core::Step& step, const Process& process,
                core::Millis now) noexcept {
    const core::Word before = core::unpack(seen.word);
    const core::Word after = core::unpack(step.word);
    const bool has_begun = after.early && before.state == core::State::open;
    const bool has_failed = before.early && after.state == core::State::open;
    if (has_begun) slot.totals.early.fetch_add(1, std::memory_order_relaxed);  // for people
    if ((!has_begun && !has_failed) || process.observer == nullptr) return;
    const core::Millis left = has_begun ? core::open_remaining(before, now) : step.open_for;
    const bool is_repeated = has_begun && was_probed_early(seen.interrupted, seen.word);
    process.observer->on_early_round(
        slot, {has_failed, is_repeated, before.level, step.reason, round_of(before, event), left});
}

}  // namespace

core::Step apply(Slot& slot, core::Event event, const core::Policy& policy, const Process& process,
                 std::uint64_t* before) noexcept {
    const bool is_last_resort = event.early;
    ask_earlier_probes(slot, event, policy);
    // seq_cst throughout: the window, the leases and the intents are weighed against this word by other processes, and
    // the protocols (tests/model) were checked on one total order.
    for (;;) {
        const Seen looked = look(slot);
        std::uint64_t seen = looked.word;
        if (before != nullptr) *before = seen;
        const core::Millis now = process.clock.now();
        event.early = is_last_resort && is_early_allowed(slot, seen, policy, now);
        if (core::is_early(seen)) event.interrupted = kept_end(slot);
        if (event.kind == core::EventKind::result) event.sums = sum(slot.window, policy.window, event.generation, now);
        const core::Step decided = core::next(seen, event, policy, now);
        if (decided.word == seen) return decided;
        const bool is_new = is_another(seen, decided.word);
        std::uint64_t number = 0;
        if (is_new && (!keep_end(slot, looked, decided.word) || !settle_number(slot, seen, number))) continue;
        step("control.cas");
        if (!slot.word.compare_exchange_strong(seen, decided.word, std::memory_order_seq_cst)) continue;
        // The time of a change is read after it: until then, readers count the time for the old state. At once, as
        // another process may already make the next change.
        const core::Millis at = is_new ? process.clock.now() : now;
        if (is_new) number = take_number(slot, seen, number, decided.word);
        note_sign(slot, event, now);
        note_change(slot, seen, decided, number, event, policy, process, at);
        note_early(slot, looked, event, decided, process, now);
        if (decided.decision != core::Decision::again) {
            note_probe(slot, event, decided, policy);
            return decided;
        }
    }
}

}  // namespace cb::shm
