#include "call.hpp"

#include <algorithm>

#include "httpd/events/probe_event.hpp"
#include "httpd/request/environment.hpp"
#include "httpd/runtime.hpp"
#include "recorded_path.hpp"
#include "retry_after.hpp"
#include "timing.hpp"
#include "verdicts.hpp"

namespace cb::httpd {
namespace {

/// The members that mod_proxy could use, for CircuitBreakerMaxOpen.
shm::Peers peers_of(const RequestState& state) noexcept {
    if (state.balancer == nullptr || state.call.target.breaker->policy.max_open >= 100) return {};
    const Members members = runtime.registry->members(*state.balancer);
    auto** const slots = static_cast<shm::Slot**>(apr_palloc(state.r->pool, members.size() * sizeof(void*)));
    std::uint32_t used = 0;
    for (const proxy_worker* const worker : members) {
        constexpr unsigned kOut = PROXY_WORKER_DISABLED | PROXY_WORKER_STOPPED | PROXY_WORKER_DRAIN;
        if ((worker->s->status & kOut) != 0) continue;
        Breaker* const breaker = runtime.registry->find(*worker);
        slots[used++] = breaker != nullptr ? breaker->slot.load(std::memory_order_acquire) : nullptr;
    }
    return {slots, used};
}

/// The request ends: no scheme handler may have run at all.
extern "C" apr_status_t abandon_call(void* state) noexcept {
    auto& request = *static_cast<RequestState*>(state);
    close_call(request);
    tell_probe(request.call.ended.untold, false);
    return APR_SUCCESS;
}

/// `verdict`: of the call, and its text. After the deadline the probe may have been judged by less.
void note_end(Call& call, const std::optional<shm::ProbeEnd>& probe, core::Verdict verdict, const char* text) noexcept {
    if (!probe) return;
    const char* const reason = probe->verdict == verdict ? text : nullptr;
    call.ended.untold = UntoldProbe{call.target.slot, reason, *probe};
}

}  // namespace

void finish_call(RequestState& state, core::Outcome outcome) noexcept {
    Call& call = state.call;
    if (call.target.breaker == nullptr) return;
    const bool is_repeated = call.is_finished();
    if (!is_repeated) {
        call.ended.was_probe = call.is_probe();
        call.ended.stage = has_settled(state) ? Stage::settled : Stage::finished;
    }
    if (call.ended.stage == Stage::settled && outcome == core::Outcome::truncated) {
        call.ended.stage = Stage::break_counted;
        shm::count_broken_off(*call.target.slot, call.ended.was_probe);
    }
    if (is_repeated) return;
    if (call.is_settled()) outcome = core::status_outcome(call.seen.status);
    const core::Policy& policy = call.target.breaker->policy;
    shm::Ending ending;
    ending.outcome = outcome;
    const core::Millis at = now();
    ending.is_timed = is_timed(state, outcome);
    ending.slow = ending.is_timed && is_slow(state, at);
    const Judgement judgement = judge(state, outcome, true, ending.slow);
    ending.verdict = judgement.verdict;
    ending.is_slow_judged = judgement.is_by_slowness();
    call.ended.failover_verdict =
        judgement.is_by_slowness() ? verdict_for_failover(state, outcome, true, ending.slow) : judgement.verdict;
    if (policy.open_time.retry_after && core::is_status(outcome)) {
        ending.least_open_time = call.has_headers() ? call.seen.retry_after : retry_after_of(state.r);
    }
    ending.is_kept = call.seen.is_kept;
    ending.latency = latency_of(state, at);
    if (ending.slow && ending.latency <= policy.slow_call.threshold) ending.until_end = time_to_end(state, at);
    ending.method = static_cast<std::uint8_t>(state.r->method_number);
    if (policy.record_path) ending.path = recorded_path(state.r);
    const char* const verdict = verdict_text(state.r->pool, judgement, outcome);
    tell_verdict(state, verdict);
    note_end(call, shm::finish(*call.target.slot, policy, runtime.process, call.target.permit, ending, peers_of(state)),
             ending.verdict, verdict);
}

void begin_call(RequestState& state, Breaker& breaker, shm::Slot& slot, proxy_worker& worker,
                const shm::Permit& permit) noexcept {
    if (!state.is_abandoned_at_end) {
        state.is_abandoned_at_end = true;
        apr_pool_cleanup_register(state.r->pool, &state, abandon_call, apr_pool_cleanup_null);
    }
    state.call = Call{};
    state.call.target.breaker = &breaker;
    state.call.target.slot = &slot;
    state.call.target.worker = &worker;
    state.call.target.error_time = worker.s->error_time;
    state.call.target.permit = permit;
    state.call.target.started = now();
}

void close_call(RequestState& state) noexcept {
    Call& call = state.call;
    if (call.target.breaker != nullptr && !call.is_finished()) {
        call.ended.stage = Stage::finished;
        std::optional<shm::ProbeEnd> probe =
            shm::cancel(*call.target.slot, call.target.breaker->policy, runtime.process, call.target.permit);
        if (probe) probe->method = static_cast<std::uint8_t>(state.r->method_number);
        note_end(call, probe, core::Verdict::ignore, core::name(core::Verdict::ignore));
    }
    call.target.breaker = nullptr;
}

core::Millis lease_span(const request_rec* r, const Breaker& breaker, const proxy_worker& worker) noexcept {
    const core::Millis timeout = member_timeout(r, worker);
    const core::Millis connect =
        worker.s->conn_timeout_set != 0 ? static_cast<core::Millis>(worker.s->conn_timeout / 1000) : timeout;
    const core::Millis probe = breaker.policy.probe_timeout > 0 ? breaker.policy.probe_timeout : timeout;
    const core::Millis span = connect + probe + settle_time(r, breaker) + 1000;
    constexpr core::Millis kLongest = 36ULL * 3600 * core::kMillisPerSecond;  // what a lease's deadline can hold
    return std::min(span, kLongest);
}

}  // namespace cb::httpd
