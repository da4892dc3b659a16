#include "attempts.hpp"

#include <utility>

#include "httpd/call/backend_connection.hpp"
#include "httpd/call/call.hpp"
#include "httpd/call/outcome.hpp"
#include "httpd/call/probe_marks.hpp"
#include "httpd/call/verdicts.hpp"
#include "httpd/call/watch.hpp"
#include "httpd/choose/ramp.hpp"
#include "httpd/choose/select.hpp"
#include "httpd/events/probe_event.hpp"
#include "httpd/failover/answer_filter.hpp"
#include "httpd/failover/failover.hpp"
#include "httpd/failover/holding.hpp"
#include "httpd/request/environment.hpp"
#include "httpd/runtime.hpp"

namespace cb::httpd {
namespace {

/// Runs mod_proxy's own handler, through the same hook that has called us.
int run_handler(RequestState& state, proxy_worker& worker, char* url, const char* proxyhost,
                apr_port_t proxyport) noexcept {
    state.is_nested = true;
    const int rv = proxy.run_scheme_handler(state.r, &worker, state.conf, url, proxyhost, proxyport);
    state.is_nested = false;
    return rv;
}

int run_watched(RequestState& state, proxy_worker& worker, char* url, const char* proxyhost,
                apr_port_t proxyport) noexcept {
    Call& call = state.call;
    prepare_run(state, worker);
    ap_filter_t* const filter = add_answer_filter(state);
    int rv = OK;
    {
        const RunningCall running(call);
        rv = run_handler(state, worker, url, proxyhost, proxyport);
    }
    ap_remove_output_filter(filter);
    // mod_proxy_fcgi may have passed nothing to the filter if the answer has no body.
    if (rv == OK && !call.is_answering()) note_new_session(state);
    return rv;
}

/// A call to a member without a breaker, after a failover: it is not watched.
int run_unwatched(RequestState& state, proxy_worker& worker, char* url) noexcept {
    clear_notes(state.r);
    if (state.told.fallback != nullptr) show_environment_at_answer(state);
    return run_handler(state, worker, url, nullptr, 0);
}

/// After a failed call: puts the request back and takes another member. False if there is none; then the request is as
/// the call has left it.
bool go_elsewhere(RequestState& state, proxy_worker** worker, char** url) noexcept {
    Failover& failover = state.failover;
    shm::Slot& failed = *state.call.target.slot;
    std::optional<UntoldProbe> probe = std::exchange(state.call.ended.untold, std::nullopt);
    const Snapshot* const after = failover.before != nullptr ? take_snapshot(state.r) : nullptr;
    apr_table_t* const headers_in = state.r->headers_in;
    const Told told = state.told;
    hide_environment(state);
    remember_call(state);
    if (after != nullptr) put_back(state.r, *failover.before);
    if (is_body_kept(state)) {
        rewind_body(state.r, *state.body, headers_in);
    } else if (state.body != nullptr) {
        state.r->headers_in = headers_in;  // mod_proxy_fcgi has what it has read of the body, and noted its length here
    }
    proxy_worker* next = nullptr;
    char* next_url = nullptr;
    if (take_another(state, **worker, &next, &next_url) != OK) {
        hide_environment(state);  // a refusal may have set it
        if (after != nullptr) put_back(state.r, *after);
        state.told = told;
        tell_probe(probe, false);
        return false;
    }
    tell_probe(probe, true);
    failed.totals.failovers.fetch_add(1, std::memory_order_relaxed);
    *worker = next;
    *url = next_url;
    return true;
}

/// mod_proxy chooses a member.
extern "C" int on_pre_request(proxy_worker** worker, proxy_balancer** balancer, request_rec* r, proxy_server_conf* conf,
                              char** url) noexcept {
    if (runtime.registry == nullptr || r->proxyreq != PROXYREQ_REVERSE) return DECLINED;
    RequestState& state = *request_state(r, true);
    if (state.is_nested) return DECLINED;
    close_call(state);  // mod_proxy chooses again after a call of its own (Observe, or `maxattempts`)
    // Of that call; mod_proxy may also choose its member again.
    std::optional<UntoldProbe> probe = std::exchange(state.call.ended.untold, std::nullopt);
    const proxy_worker* const called = state.call.target.worker;
    state.conf = conf;
    const int rv = take_member(state, worker, balancer, url);
    tell_probe(probe, rv == OK && *worker != nullptr && *worker != called);
    return rv;
}

/// mod_proxy calls the member.
extern "C" int on_scheme_handler(request_rec* r, proxy_worker* worker, proxy_server_conf* conf, char* url,
                                 const char* proxyhost, apr_port_t proxyport) noexcept {
    RequestState* const state = request_state(r, false);
    if (state == nullptr || state->is_nested) return DECLINED;
    hide_environment(*state);  // of a call before this one
    if (state->call.target.breaker == nullptr) {
        if (state->told.fallback != nullptr) show_environment_at_answer(*state);
        return DECLINED;
    }
    state->conf = conf;
    for (int attempts = 1;; ++attempts) {
        begin_try(*state);
        const int rv = run_watched(*state, *worker, url, proxyhost, proxyport);
        const core::Outcome outcome = outcome_of(*state, rv);
        // With ProxyRemote several handlers may follow one selection: the permit spans them, the last one decides.
        if (proxyhost != nullptr && (rv == DECLINED || rv == HTTP_BAD_GATEWAY)) return rv;
        note_end_for_rules(*state, rv);
        finish_call(*state, outcome);
        const HeldAnswer answer = held_answer(state->call);
        const bool has_no_connection = may_go_on(*state, rv, outcome, attempts);
        if (has_no_connection) --state->failover.tries;  // nothing was sent to its member
        const bool is_withheld = has_no_connection || is_withheld_at_end(*state, outcome);
        if (!is_withheld || !go_elsewhere(*state, &worker, &url)) {
            show_environment(*state);
            return give(r, answer, rv);
        }
        proxy.initialize_worker(worker, r->server, conf->pool);
        if (state->call.target.breaker == nullptr) return run_unwatched(*state, *worker, url);
    }
}

/// mod_proxy is done with the request.
extern "C" int on_request_status(int* status, request_rec* r) noexcept {
    RequestState* const state = request_state(r, false);
    if (state != nullptr && state->call.target.breaker != nullptr && !state->call.is_finished()) {
        finish_call(*state, outcome_of(*state, *status));
    }
    if (state != nullptr) {
        tell_probe(state->call.ended.untold, false);
        unmark_header(*state);
        show_environment(*state);
    }
    return DECLINED;
}

}  // namespace

void register_attempt_hooks() noexcept {
    // Around: first of all, and then mod_proxy's own through a nested run.
    proxy.hook_pre_request(on_pre_request, nullptr, nullptr, APR_HOOK_REALLY_FIRST);
    proxy.hook_scheme_handler(on_scheme_handler, nullptr, nullptr, APR_HOOK_REALLY_FIRST);
    APR_OPTIONAL_HOOK(proxy, request_status, on_request_status, nullptr, nullptr, APR_HOOK_REALLY_FIRST);
}

}  // namespace cb::httpd
