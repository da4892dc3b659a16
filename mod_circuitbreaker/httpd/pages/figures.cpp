#include "figures.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "shm/refusal.hpp"

namespace cb::httpd {
namespace {

using M = MemberSnapshot;
using core::Policy;
using core::State;

/// The value at the end of a path: `First` of the object, and so on.
template <auto First, auto... Rest, class Object>
std::uint64_t follow(const Object& object) noexcept {
    if constexpr (sizeof...(Rest) == 0) {
        return std::invoke(First, object);
    } else {
        return follow<Rest...>(std::invoke(First, object));
    }
}

template <auto... Path>
Value at(const M& member, std::uint32_t) noexcept {
    return {follow<Path...>(member)};
}

/// A limit; 0 means that there is none.
template <auto... Path>
Value limit(const M& member, std::uint32_t) noexcept {
    const std::uint64_t number = follow<Path...>(member);
    return {number, number > 0};
}

template <auto Array, auto Name>
Value nth(const M& member, std::uint32_t i) noexcept {
    return {(member.counts.*Array)[i], true, 0, Name(i)};
}

constexpr auto kVerdictName = [](std::uint32_t i) noexcept { return core::name(static_cast<core::Verdict>(i)); };
constexpr auto kStateName = [](std::uint32_t i) noexcept { return core::name(static_cast<State>(i)); };
constexpr auto kResultName = [](std::uint32_t i) noexcept { return shm::name(static_cast<shm::ProbeResult>(i)); };

/// Without Refusal::none.
template <auto Array>
Value refusal(const M& member, std::uint32_t i) noexcept {
    return {(member.counts.*Array)[i + 1], true, 0, name(static_cast<shm::Refusal>(i + 1))};
}

// Calls are counted apart for those that were no probes and for probes.

Value verdict_of(const M& member, bool is_probe, std::uint32_t i) noexcept {
    return {member.counts.verdict[is_probe][i], true, 0, kVerdictName(i)};
}

/// By class, then by class of status.
constexpr std::uint32_t kOutcomes = core::kClasses + core::kHundredCount;
Value outcome_of(const M& member, bool is_probe, std::uint32_t i) noexcept {
    if (i >= core::kClasses) {
        const std::uint32_t hundred = i - core::kClasses;
        return {member.counts.status[is_probe][hundred], true, 0, core::kHundreds[hundred]};
    }
    const auto code = static_cast<core::Outcome>(static_cast<std::uint32_t>(core::Outcome::connect) + i);
    return {member.counts.outcome_class[is_probe][i], true, 0, core::class_name(code)};
}

Value slow_of(const M& member, bool is_probe, std::uint32_t) noexcept {
    return {member.counts.slow[is_probe]};
}

using OfKind = Value (*)(const M& member, bool is_probe, std::uint32_t i) noexcept;
template <OfKind Of>
Value of_all(const M& member, std::uint32_t i) noexcept {
    Value value = Of(member, false, i);
    value.number += Of(member, true, i).number;
    return value;
}
template <OfKind Of>
Value of_probes(const M& member, std::uint32_t i) noexcept {
    return Of(member, true, i);
}
/// All values of ordinary calls, and then all of probes; the last label says which.
template <OfKind Of, std::uint32_t Count>
Value by_kind(const M& member, std::uint32_t i) noexcept {
    const bool is_probe = i >= Count;
    Value value = Of(member, is_probe, i % Count);
    (value.name == nullptr ? value.name : value.to) = is_probe ? "1" : "0";
    return value;
}

Value is_state(const M& member, std::uint32_t i) noexcept {
    return {static_cast<std::uint32_t>(member.state()) == i ? 1U : 0U, true, 0, kStateName(i)};
}

Value awaits_check(const M& member, std::uint32_t) noexcept {
    return {member.is_awaiting_check ? 1U : 0U};
}
Value is_too_cautious(const M& member, std::uint32_t) noexcept {
    return {core::is_too_cautious(member.too_cautious) ? 1U : 0U};
}
Value outages(const M& member, std::uint32_t) noexcept {
    return {std::accumulate(std::begin(member.outages.bucket), std::end(member.outages.bucket), std::uint64_t{0})};
}
Value next_probe(const M& member, std::uint32_t) noexcept {
    return {member.next_probe_in, member.state() == State::open};
}
Value ramp(const M& member, std::uint32_t) noexcept {
    return {member.ramp_percent, member.state() == State::recovering};
}
Value span(const M& member, std::uint32_t) noexcept {
    return {member.policy.window.span, member.policy.window.calls == 0};
}
Value slow_limit(const M& member, std::uint32_t) noexcept {
    const core::SlowCall& slow = member.policy.slow_call;
    return {slow.has_rate() ? slow.rate : 0, slow.has_rate()};
}
/// Of the present round, or of the first one that would begin.
Value needed(const M& member, std::uint32_t) noexcept {
    return {core::needed(member.policy.probes, member.round())};
}
Value tolerated(const M& member, std::uint32_t) noexcept {
    return {core::tolerated(member.policy.probes, member.round())};
}
Value failure_ratio(const M& member, std::uint32_t) noexcept {
    return {member.sums.failures, true, member.sums.calls};
}
Value slow_ratio(const M& member, std::uint32_t) noexcept {
    return {member.sums.slow_calls, true, member.sums.timed_calls};
}

/// Changes of state that can happen: all of them are shown from the start, as a counter that appears with
/// its first event hides that event from rate().
bool can_follow(State from, State to) noexcept {
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

Value transition(const M& member, std::uint32_t i) noexcept {
    const std::uint32_t from = i / core::kStates;
    const std::uint32_t to = i % core::kStates;
    const bool is_one = can_follow(static_cast<State>(from), static_cast<State>(to));
    return {member.counts.transition[from][to], is_one, 0, kStateName(from), kStateName(to)};
}

constexpr MetricKind kCounter = MetricKind::counter;
constexpr MetricKind kGauge = MetricKind::gauge;
constexpr MetricKind kHistogram = MetricKind::histogram;

// A row: part, keys {JSON, text, mod_status, XML, metric, HTML}, value, metric, shape, values of a set.
// clang-format off
constexpr Figure kFigures[] = {
    {Part::state, {{}, {}, {}, {}, {"state", 1}}, is_state,
     {kGauge, "1 for the state that the breaker is in, 0 for the others.", nullptr, {"state"}},
     Shape::set, core::kStates},
    {Part::state, {{"level"}, {"Level"}, {"Level", 1}, {"level", 1}, {"backoff_level", 16}},
     at<&M::word, &core::Word::level>,
     {kGauge, "How often in a row it has opened again without having been well in between."}},
    {Part::state, {{"generation"}, {"Generation"}}, at<&M::changes_ever>},
    {Part::stay, {{"since_ms"}, {"Since-ms"}, {"SinceMs"}, {"since_ms"}}, at<&M::in_state_for>},
    {Part::state, {{"next_probe_ms"}, {"Next-probe-ms"}, {"NextProbeMs"}, {"next_probe_ms", 1}, {"open_remaining_seconds", 15}},
     next_probe,
     {kGauge, "Time until an open breaker may be probed.", "seconds"}},
    {Part::state, {{"awaits_check"}, {"Awaits-check"}}, awaits_check},
    {Part::state, {{"ramp_percent"}, {"Ramp-percent"}}, ramp},

    {Part::window, {{"span_ms"}}, span},
    {Part::window, {{"span_calls"}}, limit<&M::policy, &Policy::window, &core::Window::calls>},
    {Part::window, {{"calls"}, {"Window-calls"}, {"WindowCalls", 1}, {"calls", 1}, {"window_calls", 14}},
     at<&M::sums, &core::Sums::calls>,
     {kGauge, "Calls in the window."}},
    {Part::window, {{"failures"}, {"Window-failures"}, {"WindowFailures", 1}, {"failures", 1}},
     at<&M::sums, &core::Sums::failures>},
    {Part::window, {{"failure_rate"}, {}, {}, {}, {"failure_ratio", 13}}, failure_ratio,
     {kGauge, "Failures as a share of the calls in the window, 0 to 1."}, Shape::ratio},
    {Part::window, {{"timed_calls"}, {"Window-timed-calls"}}, at<&M::sums, &core::Sums::timed_calls>},
    {Part::window, {{"slow_calls"}, {"Window-slow"}, {"WindowSlow", 1}, {"slow_calls", 1}},
     at<&M::sums, &core::Sums::slow_calls>},
    {Part::window, {{"slow_rate"}}, slow_ratio, {}, Shape::ratio},
    {Part::window, {{"consecutive_failures"}, {"Consecutive"}, {"Consecutive", 1}, {"consecutive", 1}},
     at<&M::word, &core::Word::consecutive>},

    {Part::probes, {{"in_flight"}, {"Probes-in-flight"}, {"ProbesInFlight", 1}, {"probes_in_flight", 1}, {"probes_in_flight", 12}},
     at<&M::probes_in_flight>,
     {kGauge, "Probes under way."}},
    {Part::probes, {{"overdue"}, {"Probes-overdue"}}, at<&M::leases, &shm::LeaseCounts::overdue>},
    {Part::probes, {{"concurrent"}, {"Probes-limit"}}, at<&M::policy, &Policy::probes, &core::Probes::concurrent>},
    {Part::probes, {{"succeeded"}, {"Probes-succeeded"}}, at<&M::word, &core::Word::successes>},
    {Part::probes, {{"needed"}}, needed},
    {Part::probes, {{"failed"}, {"Probes-failed"}}, at<&M::word, &core::Word::failures>},
    {Part::probes, {{"tolerated"}}, tolerated},
    {Part::probes, {{"neutral"}}, at<&M::word, &core::Word::neutral>},

    {Part::load, {{"in_flight"}, {"In-flight"}, {"InFlight", 1}}, at<&M::in_flight>},
    {Part::load, {{}, {"Leases"}}, at<&M::leases, &shm::LeaseCounts::taken>},

    {Part::limits, {{"minimum_calls"}, {"Minimum-calls"}}, at<&M::policy, &Policy::minimum_calls>},
    {Part::limits, {{"failure_percent"}, {"Failure-percent-limit"}}, limit<&M::policy, &Policy::failure_rate>},
    {Part::limits, {{"failure_count"}, {"Failure-count-limit"}}, limit<&M::policy, &Policy::failure_count>},
    {Part::limits, {{"slow_percent", 2}, {"Slow-percent-limit"}}, slow_limit},
    {Part::limits, {{"slow_call_ms", 1}, {"Slow-call-ms"}},
     limit<&M::policy, &Policy::slow_call, &core::SlowCall::threshold>},
    {Part::limits, {{"consecutive_failures"}, {"Consecutive-limit"}}, limit<&M::policy, &Policy::consecutive_failures>},
    {Part::limits, {{"in_flight", 3}, {"In-flight-limit"}}, limit<&M::policy, &Policy::max_concurrent>},

    {Part::totals, {{"calls"}, {"Calls"}, {"Calls", 1}, {}, {}, {"calls", 0, true}}, at<&M::counts, &Counts::calls>},
    {Part::totals, {{"verdicts"}, {"Verdict"}, {}, {}, {}, {""}}, of_all<verdict_of>, {}, Shape::set, core::kVerdicts},
    {Part::totals, {{"probe_verdicts"}}, of_probes<verdict_of>, {}, Shape::set, core::kVerdicts},
    {Part::totals, {{}, {}, {}, {}, {"calls", 2}}, by_kind<verdict_of, core::kVerdicts>,
     {kCounter, "Calls to the member, by verdict.", nullptr, {"verdict", "probe"}}, Shape::set, 2 * core::kVerdicts},
    {Part::totals, {{"outcomes"}, {"Outcome"}, {}, {}, {}, {"ended as "}}, of_all<outcome_of>, {}, Shape::set, kOutcomes},
    {Part::totals, {{"probe_outcomes"}}, of_probes<outcome_of>, {}, Shape::set, kOutcomes},
    {Part::totals, {{}, {}, {}, {}, {"outcomes", 3}}, by_kind<outcome_of, kOutcomes>,
     {kCounter, "Calls to the member, by outcome: class, or class of status.", nullptr, {"outcome", "probe"}},
     Shape::set, 2 * kOutcomes},
    {Part::totals, {{"slow"}, {"Slow"}, {}, {}, {}, {"slow"}}, of_all<slow_of>},
    {Part::totals, {{}, {}, {}, {}, {"slow_calls", 4}}, by_kind<slow_of, 1>,
     {kCounter, "Calls slower than CircuitBreakerSlowCall.", nullptr, {"probe"}}, Shape::set, 2},
    {Part::totals, {{"probes"}, {"Probes"}, {}, {}, {}, {"probes", 2}}, at<&M::counts, &Counts::probes>},
    {Part::totals, {{"probes_lost"}, {"Probes-lost"}, {}, {}, {}, {"probes lost", 6}},
     at<&M::counts, &Counts::probes_lost>},
    {Part::totals, {{}, {}, {}, {}, {"probes", 9}}, nth<&Counts::probe_result, kResultName>,
     {kCounter, "Probes that have ended, by result; neutral ones proved nothing.", nullptr, {"result"}},
     Shape::set, shm::kProbeResults},
    {Part::totals, {{"late"}, {"Late"}, {}, {}, {}, {"results that came late", 7}}, at<&M::counts, &Counts::late>},
    {Part::totals, {{"suppressed"}, {"Suppressed"}, {}, {}, {"suppressed", 19}, {"openings suppressed by MaxOpen", 5}},
     at<&M::counts, &Counts::suppressed>,
     {kCounter, "Openings that CircuitBreakerMaxOpen did not allow."}},
    {Part::totals, {{"failovers"}, {"Failovers"}, {}, {}, {"failovers", 17}, {"sent on to another member", 3}},
     at<&M::counts, &Counts::failovers>,
     {kCounter, "Requests that went on to another member after a call to this one."}},
    {Part::totals, {{"probed_early"}, {"Probed-early"}, {}, {}, {"early_rounds", 18}, {"probed early: no other member", 4}},
     at<&M::counts, &Counts::early>,
     {kCounter, "Rounds of probes that began before the open time was over, because there was no other member."}},
    {Part::totals, {{}, {"Refused"}, {"Refused", 2}, {"refused", 1}}, at<&M::counts, &Counts::all_refused>},
    {Part::totals, {{}, {"Would-refuse"}}, at<&M::counts, &Counts::all_would_refuse>},
    {Part::totals, {{"refused"}, {"Refused"}, {}, {}, {"rejected", 5}, {"refused: ", 1}}, refusal<&Counts::refused>,
     {kCounter, "Times that the breaker refused a request, by reason.", nullptr, {"reason"}},
     Shape::set, shm::kRefusals - 1},
    {Part::totals, {{"would_refuse"}, {}, {}, {}, {"would_reject", 6}}, refusal<&Counts::would_refuse>,
     {kCounter, "Times that the breaker would have refused a request, where CircuitBreaker is Observe.", nullptr, {"reason"}},
     Shape::set, shm::kRefusals - 1},
    {Part::totals, {{"transitions"}, {"Transitions"}}, at<&M::counts, &Counts::all_transitions>},
    {Part::totals, {{}, {}, {}, {}, {"transitions", 7}}, transition,
     {kCounter, "Changes of state.", nullptr, {"from", "to"}}, Shape::set, core::kStates * core::kStates},
    {Part::totals, {{"opened"}, {"Opened"}, {"Opened", 1}, {}, {}, {"opened", 8, true}},
     at<&M::counts, &Counts::opened>},
    {Part::totals, {{"state_ms"}, {"State-ms"}, {}, {}, {"state_seconds", 8}}, nth<&Counts::state_ms, kStateName>,
     {kCounter, "Time spent in each state.", "seconds", {"state"}}, Shape::set, core::kStates},
    {Part::totals, {{}, {}, {}, {}, {"flapping", 20}},
     at<&M::is_flapping>, {kGauge, "1 while the breaker is reported as flapping."}},
    {Part::totals, {{}, {}, {}, {}, {"probe_duration_seconds", 10}}, nullptr,
     {kHistogram, "Time to the first byte of the response to a probe.", "seconds"}, Shape::histogram, 1, &M::probes},
    {Part::totals, {{}, {}, {}, {}, {"call_duration_seconds", 11}}, nullptr,
     {kHistogram, "Time to the first byte of the response to a call, not a probe.", "seconds"},
     Shape::histogram, 1, &M::calls},
    {Part::totals, {{}, {}, {}, {}, {"outage_duration_seconds", 21}}, nullptr,
     {kHistogram, "Time from an opening until the breaker was closed again.", "seconds"}, Shape::histogram, 1, &M::outages},
    {Part::totals, {{}, {}, {}, {}, {"outage_waiting_seconds", 22}}, nullptr,
     {kHistogram, "Of that, the time after the member had shown that it was well.", "seconds"},
     Shape::histogram, 1, &M::waiting},
    {Part::totals, {{}, {}, {}, {}, {"too_cautious", 23}}, is_too_cautious,
     {kGauge, "1 if most of the last outage went by after the member had shown that it was well."}},
    {Part::totals, {{"outages"}, {"Outages"}, {}, {}, {}, {"outages", 9}}, outages},
    {Part::totals, {{"outage_ms"}, {"Outage-ms"}}, at<&M::outages, &Durations::sum_ms>},
    {Part::totals, {{"outage_waiting_ms"}, {"Outage-waiting-ms"}}, at<&M::waiting, &Durations::sum_ms>},
};
// clang-format on

constexpr bool is_in(const Figure& figure, Form form) noexcept {
    return figure.key_in(form).name != nullptr;
}

template <Form form>
constexpr auto kInForm = [] {
    constexpr auto kCount =
        std::ranges::count_if(kFigures, [](const Figure& each) noexcept { return is_in(each, form); });
    std::array<const Figure*, kCount> shown{};
    std::size_t count = 0;
    for (const Figure& figure : kFigures) {
        if (is_in(figure, form)) shown[count++] = &figure;
    }
    std::ranges::sort(shown, [](const Figure* a, const Figure* b) noexcept {
        const auto first = a->key_in(form).place;
        const auto second = b->key_in(form).place;
        return first != second ? first < second : a < b;
    });
    return shown;
}();

}  // namespace

std::span<const Figure* const> figures_in(Form form) noexcept {
    switch (form) {
        case Form::json:
            return kInForm<Form::json>;
        case Form::text:
            return kInForm<Form::text>;
        case Form::status:
            return kInForm<Form::status>;
        case Form::xml:
            return kInForm<Form::xml>;
        case Form::metrics:
            return kInForm<Form::metrics>;
        case Form::html:
            break;
    }
    return kInForm<Form::html>;
}

}  // namespace cb::httpd
