#include "watch.hpp"

#include "backend_connection.hpp"
#include "call.hpp"
#include "httpd/events/probe_event.hpp"
#include "httpd/runtime.hpp"
#include "outcome.hpp"
#include "probe_marks.hpp"
#include "response_head.hpp"
#include "retry_after.hpp"
#include "timing.hpp"
#include "verdicts.hpp"

namespace cb::httpd {
namespace {

ap_filter_rec_t* backend_filter;
ap_filter_rec_t* tunnel_filter;

/// Notes how far a probe has come. Not after its deadline: its verdict is by what was known then.
void mark(Call& call, shm::Phase phase, core::Millis due = 0) noexcept {
    if (!call.is_probe() || shm::Lease::of(call.target.permit.lease).is_past(now())) return;
    shm::mark(*call.target.slot, call.target.permit, phase, due);
}

// --- what the backend sends ---

void note_sent(Call& call, conn_rec* backend, bool waits_for_100) noexcept {
    call.seen.interim = Interim::none;
    call.seen.reached = Reached::sent;
    call.seen.waits_for_100 = waits_for_100;
    call.seen.sent_at = now();
    if (!waits_for_100) mark(call, shm::Phase::sent);
    set_probe_timeout(call, backend);
}

bool has_data(const apr_bucket_brigade* bb) noexcept {
    for (const apr_bucket* b = APR_BRIGADE_FIRST(bb); b != APR_BRIGADE_SENTINEL(bb); b = APR_BUCKET_NEXT(b)) {
        if (b->length != 0) return true;
    }
    return false;
}

/// Reads on, and notes how reading ended.
apr_status_t read_on(Call& call, const ap_filter_t* f, apr_bucket_brigade* bb, ap_input_mode_t mode,
                     apr_read_type_e block, apr_off_t readbytes) noexcept {
    const apr_status_t rv = ap_get_brigade(f->next, bb, mode, block, readbytes);
    const bool is_first = call.seen.read_status == APR_SUCCESS;
    if (rv == APR_SUCCESS) {
        if (block == APR_BLOCK_READ && !has_data(bb)) call.seen.read_status = APR_EOF;
    } else if (!APR_STATUS_IS_EAGAIN(rv)) {
        call.seen.read_status = rv;
    }
    if (is_first && call.seen.read_status != APR_SUCCESS && call.seen.is_kept_alive && !call.has_bytes()) {
        note_end_of_kept(call, *f->c, call.seen.sent_at);
    }
    return rv;
}

/// A function of its own, so that the one for all other lines stays small.
[[gnu::noinline]] apr_status_t read_first_line(RequestState& state, const ap_filter_t* f, apr_bucket_brigade* bb,
                                               ap_input_mode_t mode, apr_read_type_e block,
                                               apr_off_t readbytes) noexcept {
    Call& call = state.call;
    // After a `100 Continue` the body was sent.
    if (call.seen.interim == Interim::continued) note_sent(call, f->c, false);
    const apr_status_t rv = read_on(call, f, bb, mode, block, readbytes);
    if (rv != APR_SUCCESS || !has_data(bb)) return rv;
    leave_connection(call);
    restore_timeout(call);
    call.seen.has_interim =
        call.seen.has_interim || call.seen.is_tunnel;  // a tunnel's bytes pass no filter of the request
    const int status = note_bytes(call, bb, now());
    if (status == HTTP_CONTINUE) mark(call, shm::Phase::not_sent);
    // The verdict on a tunnel is due at once: it may last for hours.
    const bool is_upgraded = status == HTTP_SWITCHING_PROTOCOLS && may_tunnel(call, state.r);
    if (is_upgraded || (call.seen.is_tunnel && status != 0)) {
        call.seen.status = status;
        finish_call(state, core::status_outcome(status));
        tell_probe(call.ended.untold, false);
    }
    return rv;
}

/// Called for each line of the head.
extern "C" apr_status_t on_backend_bytes(ap_filter_t* f, apr_bucket_brigade* bb, ap_input_mode_t mode,
                                         apr_read_type_e block, apr_off_t readbytes) noexcept {
    auto& state = *static_cast<RequestState*>(f->ctx);
    Call& call = state.call;
    if (call.is_answering() || call.is_finished()) {
        ap_filter_t* const next = f->next;
        ap_remove_input_filter(f);
        return ap_get_brigade(next, bb, mode, block, readbytes);
    }
    if (!call.has_bytes() || call.seen.interim != Interim::none) {
        return read_first_line(state, f, bb, mode, block, readbytes);
    }
    return read_on(call, f, bb, mode, block, readbytes);
}

/// When the request has been sent: watches what comes back.
void begin_watch(RequestState& state, ap_filter_rec_t* filter, request_rec* response, conn_rec* backend,
                 bool waits_for_100) noexcept {
    note_sent(state.call, backend, waits_for_100);
    ap_add_input_filter_handle(filter, &state, response, backend);
}

/// When mod_proxy_http builds the request: it has taken a connection from the pool, and connects it next unless it is a
/// kept one. mod_proxy_wstunnel has connected already. It sends the request next, and then passes bytes unseen.
extern "C" int on_fixups(request_rec* r) noexcept {
    RequestState* const state = request_state(r, false);
    if (state == nullptr || !state->is_nested) return OK;
    Call& call = state->call;
    call.seen.has_connection = true;
    if (call.target.breaker == nullptr || call.seen.new_connection == nullptr ||
        call.target.worker->s->scheme[0] != 'w')
        return OK;
    call.seen.is_tunnel = true;
    begin_watch(*state, tunnel_filter, nullptr, call.seen.new_connection, false);
    return OK;
}

extern "C" int on_create_req(request_rec* r, request_rec* pr) noexcept {
    RequestState* const state = request_state(r, false);
    if (state == nullptr || !state->is_nested || state->call.target.breaker == nullptr) return DECLINED;
    state->call.seen.is_kept_alive = pr->connection->keepalives > 0;
    state->call.seen.is_kept = state->call.seen.is_kept_alive;
    note_use(*pr);
    // Only the head is sent, with an Expect of the client's or of `ping=`; the body follows a `100 Continue`.
    const bool waits_for_100 = state->body != nullptr && apr_table_get(r->notes, "proxy-100-continue") != nullptr;
    begin_watch(*state, backend_filter, pr, pr->connection, waits_for_100);
    // Under TLS the member may still refuse the name, until it begins to answer.
    if (state->call.seen.handshake == Handshake::none) leave_connection(state->call);
    return OK;
}

}  // namespace

void note_headers(RequestState& state) noexcept {
    Call& call = state.call;
    int status = call.target.is_http ? call.seen.line_status : state.r->status;
    if (call.target.is_http && status == 0) {  // not written as is usual; or no status line: garbage, or HTTP/0.9
        const char* const from_backend = apr_table_get(state.r->notes, "proxy-status");
        if (from_backend == nullptr) return;
        status = atoi(from_backend);
    }
    // FCGI passes a page of its own in place of a bad header, and what is no header as a body.
    if (call.seen.told == core::Outcome::protocol) return;
    // A stream that was reset, without an error, before its headers came looks like an empty answer.
    const bool is_http2 = !call.target.is_http && call.target.worker->s->scheme[0] == 'h';
    if (is_http2 && apr_table_get(state.r->notes, "proxy-status") == nullptr) return;
    call.seen.reached = Reached::headers;
    call.seen.status = status;
    call.seen.headers_at = now();
    if (!call.target.is_http && !state.r->header_only && call.seen.status != HTTP_NOT_MODIFIED) {
        const char* const length = apr_table_get(state.r->headers_out, "Content-Length");
        if (length != nullptr) call.seen.announced = apr_atoi64(length);
    }
    if (call.target.breaker->policy.open_time.retry_after) call.seen.retry_after = retry_after_of(state.r);
    note_headers_for_rules(state);
    if (!call.is_probe()) return;
    const core::Outcome answer = answer_outcome(state);
    call.seen.by_headers[0] = judge(state, answer, false, false).verdict;
    const Judgement slow = judge(state, answer, false, true);
    const bool is_failed = !slow.is_by_slowness() && slow.verdict != core::Verdict::fatal;
    call.seen.by_headers[1] = is_failed ? core::Verdict::failure : slow.verdict;
    mark_answer(state, call.seen.headers_at);
}

void mark_answer(RequestState& state, core::Millis at) noexcept {
    Call& call = state.call;
    if (!call.is_probe() || !call.has_headers() || call.is_finished()) return;
    mark(call, shm::provisional(call.seen.by_headers[is_slow(state, at)]), settles_at(state));
}

void prepare_run(RequestState& state, const proxy_worker& worker) noexcept {
    Call& call = state.call;
    if (call.target.has_run) {
        // With ProxyRemote this is not the first handler of the selection: what was seen of the last one is over.
        const shm::Permit permit = call.target.permit;
        const core::Millis started = call.target.started;
        begin_call(state, *call.target.breaker, *call.target.slot, *call.target.worker, permit);
        call.target.started = started;
    }
    call.target.has_run = true;
    const char* const scheme = worker.s->scheme;
    call.target.is_http = strncmp(scheme, "http", 4) == 0 || strncmp(scheme, "ws", 2) == 0;
    if (state.failover.calls > 1) clear_notes(state.r);  // of the call before
    call.seen.type_before = state.r->content_type;
    call.seen.line_before = state.r->status_line;
    call.seen.fields_before = count_fields(state.r);
    const bool is_here = state.body == nullptr || state.body->is_whole();
    if (call.is_probe() && !call.target.is_http && is_here) mark(call, shm::Phase::sent);
}

void register_watch_filters() noexcept {
    register_body_filter();
    register_backend_filter();
    // A protocol filter: the response's lines are read past those for content (r->proto_input_filters). Just this type,
    // or mod_proxy's HTTP_IN, which comes after the headers, would not get its place behind it.
    backend_filter = ap_register_input_filter("CIRCUITBREAKER_BACKEND", on_backend_bytes, nullptr, AP_FTYPE_PROTOCOL);
    // The same where there is no request_rec of a response.
    tunnel_filter = ap_register_input_filter("CIRCUITBREAKER_TUNNEL", on_backend_bytes, nullptr, AP_FTYPE_CONNECTION);
}

void register_watch_hooks() noexcept {
    APR_OPTIONAL_HOOK(proxy, fixups, on_fixups, nullptr, nullptr, APR_HOOK_REALLY_FIRST);
    APR_OPTIONAL_HOOK(proxy, create_req, on_create_req, nullptr, nullptr, APR_HOOK_REALLY_FIRST);
}

}  // namespace cb::httpd
