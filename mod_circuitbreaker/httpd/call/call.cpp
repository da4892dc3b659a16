#include "call.hpp"

#include <algorithm>

#include "backend_connection.hpp"
#include "httpd/choose/ramp.hpp"
#include "httpd/failover/failover.hpp"
#include "httpd/failover/holding.hpp"
#include "httpd/request/environment.hpp"
#include "httpd/runtime.hpp"
#include "outcome.hpp"
#include "probe_marks.hpp"
#include "recorded_path.hpp"
#include "retry_after.hpp"
#include "verdicts.hpp"
#include "watch.hpp"

namespace cb::httpd {
namespace {

core::Millis now() noexcept {
    return runtime.process.clock.now();
}

/// The members that mod_proxy could use, for CircuitBreakerMaxOpen.
shm::Peers peers_of(const RequestState& state) noexcept {
    if (state.balancer == nullptr || state.call.breaker->policy.max_open >= 100) return {};
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

int run_handler(RequestState& state, proxy_worker& worker, char* url, const char* proxyhost,
                apr_port_t proxyport) noexcept {
    const RunningCall running(state.call);
    return proxy.run_scheme_handler(state.r, &worker, state.conf, url, proxyhost, proxyport);
}

int run_call(RequestState& state, proxy_worker& worker, char* url, const char* proxyhost,
             apr_port_t proxyport) noexcept {
    Call& call = state.call;
    if (call.has_run) {
        // With ProxyRemote this is not the first handler of the selection: what was seen of the last one is over.
        const shm::Permit permit = call.permit;
        const core::Millis started = call.started;
        begin_call(state, *call.breaker, *call.slot, *call.worker, permit);
        call.started = started;
    }
    call.has_run = true;
    const char* const scheme = worker.s->scheme;
    call.is_http = strncmp(scheme, "http", 4) == 0 || strncmp(scheme, "ws", 2) == 0;
    if (state.failover.calls > 1) clear_notes(state.r);  // of the call before
    call.response_filter = add_response_filter(state);
    note_begin(state);
    state.is_nested = true;
    const int rv = run_handler(state, worker, url, proxyhost, proxyport);
    state.is_nested = false;
    ap_remove_output_filter(call.response_filter);
    call.response_filter = nullptr;
    // Of an answer without a body nothing may have come to the filter (mod_proxy_fcgi).
    if (rv == OK && !call.is_answering) note_new_session(state);
    return rv;
}

/// The next member gets the whole of the request's body: nothing of it has been read, or it is kept, or the handler has
/// read it before it connected, and has it still. The others lose what they have read.
bool has_body_still(const RequestState& state, int rv) noexcept {
    if (state.body == nullptr || state.body->size == 0 || is_body_kept(state)) return true;
    const bool prefetches = state.call.is_http || strcmp(state.call.worker->s->scheme, "fcgi") == 0;
    return prefetches && rv == HTTP_SERVICE_UNAVAILABLE;
}

/// A call that never reached its member may go to another one, as in stock httpd (proxy_handler, `maxattempts`), and
/// whatever the reason: stock httpd takes a TLS handshake or a name lookup that fails (500) for final.
bool may_go_on(const RequestState& state, int rv, core::Outcome outcome, int attempts) noexcept {
    if (state.balancer == nullptr || !state.call.breaker->is_enforcing()) return false;
    const bool is_local = outcome == core::Outcome::local && rv == HTTP_SERVICE_UNAVAILABLE;
    if (outcome != core::Outcome::connect && !is_local) return false;
    if (has_remote(state) || !has_body_still(state, rv)) return false;
    return state.balancer->s->max_attempts_set != 0 && attempts <= state.balancer->s->max_attempts;
}

/// A call to a member without a breaker, to which a request has gone on: nothing is watched.
int run_unwatched(RequestState& state, proxy_worker& worker, char* url) noexcept {
    clear_notes(state.r);
    if (state.told.fallback != nullptr) show_environment_at_answer(state);
    state.is_nested = true;
    const int rv = proxy.run_scheme_handler(state.r, &worker, state.conf, url, nullptr, 0);
    state.is_nested = false;
    return rv;
}

extern "C" int on_scheme_handler(request_rec* r, proxy_worker* worker, proxy_server_conf* conf, char* url,
                                 const char* proxyhost, apr_port_t proxyport) noexcept {
    RequestState* const state = request_state(r, false);
    if (state == nullptr || state->is_nested) return DECLINED;
    hide_environment(*state);  // of a call before this one
    if (state->call.breaker == nullptr) {
        if (state->told.fallback != nullptr) show_environment_at_answer(*state);
        return DECLINED;
    }
    state->conf = conf;
    for (int attempts = 1;; ++attempts) {
        begin_try(*state);
        const int rv = run_call(*state, *worker, url, proxyhost, proxyport);
        const core::Outcome outcome = outcome_of(*state, rv);
        // With ProxyRemote several handlers may follow one selection: the permit spans them, the last one decides.
        if (proxyhost != nullptr && (rv == DECLINED || rv == HTTP_BAD_GATEWAY)) return rv;
        note_end_for_rules(*state, rv);
        finish_call(*state, outcome);
        const HeldAnswer answer = held_answer(state->call);
        const bool has_no_connection = may_go_on(*state, rv, outcome, attempts);
        if (has_no_connection) --state->failover.tries;  // its member has got nothing
        const bool is_withheld = has_no_connection || is_withheld_at_end(*state, outcome);
        if (!is_withheld || !go_elsewhere(*state, &worker, &url)) {
            show_environment(*state);
            return give(r, answer, rv);
        }
        proxy.initialize_worker(worker, r->server, conf->pool);
        if (state->call.breaker == nullptr) return run_unwatched(*state, *worker, url);
    }
}

extern "C" int on_request_status(int* status, request_rec* r) noexcept {
    RequestState* const state = request_state(r, false);
    if (state != nullptr && state->call.breaker != nullptr && !state->call.is_finished) {
        finish_call(*state, outcome_of(*state, *status));
    }
    if (state != nullptr) {
        unmark_header(*state);
        show_environment(*state);
    }
    return DECLINED;
}

}  // namespace

void finish_call(RequestState& state, core::Outcome outcome) noexcept {
    Call& call = state.call;
    if (call.breaker == nullptr) return;
    if (!call.is_finished) call.is_settled = has_settled(state);
    if (call.is_settled && outcome == core::Outcome::truncated && !call.is_break_counted) {
        call.is_break_counted = true;
        shm::count_broken_off(*call.slot);
    }
    if (call.is_finished) return;
    call.is_finished = true;
    if (call.is_settled) outcome = core::status_outcome(call.status);
    const core::Policy& policy = call.breaker->policy;
    shm::Ending ending;
    ending.outcome = outcome;
    const Judgement judgement = judge(state, outcome, true);
    ending.verdict = judgement.verdict;
    call.verdict = judgement.verdict;
    if (policy.open_time.retry_after && core::is_status(outcome)) {
        ending.least_open_time = call.has_headers ? call.retry_after : retry_after_of(state.r);
    }
    ending.is_kept = call.is_kept;
    ending.is_timed = is_timed(state, outcome);
    ending.slow = ending.is_timed && is_slow(state);
    ending.latency = latency_of(state, now());
    ending.method = static_cast<std::uint8_t>(state.r->method_number);
    if (policy.record_path) ending.path = recorded_path(state.r);
    tell_verdict(state, verdict_text(state.r->pool, judgement, outcome));
    shm::finish(*call.slot, policy, runtime.process, call.permit, ending, peers_of(state));
}

void begin_call(RequestState& state, Breaker& breaker, shm::Slot& slot, proxy_worker& worker,
                const shm::Permit& permit) noexcept {
    state.call = Call{};
    state.call.breaker = &breaker;
    state.call.slot = &slot;
    state.call.worker = &worker;
    state.call.error_time = worker.s->error_time;
    state.call.permit = permit;
    state.call.started = now();
}

void close_call(RequestState& state) noexcept {
    Call& call = state.call;
    if (call.breaker != nullptr && !call.is_finished) {
        call.is_finished = true;
        shm::cancel(*call.slot, call.breaker->policy, runtime.process, call.permit);
    }
    call.breaker = nullptr;
}

extern "C" apr_status_t abandon_call(void* state) noexcept {
    close_call(*static_cast<RequestState*>(state));
    return APR_SUCCESS;
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

void register_call_hooks() noexcept {
    // Around: first of all, and then mod_proxy's own through a nested run (DESIGN 4.1).
    proxy.hook_scheme_handler(on_scheme_handler, nullptr, nullptr, APR_HOOK_REALLY_FIRST);
    APR_OPTIONAL_HOOK(proxy, request_status, on_request_status, nullptr, nullptr, APR_HOOK_REALLY_FIRST);
}

}  // namespace cb::httpd
