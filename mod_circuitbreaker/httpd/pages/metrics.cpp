#include "metrics.hpp"

#include <string_view>

#include "exposition.hpp"
#include "shm/history.hpp"
#include "shm/refusal.hpp"

namespace cb::httpd {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;  // counters for people, read one by one

struct Member {
    const Breaker& breaker;
    const shm::Slot& slot;
};

const char* state_name(std::size_t state) noexcept {
    return core::name(static_cast<core::State>(state));
}

core::Word word_of(const Member& member) noexcept {
    return core::unpack(member.slot.word.load(std::memory_order_acquire));
}

void put_state(Exposition& out, const Member& member) noexcept {
    const core::State state = word_of(member).state;
    for (std::size_t i = 0; i < core::kStates; ++i)
        out.put(Number::count(static_cast<std::size_t>(state) == i ? 1 : 0), {{"state", state_name(i)}});
}

void put_calls(Exposition& out, const Member& member) noexcept {
    for (std::size_t i = 0; i < core::kVerdicts; ++i) {
        out.put(Number::count(member.slot.totals.verdict[i].load(kRelaxed)),
                {{"verdict", core::name(static_cast<core::Verdict>(i))}});
    }
}

void put_outcomes(Exposition& out, const Member& member) noexcept {
    for (std::size_t i = 0; i < core::kClasses; ++i) {
        const auto outcome = static_cast<core::Outcome>(static_cast<std::size_t>(core::Outcome::connect) + i);
        out.put(Number::count(member.slot.totals.outcome_class[i].load(kRelaxed)),
                {{"outcome", core::class_name(outcome)}});
    }
    for (std::size_t i = 0; i < core::kHundredCount; ++i)
        out.put(Number::count(member.slot.totals.status[i].load(kRelaxed)), {{"outcome", core::kHundreds[i]}});
}

void put_slow_calls(Exposition& out, const Member& member) noexcept {
    out.put(Number::count(member.slot.totals.slow.load(kRelaxed)));
}

void put_refusals(Exposition& out, const shm::Atomic64 (&counters)[shm::kRefusals]) noexcept {
    for (std::size_t i = 1; i < shm::kRefusals; ++i)
        out.put(Number::count(counters[i].load(kRelaxed)), {{"reason", name(static_cast<shm::Refusal>(i))}});
}

void put_rejected(Exposition& out, const Member& member) noexcept {
    put_refusals(out, member.slot.totals.refused);
}

void put_would_reject(Exposition& out, const Member& member) noexcept {
    put_refusals(out, member.slot.totals.would_refuse);
}

/// Changes of state that can happen (DESIGN 2): all of them are shown from the start, as a counter that appears with
/// its first event hides that event from rate().
bool can_follow(core::State from, core::State to) noexcept {
    using core::State;
    if (from == to) return false;
    switch (to) {
        case State::open:
            return from == State::closed || from == State::half_open || from == State::recovering;
        case State::half_open:
            return from == State::open;
        case State::recovering:
            return from == State::half_open || from == State::open;  // after an early round
        default:
            return true;  // by an operator from everywhere
    }
}

void put_transitions(Exposition& out, const Member& member) noexcept {
    for (std::size_t from = 0; from < core::kStates; ++from) {
        for (std::size_t to = 0; to < core::kStates; ++to) {
            if (!can_follow(static_cast<core::State>(from), static_cast<core::State>(to))) continue;
            out.put(Number::count(member.slot.totals.transition[from][to].load(kRelaxed)),
                    {{"from", state_name(from)}, {"to", state_name(to)}});
        }
    }
}

/// The newest entry of the history, or closed if there is none yet.
core::State newest_state(const shm::Slot& slot) noexcept {
    shm::HistoryEntry entries[shm::kHistory];
    const std::uint32_t count = shm::read_history(slot, entries);
    return count > 0 ? entries[count - 1].to : core::State::closed;
}

/// The state that its time belongs to. Until an early round succeeds, that is open.
core::State state_told(std::uint64_t word) noexcept {
    return core::is_early(word) ? core::State::open : core::state_of(word);
}

void put_state_seconds(Exposition& out, const Member& member) noexcept {
    const shm::Slot& slot = member.slot;
    core::Millis spent[core::kStates] = {};
    // While a change is being noted its stay is in neither sum (shm/control.cpp), and a counter that falls looks like a
    // restart. So again, until the state is the one noted last; not for ever, as a killed child may have left it so.
    for (int look = 0; look < 100; ++look) {
        const std::uint64_t before = slot.word.load(std::memory_order_seq_cst);
        const core::State state = state_told(before);
        const core::Millis now = runtime.process.clock.now();
        const core::Millis since = slot.since.load(kRelaxed);
        for (std::size_t i = 0; i < core::kStates; ++i)
            spent[i] = slot.totals.state_ms[i].load(kRelaxed);
        if (now > since) spent[static_cast<std::size_t>(state)] += now - since;
        if (newest_state(slot) == state && slot.since.load(kRelaxed) == since &&
            state_told(slot.word.load(std::memory_order_seq_cst)) == state) {
            break;
        }
    }
    for (std::size_t i = 0; i < core::kStates; ++i)
        out.put(Number::seconds(spent[i]), {{"state", state_name(i)}});
}

void put_probes(Exposition& out, const Member& member) noexcept {
    constexpr const char* kResults[shm::kProbeResults] = {"success", "failure", "neutral", "lost"};
    for (std::size_t i = 0; i < shm::kProbeResults; ++i)
        out.put(Number::count(member.slot.totals.probe_result[i].load(kRelaxed)), {{"result", kResults[i]}});
}

void put_probe_duration(Exposition& out, const Member& member) noexcept {
    out.put(member.slot.probe_duration);
}

void put_call_duration(Exposition& out, const Member& member) noexcept {
    out.put(member.slot.call_duration);
}

void put_probes_in_flight(Exposition& out, const Member& member) noexcept {
    out.put(Number::count(shm::count_leases(member.slot).in_flight));
}

void put_failure_ratio(Exposition& out, const Member& member) noexcept {
    const core::Sums sums = shm::sums_now(member.slot, member.breaker.policy, runtime.process);
    out.put(Number::ratio(sums.failures, sums.calls));
}

void put_window_calls(Exposition& out, const Member& member) noexcept {
    out.put(Number::count(shm::sums_now(member.slot, member.breaker.policy, runtime.process).calls));
}

void put_open_remaining(Exposition& out, const Member& member) noexcept {
    const core::Word word = word_of(member);
    const bool is_open = word.state == core::State::open;
    out.put(Number::seconds(is_open ? core::open_remaining(word, runtime.process.clock.now()) : 0));
}

void put_backoff_level(Exposition& out, const Member& member) noexcept {
    out.put(Number::count(word_of(member).level));
}

void put_early(Exposition& out, const Member& member) noexcept {
    out.put(Number::count(member.slot.totals.early.load(kRelaxed)));
}
void put_failovers(Exposition& out, const Member& member) noexcept {
    out.put(Number::count(member.slot.totals.failovers.load(kRelaxed)));
}

void put_suppressed(Exposition& out, const Member& member) noexcept {
    out.put(Number::count(member.slot.totals.suppressed.load(kRelaxed)));
}

void put_flapping(Exposition& out, const Member& member) noexcept {
    out.put(Number::count(member.slot.flapping.load(kRelaxed) != 0 ? 1 : 0));
}

struct MemberFamily {
    Family family;
    void (*put)(Exposition& out, const Member& member) noexcept;
};

constexpr MetricKind kCounter = MetricKind::counter;
constexpr MetricKind kGauge = MetricKind::gauge;
constexpr MetricKind kHistogram = MetricKind::histogram;

constexpr MemberFamily kFamilies[] = {
    {{"state", kGauge, nullptr, "1 for the state that the breaker is in, 0 for the others."}, put_state},
    {{"calls", kCounter, nullptr, "Calls to the member, by verdict."}, put_calls},
    {{"outcomes", kCounter, nullptr, "Calls to the member, by outcome: class, or class of status."}, put_outcomes},
    {{"slow_calls", kCounter, nullptr, "Calls slower than CircuitBreakerSlowCall."}, put_slow_calls},
    {{"rejected", kCounter, nullptr, "Times that a request was not let to the member, by reason."}, put_rejected},
    {{"would_reject", kCounter, nullptr, "The same where CircuitBreaker is Observe: it was let through."},
     put_would_reject},
    {{"transitions", kCounter, nullptr, "Changes of state."}, put_transitions},
    {{"state_seconds", kCounter, "seconds", "Time spent in each state."}, put_state_seconds},
    {{"probes", kCounter, nullptr, "Probes that have ended, by result; neutral ones proved nothing."}, put_probes},
    {{"probe_duration_seconds", kHistogram, "seconds", "Time to the first byte of the response to a probe."},
     put_probe_duration},
    {{"call_duration_seconds", kHistogram, "seconds", "Time to the first byte of the response to a call, not a probe."},
     put_call_duration},
    {{"probes_in_flight", kGauge, nullptr, "Probes under way."}, put_probes_in_flight},
    {{"failure_ratio", kGauge, nullptr, "Failures as a share of the calls in the window, 0 to 1."}, put_failure_ratio},
    {{"window_calls", kGauge, nullptr, "Calls in the window."}, put_window_calls},
    {{"open_remaining_seconds", kGauge, "seconds", "Time until an open breaker may be probed."}, put_open_remaining},
    {{"backoff_level", kGauge, nullptr, "How often in a row it has opened without having been well in between."},
     put_backoff_level},
    {{"failovers", kCounter, nullptr, "Requests that went on to another member after a call to this one."},
     put_failovers},
    {{"early_rounds", kCounter, nullptr,
      "Rounds of probes that began before the open time was over, as there was no other member."},
     put_early},
    {{"suppressed", kCounter, nullptr, "Openings that CircuitBreakerMaxOpen did not allow."}, put_suppressed},
    {{"flapping", kGauge, nullptr, "1 while the breaker is reported as flapping."}, put_flapping},
};
constexpr Family kEventsLost = {"events_lost", kCounter, nullptr, "Lines that the event log did not take."};

void put_all(Exposition& out) noexcept {
    for (const MemberFamily& shown : kFamilies) {
        out.begin(shown.family);
        for (std::uint32_t i = 0; runtime.registry != nullptr && i < runtime.segment.header->capacity; ++i) {
            // Not those that are no longer configured and wait for the last old child to end.
            const Breaker* const breaker = runtime.registry->at(i);
            if (breaker == nullptr || !runtime.segment.is_ready(i)) continue;
            const shm::Slot& slot = runtime.segment.slots[i];
            out.of(names_of(slot));
            shown.put(out, {*breaker, slot});
        }
    }
    out.begin(kEventsLost);
    out.put(Number::count(runtime.segment.is_valid() ? runtime.segment.header->events_lost.load(kRelaxed) : 0));
    out.end();
}

}  // namespace

extern "C" int cb_on_metrics(request_rec* r) noexcept {
    if (r->handler == nullptr || strcmp(r->handler, "circuitbreaker-metrics") != 0) return DECLINED;
    ap_allow_standard_methods(r, REPLACE_ALLOW, M_GET, -1);
    if (r->method_number != M_GET) return HTTP_METHOD_NOT_ALLOWED;
    const bool is_open_metrics = wants_open_metrics(apr_table_get(r->headers_in, "Accept"));
    ap_set_content_type(r, is_open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                           : "text/plain; version=0.0.4; charset=utf-8");
    apr_table_setn(r->headers_out, "Cache-Control", "no-store");
    apr_table_mergen(r->headers_out, "Vary", "Accept");
    if (r->header_only) return OK;
    if (runtime.registry != nullptr) runtime.registry->know_all_members();
    Exposition out(r, is_open_metrics);
    put_all(out);
    return OK;
}

}  // namespace cb::httpd
