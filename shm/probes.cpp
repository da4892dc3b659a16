// Probe slots as leases (checked by tests/model/lease.pml).
//
// A lease is taken, and ended exactly once: by its holder, by whoever finds that its deadline has passed, or by the
// parent when the holder is dead. A call can outlive its deadline (its client stalls during the upload). Then its
// outcome is applied at the deadline, but the slot stays taken, as overdue, until the call has ended too, for at most
// `policy.linger`.
#include "control.hpp"
#include "lease.hpp"
#include "step.hpp"

namespace cb::shm {
namespace {

/// The last step of settling: makes the lease overdue for the holder that is noted in it, or free. The first CAS fails
/// if the holder has given the lease back, or the parent has done so for it; then the lease becomes free. It also fails
/// if the parent took us for dead; then the parent has taken care of the lease.
void release(Slot& slot, std::uint32_t i, const Lease& settling, const core::Policy& policy,
             const Process& process) noexcept {
    std::uint64_t expected = settling.bits();
    if (settling.holder() != 0) {
        const core::Millis linger = policy.linger < core::kMaxLinger ? policy.linger : core::kMaxLinger;
        const Lease overdue = settling.overdue_until(Lease::deadline_after(process.clock.now(), linger));
        if (slot.lease[i].compare_exchange_strong(expected, overdue.bits(), std::memory_order_seq_cst)) return;
        expected = settling.settled_by(settling.pid, 0).bits();
    }
    slot.lease[i].compare_exchange_strong(expected, settling.freed().bits(), std::memory_order_seq_cst);
}

/// Ends lease i, held exactly as `held`. `holder`: who keeps the lease, as an overdue one; 0: nobody. Returns the
/// probe's end; nullopt if somebody else has ended it.
std::optional<ProbeEnd> settle(Slot& slot, std::uint32_t i, std::uint64_t held, std::uint32_t holder, core::Event event,
                               EndedBy by, ProbeResult result, const core::Policy& policy,
                               const Process& process) noexcept {
    const Lease settling = Lease::of(held).settled_by(process.pid, holder);
    std::uint64_t expected = held;
    step("settle.begin");
    if (!slot.lease[i].compare_exchange_strong(expected, settling.bits(), std::memory_order_seq_cst))
        return std::nullopt;
    step("settle.claimed");
    event.kind = core::EventKind::settle_probe;
    event.slot = static_cast<std::uint8_t>(i);
    event.draw = jitter_draw(&slot);
    // While the lease is settling nobody can take it: the outcome can't hit the bit of a later probe.
    std::uint64_t before = 0;
    const core::Step applied = apply(slot, event, policy, process, &before);
    step("settle.applied");
    // A process that died before its probe began, or in the middle of ending one, has left a lease without a probe.
    const bool is_probe = Lease::of(held).state == LeaseState::active || applied.decision != core::Decision::ignored;
    if (is_probe) slot.totals.probe_result[static_cast<std::size_t>(result)].fetch_add(1, std::memory_order_relaxed);
    release(slot, i, settling, policy, process);
    step("settle.released");
    ProbeEnd end;
    end.is_probe = is_probe;
    end.by = by;
    end.verdict = event.verdict;
    end.slow = event.slow;
    end.result = result;
    if (applied.decision != core::Decision::ignored) end.round = round_of(core::unpack(before), event);
    return end;
}

void report(const Slot& slot, const std::optional<ProbeEnd>& end, const Process& process) noexcept {
    if (end && end->is_probe && process.observer != nullptr) process.observer->on_probe(slot, *end);
}

/// Ends a lease whose deadline has passed, by the verdict of its phase. Reports a lost probe as such. If the member has
/// not answered, the call may go on and still counts against `concurrent`, so with `is_held` the lease stays its
/// holder's, as overdue.
std::optional<ProbeEnd> settle_by_deadline(Slot& slot, std::uint32_t i, std::uint64_t held, bool is_held,
                                           const core::Policy& policy, const Process& process) noexcept {
    const Lease lease = Lease::of(held);
    core::Event event;
    event.verdict = verdict_at_deadline(lease.phase);
    const ProbeResult result = lease.phase == Phase::sent ? ProbeResult::lost : result_of(event);
    const std::uint32_t holder = is_held && is_unanswered(lease.phase) ? lease.pid : 0;
    const std::optional<ProbeEnd> end =
        settle(slot, i, held, holder, event, EndedBy::deadline, result, policy, process);
    if (end && lease.phase == Phase::sent) {
        slot.totals.probes_lost.fetch_add(1, std::memory_order_relaxed);
        if (process.observer != nullptr) process.observer->on_probe_lost(slot);
    }
    return end;
}

/// The call of a probe that somebody else has ended is over: frees its lease if it is overdue, or notes that it will be
/// free if it is just being settled. Process and sequence number show that it is still the same probe's lease: the
/// number repeats only after 32,768 others.
void give_back_ended(Slot& slot, std::uint32_t i, const Lease& mine) noexcept {
    std::uint64_t seen = slot.lease[i].load(std::memory_order_seq_cst);
    for (;;) {  // this ends: a lease is settling (perhaps by the parent next), then overdue, then free
        const Lease lease = Lease::of(seen);
        Lease without_me;
        if (lease.sequence != mine.sequence) return;
        if (lease.is_overdue() && lease.pid == mine.pid) {
            without_me = lease.freed();
        } else if (lease.holder() == mine.pid) {
            without_me = lease.settled_by(lease.pid, 0);
        } else {
            return;
        }
        step("give_back.begin");
        if (slot.lease[i].compare_exchange_strong(seen, without_me.bits(), std::memory_order_seq_cst)) return;
    }
}

/// An overdue lease whose second deadline has passed, or whose holder is dead.
bool free_overdue(Slot& slot, std::uint32_t i, std::uint64_t held) noexcept {
    step("overdue.begin");
    return slot.lease[i].compare_exchange_strong(held, Lease::of(held).freed().bits(), std::memory_order_seq_cst);
}

/// Takes a dead process out of lease i. False if the lease has changed in between.
bool reap_lease(Slot& slot, std::uint32_t i, std::uint64_t seen, const core::Policy& policy, const Process& process,
                std::uint32_t dead_pid) noexcept {
    const Lease lease = Lease::of(seen);
    if (lease.state == LeaseState::free) return true;
    if (lease.pid != dead_pid) {
        if (lease.holder() != dead_pid) return true;
        const std::uint64_t unheld = lease.settled_by(lease.pid, 0).bits();
        return slot.lease[i].compare_exchange_strong(seen, unheld, std::memory_order_seq_cst);
    }
    if (lease.is_overdue()) return free_overdue(slot, i, seen);
    const std::uint32_t holder = lease.holder() != dead_pid ? lease.holder() : 0;
    core::Event event;
    event.verdict = core::Verdict::ignore;
    const EndedBy by =
        holder != 0 ? EndedBy::deadline : EndedBy::death;  // it was ending the probe of a holder that lives
    const std::optional<ProbeEnd> end = settle(slot, i, seen, holder, event, by, ProbeResult::neutral, policy, process);
    report(slot, end, process);
    return end.has_value();
}

bool is_past_deadline(const Permit& permit, const Process& process) noexcept {
    const core::Millis now = process.clock.now();
    // Every deadline lies within the horizon, beyond which the lease word can't tell whether it has passed.
    const bool is_beyond_horizon = now > permit.taken_at && now - permit.taken_at >= Lease::kHorizon;
    return is_beyond_horizon || Lease::of(permit.lease).is_past(now);
}

}  // namespace

Permit take_probe(Slot& slot, const core::Policy& policy, const Process& process, core::Millis lease_span,
                  bool is_last_resort) noexcept {
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
            // Relaxed, and before the word becomes half-open: whoever reads half-open (acquire) sees this time or a
            // later one. The probe may still be refused, if another one was faster or the state has changed.
            slot.probed_at.store(now, std::memory_order_relaxed);
            core::Event event;
            event.kind = core::EventKind::admit_probe;
            event.slot = static_cast<std::uint8_t>(i);
            event.early = is_last_resort;
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

std::optional<ProbeEnd> settle_probe(Slot& slot, const core::Policy& policy, const Process& process, Permit& permit,
                                     const Ending& ending) noexcept {
    std::optional<ProbeEnd> mine;
    if (is_past_deadline(permit, process)) {  // then the rule is the same, whoever applies it
        mine = settle_by_deadline(slot, permit.slot, permit.lease, false, policy, process);
    } else {
        core::Event event;
        event.verdict = ending.verdict;
        event.slow = ending.weighs_as_slow();
        event.by_client = ending.outcome == core::Outcome::client || ending.outcome == core::Outcome::upload;
        event.least_open_time = ending.least_open_time;
        mine = settle(slot, permit.slot, permit.lease, 0, event, EndedBy::call, result_of(event), policy, process);
    }
    if (!mine) {
        give_back_ended(slot, permit.slot, Lease::of(permit.lease));
        return mine;
    }
    mine->outcome = ending.outcome;
    mine->method = ending.method;
    mine->latency = ending.told_latency();
    return mine;
}

bool is_over(const Permit& permit, const Process& process) noexcept {
    return permit.kind == PermitKind::probe && is_unanswered(Lease::of(permit.lease).phase) &&
           is_past_deadline(permit, process);
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
        if (lease.is_overdue()) {
            is_any = free_overdue(slot, i, seen) || is_any;
            continue;
        }
        const std::optional<ProbeEnd> end = settle_by_deadline(slot, i, seen, true, policy, process);
        report(slot, end, process);
        is_any = end.has_value() || is_any;
    }
    return is_any;
}

LeaseCounts count_leases(const Slot& slot) noexcept {
    LeaseCounts counts;
    for (const Atomic64& word : slot.lease) {
        const Lease lease = Lease::of(word.load(std::memory_order_relaxed));  // for people
        if (lease.state != LeaseState::free) ++counts.taken;
        if (lease.is_in_flight()) ++counts.in_flight;
        if (lease.is_overdue()) ++counts.overdue;
    }
    return counts;
}

void reap(Slot& slot, const core::Policy& policy, const Process& process, std::uint32_t dead_pid) noexcept {
    for (std::uint32_t i = 0; i < kLeases; ++i) {
        // Again if somebody was faster: a lease that another process is ending for the dead holder becomes overdue
        // next.
        while (!reap_lease(slot, i, slot.lease[i].load(std::memory_order_seq_cst), policy, process, dead_pid)) {
        }
    }
    std::uint64_t intent = slot.intent.load(std::memory_order_seq_cst);
    if (intent != 0 && (intent & kPidMask) == dead_pid) {
        slot.intent.compare_exchange_strong(intent, 0, std::memory_order_seq_cst);
    }
}

}  // namespace cb::shm
