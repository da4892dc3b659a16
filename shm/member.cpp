#include "member.hpp"

#include <algorithm>
#include <cstring>

#include "control.hpp"
#include "early.hpp"
#include "health.hpp"
#include "kept.hpp"
#include "recorder.hpp"
#include "refusal.hpp"
#include "step.hpp"
#include "window.hpp"

namespace cb::shm {
namespace {

using core::Decision;
using core::Event;
using core::EventKind;
using core::Millis;
using core::Policy;
using core::State;
using core::Verdict;

constexpr auto kRelaxed = std::memory_order_relaxed;  // totals are read by people, one by one

/// Uniform over 32 bits and evenly spread over any run of requests: multiples of the golden ratio.
std::uint32_t ramp_draw(Slot& slot, RampTicket& ticket) noexcept {
    if (ticket.kind == RampTicket::Kind::untaken) {
        ticket.draw = static_cast<std::uint32_t>(slot.ramp_asked.fetch_add(1, kRelaxed)) * 0x9E3779B9U;
        ticket.kind = RampTicket::Kind::taken;
    }
    return ticket.draw;
}

/// A ramp lets through every request whose ticket is `always`.
Decision with_ticket(Decision decision, std::uint64_t word, const RampTicket& ticket) noexcept {
    const bool is_exempt = ticket.kind == RampTicket::Kind::always && core::state_of(word) == State::recovering;
    return is_exempt && decision == Decision::refuse ? Decision::pass : decision;
}

/// Asks to be let through, with the ticket if there is a ramp by now.
core::Step ask(Slot& slot, const Policy& policy, const Process& process, RampTicket* ticket,
               bool is_last_resort) noexcept {
    Event event;
    event.early = is_last_resort;
    if (ticket == nullptr) return apply(slot, event, policy, process);
    for (;;) {
        const bool is_ramp = core::state_of(slot.word.load(std::memory_order_seq_cst)) == State::recovering;
        if (is_ramp) event.draw = ramp_draw(slot, *ticket);
        core::Step step = apply(slot, event, policy, process);
        if (!is_ramp && core::state_of(step.word) == State::recovering) continue;  // it has just begun
        step.decision = with_ticket(step.decision, step.word, *ticket);
        return step;
    }
}

bool is_over_limit(const Policy& policy, const InFlight& in_flight) noexcept {
    if (policy.max_concurrent == 0 || in_flight.own == nullptr) return false;
    std::uint64_t total = 0;
    for (std::uint32_t i = 0; i < in_flight.columns; ++i) {
        // Read after our own cell was counted up (seq_cst both): of two who enter at once at least one sees the other.
        total += in_flight.row[i].load(std::memory_order_seq_cst);
        step("cells.sum");
    }
    return total > policy.max_concurrent;
}

void leave(Permit& permit) noexcept {
    if (permit.cell != nullptr) permit.cell->fetch_sub(1, std::memory_order_seq_cst);
    permit = Permit{};
}

void count(Slot& slot, const Ending& ending, bool is_probe) noexcept {
    Totals& totals = slot.totals;
    totals.calls.fetch_add(1, kRelaxed);
    totals.verdict[is_probe][static_cast<std::size_t>(ending.verdict)].fetch_add(1, kRelaxed);
    if (core::is_status(ending.outcome)) {
        totals.status[is_probe][core::hundred_of(ending.outcome)].fetch_add(1, kRelaxed);
    } else if (ending.outcome != core::Outcome::none) {
        const auto code = static_cast<std::uint32_t>(ending.outcome);
        totals.outcome_class[is_probe][code - static_cast<std::uint32_t>(core::Outcome::connect)].fetch_add(1,
                                                                                                            kRelaxed);
    }
    if (ending.slow) totals.slow[is_probe].fetch_add(1, kRelaxed);
}

bool is_failing(const Ending& ending) noexcept {
    return ending.slow || (ending.verdict != Verdict::success && ending.verdict != Verdict::ignore);
}

/// The result of an ordinary call: write it into the window, then weigh the window's sums.
void weigh(Slot& slot, const Policy& policy, const Process& process, const Permit& permit, const Ending& ending,
           Peers peers) noexcept {
    const std::uint64_t word = slot.word.load(std::memory_order_seq_cst);
    const State state = core::state_of(word);
    const Millis now = process.clock.now();
    const bool is_late = core::generation_of(word) != permit.generation ||
                         (state != State::closed && state != State::recovering) ||
                         now - permit.taken_at > core::kMaxPermitAge ||
                         slot.shape.load(std::memory_order_acquire) != shape_of(policy.window);
    if (is_late) {
        if (state != State::forced_closed) slot.totals.late.fetch_add(1, kRelaxed);
        return;
    }
    const bool has_slow_rate = policy.slow_call.has_rate();
    const bool is_slow = has_slow_rate && ending.weighs_as_slow();
    if (ending.verdict == Verdict::ignore && !is_slow) return;
    const bool is_failure = ending.verdict != Verdict::success && ending.verdict != Verdict::ignore;
    record(slot.window, policy.window, permit.generation, now, {is_failure, has_slow_rate, is_slow});
    step("result.recorded");
    if (ending.verdict == Verdict::success && !is_slow && core::is_quiet(word)) return;
    Event event;
    event.kind = EventKind::result;
    event.verdict = ending.verdict;
    event.slow = is_slow;
    event.generation = permit.generation;
    event.draw = jitter_draw(&slot);
    event.least_open_time = ending.least_open_time;
    Decision decision = apply(slot, event, policy, process).decision;
    if (decision == Decision::ask_max_open) {
        decision = trip_within_max_open(slot, event, policy, process, peers).decision;
    }
    if (decision == Decision::ignored)
        slot.totals.late.fetch_add(1, kRelaxed);  // the state has changed since we looked
}

}  // namespace

Decision peek(Slot& slot, const Policy& policy, const Process& process, RampTicket* ticket) noexcept {
    // Acquire: this only chooses whom to ask. The permit is taken by a CAS of the word afterwards.
    std::uint64_t word = slot.word.load(std::memory_order_acquire);
    const State state = core::state_of(word);
    if (state == State::closed || state == State::forced_closed) return Decision::pass;
    const Millis now = process.clock.now();
    RampTicket own;
    if (ticket == nullptr) ticket = &own;
    const auto look = [&]() noexcept {
        Event event;
        if (core::state_of(word) == State::recovering) event.draw = ramp_draw(slot, *ticket);
        return with_ticket(core::next(word, event, policy, now).decision, word, *ticket);
    };
    Decision decision = look();
    if (state == State::half_open && decision == Decision::refuse && expire_probes(slot, policy, process)) {
        word = slot.word.load(std::memory_order_acquire);
        decision = look();
    }
    if (decision == Decision::again) decision = Decision::pass;  // the ramp is over; admit() carries that out
    return decision;
}

bool may_probe_early(Slot& slot, const Policy& policy, const Process& process) noexcept {
    const std::uint64_t word = slot.word.load(std::memory_order_seq_cst);
    const Millis now = process.clock.now();
    return is_early_allowed(slot, word, policy, now) && core::probe_room(core::unpack(word), policy, now, true) > 0;
}

Millis time_to_probe(Slot& slot, const Policy& policy, const Process& process, bool early) noexcept {
    const std::uint64_t word = slot.word.load(std::memory_order_seq_cst);
    if (core::state_of(word) != State::open) return 0;
    const Millis now = process.clock.now();
    const Millis left = core::open_remaining(core::unpack(word), now);
    return early ? std::min(left, time_to_minimum(slot, word, policy, now)) : left;
}

Admission admit(Slot& slot, const Policy& policy, const Process& process, InFlight in_flight, bool may_probe,
                Millis lease_span, RampTicket* ticket, bool is_last_resort) noexcept {
    Admission admission;
    Permit permit;
    if (in_flight.own != nullptr) {
        in_flight.own->fetch_add(1, std::memory_order_seq_cst);  // before the sum: see is_over_limit
        permit.cell = in_flight.own;
        step("cells.added");
        if (is_over_limit(policy, in_flight)) {
            leave(permit);
            admission.refusal = Refusal::max_concurrent;
            return admission;
        }
    }
    std::uint64_t word = slot.word.load(std::memory_order_seq_cst);
    State state = core::state_of(word);
    Decision decision = Decision::pass;
    if (state != State::closed && state != State::forced_closed) {
        const core::Step taken = ask(slot, policy, process, ticket, is_last_resort);
        decision = taken.decision;
        word = taken.word;
        state = core::state_of(word);
    }
    permit.kind = PermitKind::call;
    permit.generation = core::generation_of(word);
    if (decision == Decision::probe) {
        Atomic32* const cell = permit.cell;
        permit = may_probe ? take_probe(slot, policy, process, lease_span, is_last_resort) : Permit{};
        permit.cell = cell;
        if (permit.kind == PermitKind::none) decision = Decision::refuse;
        if (permit.kind == PermitKind::call) {  // the breaker has closed, or its ramp begun, in between
            const core::Step asked = ask(slot, policy, process, ticket, false);
            decision = asked.decision == Decision::pass ? Decision::pass : Decision::refuse;
            state = core::state_of(asked.word);
            permit.generation = core::generation_of(asked.word);
        }
    }
    if (decision == Decision::refuse) {
        leave(permit);
        admission.refusal = refusal_in(state);
        return admission;
    }
    if (permit.kind == PermitKind::probe) slot.totals.probes.fetch_add(1, kRelaxed);
    if (permit.kind == PermitKind::call) permit.taken_at = process.clock.now();
    admission.permit = permit;
    return admission;
}

std::optional<ProbeEnd> finish(Slot& slot, const Policy& policy, const Process& process, Permit& permit,
                               const Ending& ending, Peers peers) noexcept {
    const bool is_probe = permit.kind == PermitKind::probe;
    count(slot, ending, is_probe);
    if (ending.is_kept) note_kept_call(slot, ending.outcome == core::Outcome::stale, policy, process);
    if (ending.is_timed) note_duration(is_probe ? slot.probe_duration : slot.call_duration, ending.latency);
    // Before the verdict is weighed: the event of a trip shows the calls that led to it.
    if (is_failing(ending)) note_failed_call(slot, process.clock.now(), ending, is_probe);
    std::optional<ProbeEnd> end;
    if (is_probe) {
        end = settle_probe(slot, policy, process, permit, ending);
    } else if (permit.kind == PermitKind::call) {
        weigh(slot, policy, process, permit, ending, peers);
    }
    leave(permit);
    return end;
}

void count_broken_off(Slot& slot, bool is_probe) noexcept {
    constexpr auto kTruncated =
        static_cast<std::size_t>(core::Outcome::truncated) - static_cast<std::size_t>(core::Outcome::connect);
    slot.totals.outcome_class[is_probe][kTruncated].fetch_add(1, kRelaxed);
}

std::optional<ProbeEnd> cancel(Slot& slot, const Policy& policy, const Process& process, Permit& permit) noexcept {
    std::optional<ProbeEnd> end;
    if (permit.kind == PermitKind::probe) end = settle_probe(slot, policy, process, permit, Ending{});
    leave(permit);
    return end;
}

bool operate(Slot& slot, const Policy& policy, const Process& process, EventKind kind) noexcept {
    Event event;
    event.kind = kind;
    return apply(slot, event, policy, process).decision == Decision::counted;
}

bool end_open_time(Slot& slot, const Policy& policy, const Process& process, std::uint64_t seen) noexcept {
    Event event;
    event.kind = EventKind::end_open_time;
    event.generation = core::generation_of(seen);
    return apply(slot, event, policy, process).decision == Decision::counted;
}

void configure(Slot& slot, const Policy& policy, const Process& process) noexcept {
    // Relaxed: who judges a probe by this policy does so long after its holder has noted it: when its lease is over, or
    // when the holder's process has ended. In the middle of a restart a reader may see some words of the old policy and
    // some of the new one; no value is in two words.
    std::uint64_t words[kPolicyWords];
    std::memcpy(words, &policy, sizeof words);
    bool is_changed = false;
    for (std::uint32_t i = 0; i < kPolicyWords; ++i)
        is_changed = slot.policy[i].exchange(words[i], kRelaxed) != words[i] || is_changed;
    // A restart: mod_proxy_balancer has written a new end of the last check.
    doubt_checks(slot);
    if (is_changed) slot.too_cautious.store(0, kRelaxed);  // what it was said of may be mended
    const std::uint64_t shape = shape_of(policy.window);
    // Release: who sees the shape (acquire, in weigh) sees the generation that belongs to it, or a later one.
    const std::uint64_t before = slot.shape.exchange(shape, std::memory_order_seq_cst);
    if (before == shape || before == 0) return;
    // The other kind's words could be taken for this one's (a bucket of generation 0 has the bits of a cell of
    // generation 1 after 11 hours). Nobody of the old shape writes any more; the CAS below publishes these stores.
    for (Atomic64& word : slot.window)
        word.store(0, kRelaxed);
    Event event;
    event.kind = EventKind::reshape;
    apply(slot, event, policy, process);
}

Policy noted_policy(const Slot& slot) noexcept {
    std::uint64_t words[kPolicyWords];
    for (std::uint32_t i = 0; i < kPolicyWords; ++i)
        words[i] = slot.policy[i].load(kRelaxed);
    Policy policy;
    std::memcpy(&policy, words, sizeof words);
    return policy;
}

core::Sums sums_now(const Slot& slot, const Policy& policy, const Process& process) noexcept {
    const std::uint32_t generation = core::generation_of(slot.word.load(std::memory_order_seq_cst));
    return sum(slot.window, policy.window, generation, process.clock.now());
}

}  // namespace cb::shm
