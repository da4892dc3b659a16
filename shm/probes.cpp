// Probe slots as leases (DESIGN 3, "Probe slots are leases"; checked by tests/model/lease.pml).
#include "control.hpp"
#include "lease.hpp"
#include "step.hpp"

namespace cb::shm {
namespace {

ProbeResult result_of(const core::Event& event) noexcept {
    if (event.slow) return ProbeResult::failure;
    switch (event.verdict) {
        case core::Verdict::success:
            return ProbeResult::success;
        case core::Verdict::failure:
        case core::Verdict::fatal:
            return ProbeResult::failure;
        default:
            return ProbeResult::neutral;
    }
}

/// Ends lease i, held exactly as `held`, with `verdict`. False if somebody else has ended it.
bool settle(Slot& slot, std::uint32_t i, std::uint64_t held, core::Event event, ProbeResult result,
            const core::Policy& policy, const Process& process) noexcept {
    Lease lease = Lease::of(held);
    lease.state = LeaseState::settling;
    lease.pid = process.pid;
    std::uint64_t expected = held;
    step("settle.begin");
    if (!slot.lease[i].compare_exchange_strong(expected, lease.bits(), std::memory_order_seq_cst)) return false;
    step("settle.claimed");
    event.kind = core::EventKind::settle_probe;
    event.slot = static_cast<std::uint8_t>(i);
    event.draw = jitter_draw(&slot);
    apply(slot, event, policy, process);
    step("settle.applied");
    slot.totals.probe_result[static_cast<std::size_t>(result)].fetch_add(1, std::memory_order_relaxed);
    expected = lease.bits();
    lease.state = LeaseState::free;
    lease.pid = 0;
    // Fails only when the parent took us for dead and has freed it.
    slot.lease[i].compare_exchange_strong(expected, lease.bits(), std::memory_order_seq_cst);
    step("settle.freed");
    return true;
}

/// The same for a lease whose deadline has passed, by the rule of its phase: whoever finds that, reports it.
bool settle_by_deadline(Slot& slot, std::uint32_t i, std::uint64_t held, const core::Policy& policy,
                        const Process& process) noexcept {
    const Phase phase = Lease::of(held).phase;
    core::Event event;
    event.verdict = verdict_at_deadline(phase);
    const ProbeResult result = phase == Phase::sent ? ProbeResult::lost : result_of(event);
    if (!settle(slot, i, held, event, result, policy, process)) return false;
    if (phase == Phase::sent) {
        slot.totals.probes_lost.fetch_add(1, std::memory_order_relaxed);
        if (process.observer != nullptr) process.observer->on_probe_lost(slot);
    }
    return true;
}

}  // namespace

Permit take_probe(Slot& slot, const core::Policy& policy, const Process& process, core::Millis lease_span) noexcept {
    const std::uint32_t usable = policy.probes.concurrent < kLeases ? policy.probes.concurrent : kLeases;
    for (bool is_second_look = false;; is_second_look = true) {
        for (std::uint32_t i = 0; i < usable; ++i) {
            std::uint64_t seen = slot.lease[i].load(std::memory_order_seq_cst);
            Lease lease = Lease::of(seen);
            if (lease.state != LeaseState::free) continue;
            const core::Millis now = process.clock.now();
            lease.state = LeaseState::reserved;
            lease.phase = Phase::not_sent;
            lease.sequence = static_cast<std::uint16_t>(lease.sequence + 1);
            lease.pid = process.pid;
            lease.deadline = Lease::deadline_after(now, lease_span);
            step("take.begin");
            if (!slot.lease[i].compare_exchange_strong(seen, lease.bits(), std::memory_order_seq_cst)) continue;
            step("take.reserved");
            core::Event event;
            event.kind = core::EventKind::admit_probe;
            event.slot = static_cast<std::uint8_t>(i);
            const core::Step taken = apply(slot, event, policy, process);
            step("take.applied");
            std::uint64_t reserved = lease.bits();
            Permit permit;
            permit.taken_at = now;
            if (taken.decision == core::Decision::probe) {
                lease.state = LeaseState::active;
                permit.kind = PermitKind::probe;
                permit.slot = static_cast<std::uint8_t>(i);
                permit.lease = lease.bits();
            } else {
                lease.state = LeaseState::free;
                lease.pid = 0;
                if (taken.decision == core::Decision::pass) permit.kind = PermitKind::call;
            }
            permit.generation = core::generation_of(taken.word);
            slot.lease[i].compare_exchange_strong(reserved, lease.bits(), std::memory_order_seq_cst);
            step("take.done");
            return permit;
        }
        if (is_second_look || !expire_probes(slot, policy, process)) return {};
    }
}

void settle_probe(Slot& slot, const core::Policy& policy, const Process& process, Permit& permit,
                  const Ending& ending) noexcept {
    const Lease lease = Lease::of(permit.lease);
    if (lease.is_past(process.clock.now())) {  // the deadline's rule, whoever applies it (CASES 4)
        settle_by_deadline(slot, permit.slot, permit.lease, policy, process);
        return;
    }
    core::Event event;
    event.verdict = ending.verdict;
    event.slow = ending.slow;
    event.least_open_time = ending.least_open_time;
    settle(slot, permit.slot, permit.lease, event, result_of(event), policy, process);
}

void mark(Slot& slot, Permit& permit, Phase phase, core::Millis due) noexcept {
    if (permit.kind != PermitKind::probe) return;
    Lease lease = Lease::of(permit.lease);
    lease.phase = phase;
    if (due > 0) lease.shorten(due);
    std::uint64_t expected = permit.lease;
    if (lease.bits() == expected) return;
    step("mark.begin");
    if (slot.lease[permit.slot].compare_exchange_strong(expected, lease.bits(), std::memory_order_seq_cst)) {
        permit.lease = lease.bits();
    }
}

bool expire_probes(Slot& slot, const core::Policy& policy, const Process& process) noexcept {
    bool is_any = false;
    for (std::uint32_t i = 0; i < kLeases; ++i) {
        const std::uint64_t seen = slot.lease[i].load(std::memory_order_seq_cst);
        const Lease lease = Lease::of(seen);
        if (lease.state != LeaseState::active || !lease.is_past(process.clock.now())) continue;
        if (settle_by_deadline(slot, i, seen, policy, process)) is_any = true;
    }
    return is_any;
}

void reap(Slot& slot, const core::Policy& policy, const Process& process, std::uint32_t dead_pid) noexcept {
    for (std::uint32_t i = 0; i < kLeases; ++i) {
        const std::uint64_t seen = slot.lease[i].load(std::memory_order_seq_cst);
        const Lease lease = Lease::of(seen);
        if (lease.state == LeaseState::free || lease.pid != dead_pid) continue;
        core::Event event;
        event.verdict = core::Verdict::ignore;
        settle(slot, i, seen, event, ProbeResult::neutral, policy, process);
    }
    std::uint64_t intent = slot.intent.load(std::memory_order_seq_cst);
    if (intent != 0 && (intent & kPidMask) == dead_pid) {
        slot.intent.compare_exchange_strong(intent, 0, std::memory_order_seq_cst);
    }
}

}  // namespace cb::shm
