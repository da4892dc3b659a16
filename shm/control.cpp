#include "control.hpp"

#include "adaptive.hpp"
#include "changes.hpp"
#include "flapping.hpp"
#include "history.hpp"
#include "newcomers.hpp"
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
    if (is_change) note_history(slot, number, {now, after.level, after.state, step.reason});
    if (event.kind == core::EventKind::reset) {
        slot.flapping.store(0, std::memory_order_relaxed);  // both for people
        slot.kept_calls.store(0, std::memory_order_relaxed);
    }
    if (step.transition) {
        // Totals and times are for people: relaxed, and at most the update a killed child was in is lost.
        const core::Millis since = slot.since.exchange(now, std::memory_order_relaxed);
        const auto from = static_cast<std::size_t>(before.state);
        if (now > since) slot.totals.state_ms[from].fetch_add(now - since, std::memory_order_relaxed);
        slot.totals.transition[from][static_cast<std::size_t>(after.state)].fetch_add(1, std::memory_order_relaxed);
        if (after.state == core::State::half_open) forget_newcomers(slot);
        shm::step("change.won");
        if (process.observer != nullptr) {
            const std::uint32_t consecutive = before.consecutive + (event.kind == core::EventKind::result ? 1 : 0);
            process.observer->on_change(slot, {before.state, after.state, step.reason, number, after.level, event.sums,
                                               consecutive, before, step.open_for});
        }
    } else if (is_change && process.observer != nullptr) {
        process.observer->on_reset(slot, number);
    }
    watch_flapping(slot, before, after, policy, process, now);
    // Release: who sees the report counted also sees that it was made.
    if (is_change) slot.reports.fetch_add(1, std::memory_order_release);
}

}  // namespace

core::Step apply(Slot& slot, core::Event event, const core::Policy& policy, const Process& process) noexcept {
    // seq_cst throughout: the window, the leases and the intents are weighed against this word by other processes, and
    // the protocols (tests/model) were checked on one total order.
    std::uint64_t seen = slot.word.load(std::memory_order_seq_cst);
    ask_earlier_probes(slot, event, policy);
    for (;;) {
        const core::Millis now = process.clock.now();
        if (event.kind == core::EventKind::result) event.sums = sum(slot.window, policy.window, event.generation, now);
        const core::Step decided = core::next(seen, event, policy, now);
        if (decided.word == seen) return decided;
        const bool is_new = is_another(seen, decided.word);
        std::uint64_t number = 0;
        if (is_new && !settle_number(slot, seen, number)) {
            seen = slot.word.load(std::memory_order_seq_cst);
            continue;
        }
        step("control.cas");
        if (!slot.word.compare_exchange_strong(seen, decided.word, std::memory_order_seq_cst)) continue;
        if (is_new) number = take_number(slot, seen, number, decided.word);
        note_change(slot, seen, decided, number, event, policy, process, now);
        if (decided.decision != core::Decision::again) {
            note_probe(slot, event, decided, policy);
            return decided;
        }
        seen = slot.word.load(std::memory_order_seq_cst);
    }
}

}  // namespace cb::shm
