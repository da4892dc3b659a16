#include "call.hpp"

#include <algorithm>
#include <utility>

#include "judge.hpp"
#include "runtime.hpp"
#include "select.hpp"

namespace cb::httpd {
namespace {

ap_filter_rec_t* response_filter;
ap_filter_rec_t* backend_filter;
ap_filter_rec_t* tunnel_filter;
/// The call that this thread is making: new connections are made for it.
constinit thread_local Call* running_call = nullptr;

core::Millis now() noexcept {
    return runtime.process.clock.now();
}

const char* verdict_text(apr_pool_t* p, core::Verdict verdict, core::Outcome outcome) noexcept {
    if (verdict == core::Verdict::success) return "success";
    if (core::is_status(outcome)) {
        return apr_psprintf(p, "%s:%d", core::name(verdict).data(), static_cast<int>(outcome));
    }
    return outcome == core::Outcome::none
               ? core::name(verdict).data()
               : apr_pstrcat(p, core::name(verdict).data(), ":", core::class_name(outcome).data(), nullptr);
}

/// The members that mod_proxy could use, for CircuitBreakerMaxOpen.
shm::Peers peers_of(const RequestState& state) noexcept {
    if (state.balancer == nullptr || state.call.breaker->policy.max_open >= 100) return {};
    const int count = state.balancer->workers->nelts;
    auto** const slots =
        static_cast<shm::Slot**>(apr_palloc(state.r->pool, static_cast<apr_size_t>(count) * sizeof(void*)));
    std::uint32_t used = 0;
    for (int i = 0; i < count; ++i) {
        const proxy_worker* const worker = workers_of(*state.balancer)[i];
        constexpr unsigned kOut = PROXY_WORKER_DISABLED | PROXY_WORKER_STOPPED | PROXY_WORKER_DRAIN;
        if (worker == nullptr || (worker->s->status & kOut) != 0) continue;
        Breaker* const breaker = runtime.registry->find(*worker);
        slots[used++] = breaker != nullptr ? breaker->slot.load(std::memory_order_acquire) : nullptr;
    }
    return {slots, used};
}

/// Notes how far a probe has come. Not after its deadline, whose rule goes by what was known then (CASES 4).
void mark(Call& call, shm::Phase phase) noexcept {
    if (call.permit.kind != shm::PermitKind::probe || shm::Lease::of(call.permit.lease).is_past(now())) return;
    shm::mark(*call.slot, call.permit, phase);
}

void finish_call(RequestState& state, core::Outcome outcome) noexcept {
    Call& call = state.call;
    if (call.breaker == nullptr || call.is_finished) return;
    call.is_finished = true;
    const core::Policy& policy = call.breaker->policy;
    shm::Ending ending;
    ending.outcome = outcome;
    ending.verdict = core::builtin_verdict(outcome);
    ending.slow =
        policy.slow_call.threshold > 0 && is_timed(outcome) && latency_of(call, now()) > policy.slow_call.threshold;
    apr_table_setn(state.r->subprocess_env, "CIRCUIT_BREAKER_VERDICT",
                   verdict_text(state.r->pool, ending.verdict, outcome));
    shm::finish(*call.slot, policy, runtime.process, call.permit, ending, peers_of(state));
}

// --- what the backend sends ---

extern "C" apr_status_t on_backend_bytes(ap_filter_t* f, apr_bucket_brigade* bb, ap_input_mode_t mode,
                                         apr_read_type_e block, apr_off_t readbytes) noexcept {
    auto& state = *static_cast<RequestState*>(f->ctx);
    Call& call = state.call;
    ap_filter_t* const next = f->next;
    if (call.is_answering || call.is_finished) {
        ap_remove_input_filter(f);
        return ap_get_brigade(next, bb, mode, block, readbytes);
    }
    const apr_status_t rv = ap_get_brigade(next, bb, mode, block, readbytes);
    if (rv != APR_SUCCESS) {
        if (!APR_STATUS_IS_EAGAIN(rv)) call.read_status = rv;
        return rv;
    }
    apr_off_t length = 0;
    apr_brigade_length(bb, 0, &length);
    if (length == 0) {
        if (block == APR_BLOCK_READ) call.read_status = APR_EOF;
        return rv;
    }
    if (!call.has_bytes) {
        call.has_bytes = true;
        call.first_byte_at = now();
        call.line_status = status_in_line(bb);
        if (begins_tunnel(call, state.r) || (call.is_tunnel && call.line_status != 0)) {
            call.status = call.line_status;
            finish_call(state, core::status_outcome(call.status));
        }
    }
    return rv;
}

// --- what goes to the client ---

void note_headers(RequestState& state) noexcept {
    Call& call = state.call;
    const char* const from_backend = apr_table_get(state.r->notes, "proxy-status");
    if (call.is_http && from_backend == nullptr) return;  // no status line: garbage, or HTTP/0.9
    if (call.told == core::Outcome::protocol) return;     // FCGI passes a page of its own in place of a bad header
    call.has_headers = true;
    call.status = call.is_http ? atoi(from_backend) : state.r->status;
    call.headers_at = now();
    const char* const length = apr_table_get(state.r->headers_out, "Content-Length");
    if (!call.is_http && length != nullptr && !state.r->header_only && call.status != HTTP_NOT_MODIFIED) {
        call.announced = apr_atoi64(length);
    }
    const core::Verdict verdict = core::builtin_verdict(core::status_outcome(call.status));
    mark(call, shm::provisional(verdict));
}

extern "C" apr_status_t on_response(ap_filter_t* f, apr_bucket_brigade* bb) noexcept {
    auto& state = *static_cast<RequestState*>(f->ctx);
    Call& call = state.call;
    bool is_end = false;
    bool is_error_first = false;
    bool is_read_later = false;
    for (apr_bucket* b = APR_BRIGADE_FIRST(bb); b != APR_BRIGADE_SENTINEL(bb); b = APR_BUCKET_NEXT(b)) {
        if (AP_BUCKET_IS_ERROR(b)) {
            call.is_broken_off = true;
            is_error_first = !call.is_answering;
        }
        is_end = is_end || APR_BUCKET_IS_EOS(b);
        // SCGI's whole response is one bucket that reads from the socket while it is passed on.
        is_read_later = is_read_later || b->length == static_cast<apr_size_t>(-1);
        if (!is_read_later) call.passed += static_cast<apr_off_t>(b->length);
    }
    if (!call.is_answering && !APR_BRIGADE_EMPTY(bb)) {
        call.is_answering = true;
        // mod_proxy_http has all headers when it begins with the body, which may break off before its first byte.
        if (!is_error_first || (call.is_http && state.r->sent_bodyct != 0)) note_headers(state);
    }
    if (call.has_headers && !call.is_finished && !is_read_later && !state.r->connection->aborted) {
        // uwsgi takes the end of the connection for the end of the response, however much is missing; and a client that
        // knows the length may be back before mod_proxy has seen that end.
        call.is_broken_off = call.is_broken_off || (is_end && call.passed < call.announced);
        is_end = is_end || (call.announced >= 0 && call.passed >= call.announced);
        if (is_end) {
            finish_call(state, call.is_broken_off ? core::Outcome::truncated : core::status_outcome(call.status));
        } else if (now() - call.headers_at >= settle_time(state.r, *call.breaker)) {
            finish_call(state, core::status_outcome(call.status));
        }
    }
    return ap_pass_brigade(f->next, bb);
}

// --- around the scheme handler ---

int run_call(RequestState& state, proxy_worker& worker, char* url, const char* proxyhost,
             apr_port_t proxyport) noexcept {
    Call& call = state.call;
    // With ProxyRemote this may not be the first handler of the selection: what was seen of the last one is over.
    const shm::Permit permit = call.permit;
    const core::Millis started = call.started;
    begin_call(state, *call.breaker, *call.slot, *call.worker, permit);
    call.started = started;
    for (const char* scheme : {"http", "https", "ws", "wss"}) {
        call.is_http = call.is_http || strcmp(worker.s->scheme, scheme) == 0;
    }
    clear_notes(state.r);
    call.response_filter = ap_add_output_filter_handle(response_filter, &state, state.r, state.r->connection);
    state.is_nested = true;
    Call* const outer = std::exchange(running_call, &call);  // an ErrorDocument may be a call itself
    const int rv = proxy.run_scheme_handler(state.r, &worker, state.conf, url, proxyhost, proxyport);
    running_call = outer;
    state.is_nested = false;
    ap_remove_output_filter(call.response_filter);
    call.response_filter = nullptr;
    return rv;
}

/// A call that never reached its member may go to another one, as in stock httpd (proxy_handler, `maxattempts`).
bool may_go_on(const RequestState& state, int rv, core::Outcome outcome, int attempts) noexcept {
    if (state.balancer == nullptr || rv != HTTP_SERVICE_UNAVAILABLE || !state.call.breaker->is_enforcing())
        return false;
    if (outcome != core::Outcome::connect && outcome != core::Outcome::local) return false;
    return state.balancer->s->max_attempts_set != 0 && attempts <= state.balancer->s->max_attempts;
}

/// A call to a member without a breaker, to which a request has gone on: nothing is watched.
int run_unwatched(RequestState& state, proxy_worker& worker, char* url) noexcept {
    clear_notes(state.r);
    state.is_nested = true;
    const int rv = proxy.run_scheme_handler(state.r, &worker, state.conf, url, nullptr, 0);
    state.is_nested = false;
    return rv;
}

extern "C" int on_scheme_handler(request_rec* r, proxy_worker* worker, proxy_server_conf* conf, char* url,
                                 const char* proxyhost, apr_port_t proxyport) noexcept {
    RequestState* const state = request_state(r, false);
    if (state == nullptr || state->is_nested || state->call.breaker == nullptr) return DECLINED;
    state->conf = conf;
    for (int attempts = 1;; ++attempts) {
        const int rv = run_call(*state, *worker, url, proxyhost, proxyport);
        const core::Outcome outcome = outcome_of(state->call, r, rv);
        // With ProxyRemote several handlers may follow one selection: the permit spans them, the last one decides.
        if (proxyhost != nullptr && (rv == DECLINED || rv == HTTP_BAD_GATEWAY)) return rv;
        finish_call(*state, outcome);
        if (!may_go_on(*state, rv, outcome, attempts)) return rv;
        shm::Slot& failed = *state->call.slot;
        proxy_worker* next = nullptr;
        char* next_url = nullptr;
        if (choose_another(*state, *worker, &next, &next_url) != OK) return rv;
        failed.totals.failovers.fetch_add(1, std::memory_order_relaxed);
        worker = next;
        url = next_url;
        proxy.initialize_worker(worker, r->server, conf->pool);
        if (state->call.breaker == nullptr) return run_unwatched(*state, *worker, url);
    }
}

/// The request is sent: what comes back?
void begin_watch(RequestState& state, ap_filter_rec_t* filter, request_rec* response, conn_rec* backend) noexcept {
    state.call.is_sent = true;
    state.call.sent_at = now();
    mark(state.call, shm::Phase::sent);
    ap_add_input_filter_handle(filter, &state, response, backend);
}

/// mod_proxy_http builds the request: it has a connection of the pool, which it connects next, unless it is a kept one.
/// mod_proxy_wstunnel has connected before; it sends the request next, and then looks at no byte any more.
extern "C" int on_fixups(request_rec* r) noexcept {
    RequestState* const state = request_state(r, false);
    if (state == nullptr || !state->is_nested) return OK;
    Call& call = state->call;
    call.has_connection = true;
    if (call.breaker == nullptr || call.new_connection == nullptr || call.worker->s->scheme[0] != 'w') return OK;
    call.is_tunnel = true;
    begin_watch(*state, tunnel_filter, nullptr, call.new_connection);
    return OK;
}

extern "C" int on_create_req(request_rec* r, request_rec* pr) noexcept {
    RequestState* const state = request_state(r, false);
    if (state == nullptr || !state->is_nested || state->call.breaker == nullptr) return DECLINED;
    state->call.is_kept_alive = pr->connection->keepalives > 0;
    begin_watch(*state, backend_filter, pr, pr->connection);
    return OK;
}

extern "C" int on_request_status(int* status, request_rec* r) noexcept {
    RequestState* const state = request_state(r, false);
    if (state != nullptr && state->call.breaker != nullptr && !state->call.is_finished) {
        finish_call(*state, outcome_of(state->call, r, *status));
    }
    return DECLINED;
}

}  // namespace

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

extern "C" int cb_on_pre_connection(conn_rec* c, void*) noexcept {
    if (running_call != nullptr) running_call->new_connection = c;
    return OK;
}

extern "C" void cb_on_error_log(const ap_errorlog_info* said, const char*) noexcept {
    if (running_call != nullptr) hear(*running_call, *said);
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

void register_call_filters() noexcept {
    // Next to the handler: sees what the backend sent before any other filter has touched it.
    response_filter = ap_register_output_filter("CIRCUITBREAKER_RESPONSE", on_response, nullptr,
                                                static_cast<ap_filter_type>(AP_FTYPE_RESOURCE - 1));
    // A protocol filter: the response's lines are read past those for content (r->proto_input_filters). Just this type,
    // or mod_proxy's HTTP_IN, which comes after the headers, would not get its place behind it.
    backend_filter = ap_register_input_filter("CIRCUITBREAKER_BACKEND", on_backend_bytes, nullptr, AP_FTYPE_PROTOCOL);
    // The same where there is no request_rec of a response.
    tunnel_filter = ap_register_input_filter("CIRCUITBREAKER_TUNNEL", on_backend_bytes, nullptr, AP_FTYPE_CONNECTION);
}

void register_call_hooks() noexcept {
    // Around: first of all, and then mod_proxy's own through a nested run (DESIGN 4.1).
    proxy.hook_scheme_handler(on_scheme_handler, nullptr, nullptr, APR_HOOK_REALLY_FIRST);
    APR_OPTIONAL_HOOK(proxy, fixups, on_fixups, nullptr, nullptr, APR_HOOK_REALLY_FIRST);
    APR_OPTIONAL_HOOK(proxy, create_req, on_create_req, nullptr, nullptr, APR_HOOK_REALLY_FIRST);
    APR_OPTIONAL_HOOK(proxy, request_status, on_request_status, nullptr, nullptr, APR_HOOK_REALLY_FIRST);
}

}  // namespace cb::httpd
