#include "watch.hpp"

#include "backend_connection.hpp"
#include "call.hpp"
#include "httpd/choose/ramp.hpp"
#include "httpd/failover/holding.hpp"
#include "httpd/request/environment.hpp"
#include "httpd/runtime.hpp"
#include "outcome.hpp"
#include "probe_marks.hpp"
#include "retry_after.hpp"
#include "verdicts.hpp"

namespace cb::httpd {
namespace {

ap_filter_rec_t* response_filter;
ap_filter_rec_t* backend_filter;
ap_filter_rec_t* tunnel_filter;

core::Millis now() noexcept {
    return runtime.process.clock.now();
}

/// Notes how far a probe has come. Not after its deadline, whose rule goes by what was known then (CASES 4).
void mark(Call& call, shm::Phase phase, core::Millis due = 0) noexcept {
    if (!call.is_probe() || shm::Lease::of(call.permit.lease).is_past(now())) return;
    shm::mark(*call.slot, call.permit, phase, due);
}

// --- what the backend sends ---

void note_sent(Call& call, conn_rec* backend, bool waits_for_100) noexcept {
    call.interim = Interim::none;
    call.is_sent = true;
    call.waits_for_100 = waits_for_100;
    call.sent_at = now();
    if (!waits_for_100) mark(call, shm::Phase::sent);
    set_probe_timeout(call, backend);
}

bool has_data(const apr_bucket_brigade* bb) noexcept {
    for (const apr_bucket* b = APR_BRIGADE_FIRST(bb); b != APR_BRIGADE_SENTINEL(bb); b = APR_BUCKET_NEXT(b)) {
        if (b->length != 0) return true;
    }
    return false;
}

/// Remembers how it ended.
apr_status_t read_on(Call& call, const ap_filter_t* f, apr_bucket_brigade* bb, ap_input_mode_t mode,
                     apr_read_type_e block, apr_off_t readbytes) noexcept {
    const apr_status_t rv = ap_get_brigade(f->next, bb, mode, block, readbytes);
    const bool is_first = call.read_status == APR_SUCCESS;
    if (rv == APR_SUCCESS) {
        if (block == APR_BLOCK_READ && !has_data(bb)) call.read_status = APR_EOF;
    } else if (!APR_STATUS_IS_EAGAIN(rv)) {
        call.read_status = rv;
    }
    if (is_first && call.read_status != APR_SUCCESS && call.is_kept_alive && !call.has_bytes) {
        note_end_of_kept(call, *f->c, call.sent_at);
    }
    return rv;
}

/// Out of the way of the lines that follow.
[[gnu::noinline]] apr_status_t read_first_line(RequestState& state, const ap_filter_t* f, apr_bucket_brigade* bb,
                                               ap_input_mode_t mode, apr_read_type_e block,
                                               apr_off_t readbytes) noexcept {
    Call& call = state.call;
    // After a `100 Continue` the body was sent.
    if (call.interim == Interim::read) note_sent(call, f->c, false);
    const apr_status_t rv = read_on(call, f, bb, mode, block, readbytes);
    if (rv != APR_SUCCESS || !has_data(bb)) return rv;
    leave_connection(call);
    restore_timeout(call);
    call.has_interim = call.has_interim || call.is_tunnel;  // they go to the client past every filter of the request
    const int status = note_bytes(call, bb, now());
    if (status == HTTP_CONTINUE) mark(call, shm::Phase::not_sent);
    // The verdict on a tunnel is due at once: it may last for hours (DESIGN 4.8).
    const bool is_upgraded = status == HTTP_SWITCHING_PROTOCOLS && may_tunnel(call, state.r);
    if (is_upgraded || (call.is_tunnel && status != 0)) {
        call.status = status;
        finish_call(state, core::status_outcome(status));
    }
    return rv;
}

/// Called for each line of the head.
extern "C" apr_status_t on_backend_bytes(ap_filter_t* f, apr_bucket_brigade* bb, ap_input_mode_t mode,
                                         apr_read_type_e block, apr_off_t readbytes) noexcept {
    auto& state = *static_cast<RequestState*>(f->ctx);
    Call& call = state.call;
    if (call.is_answering || call.is_finished) {
        ap_filter_t* const next = f->next;
        ap_remove_input_filter(f);
        return ap_get_brigade(next, bb, mode, block, readbytes);
    }
    if (!call.has_bytes || call.interim != Interim::none) {
        return read_first_line(state, f, bb, mode, block, readbytes);
    }
    return read_on(call, f, bb, mode, block, readbytes);
}

// --- what goes to the client ---

void note_headers(RequestState& state) noexcept {
    Call& call = state.call;
    int status = call.is_http ? call.line_status : state.r->status;
    if (call.is_http && status == 0) {  // not written as is usual; or no status line: garbage, or HTTP/0.9
        const char* const from_backend = apr_table_get(state.r->notes, "proxy-status");
        if (from_backend == nullptr) return;
        status = atoi(from_backend);
    }
    // FCGI passes a page of its own in place of a bad header, and what is no header as a body.
    if (call.told == core::Outcome::protocol) return;
    // A stream that was reset, without an error, before its headers came looks like an empty answer.
    const bool is_http2 = !call.is_http && call.worker->s->scheme[0] == 'h';
    if (is_http2 && apr_table_get(state.r->notes, "proxy-status") == nullptr) return;
    call.has_headers = true;
    call.status = status;
    call.headers_at = now();
    if (!call.is_http && !state.r->header_only && call.status != HTTP_NOT_MODIFIED) {
        const char* const length = apr_table_get(state.r->headers_out, "Content-Length");
        if (length != nullptr) call.announced = apr_atoi64(length);
    }
    if (call.breaker->policy.open_time.retry_after) call.retry_after = retry_after_of(state.r);
    note_new_session(state);
    note_headers_for_rules(state);
    if (!call.is_probe()) return;
    core::Verdict verdict = judge(state, answer_outcome(state), false).verdict;
    if (is_slow(state) && verdict != core::Verdict::fatal) verdict = core::Verdict::failure;
    // A thread that is blocked in a silent stream runs no code of ours: whoever asks for the slot then settles it.
    mark(call, shm::provisional(verdict), call.headers_at + settle_time(state.r, *call.breaker));
}

/// An error that httpd has found in the request passes here on its way to the client, in place of an answer: HTTP_IN
/// sends it (bail_out_on_error in http_filters.c), or another filter that reads the request. What mod_proxy itself
/// sends, for a member that broke off, is a 502 (ap_proxy_backend_broke); mod_proxy_http2 says 400 once the answer has
/// begun.
bool is_error_of_request(const RequestState& state, const apr_bucket* b) noexcept {
    if (state.body != nullptr && state.body->is_reading) return true;
    const int status = static_cast<const ap_bucket_error*>(b->data)->status;
    return !state.call.has_headers && status != HTTP_BAD_GATEWAY && status != HTTP_GATEWAY_TIME_OUT;
}

/// Nothing of it is ours: neither withheld nor counted, and the connection stays as it was left.
apr_status_t pass_error_of_request(RequestState& state, ap_filter_t* f, apr_bucket_brigade* bb) noexcept {
    state.call.is_request_error = true;
    state.failover.before = nullptr;
    return let_go(state.call, f, bb);
}

/// Passes on what the client gets now, and notes how long that took. A client that takes it slowly makes mod_proxy read
/// slowly, and a member that waits for that may break off.
apr_status_t pass_timed(RequestState& state, ap_filter_t* f, apr_bucket_brigade* bb, bool is_end) noexcept {
    Call& call = state.call;
    if (is_end || call.is_finished) return pass_or_hold(state, f, bb, is_end);
    constexpr core::Millis kPause = 20;  // since all else was passed on: then mod_proxy has waited for the member
    const core::Millis before = now();
    if (call.caught_up_at == 0 || before - call.passed_at >= kPause) {
        call.caught_up_at = before;
        call.client_wait = 0;
    }
    const apr_status_t rv = pass_or_hold(state, f, bb, is_end);
    call.passed_at = now();
    call.client_wait += call.passed_at - before;
    return rv;
}

extern "C" apr_status_t on_response(ap_filter_t* f, apr_bucket_brigade* bb) noexcept {
    auto& state = *static_cast<RequestState*>(f->ctx);
    Call& call = state.call;
    if (call.is_request_error) return ap_pass_brigade(f->next, bb);
    if (call.is_cut) {  // how the handler ends what we stopped says nothing of the member
        apr_brigade_cleanup(bb);
        return APR_ECONNABORTED;
    }
    bool is_end = false;
    bool is_error_first = false;
    bool is_read_later = false;
    for (apr_bucket* b = APR_BRIGADE_FIRST(bb); b != APR_BRIGADE_SENTINEL(bb); b = APR_BUCKET_NEXT(b)) {
        if (AP_BUCKET_IS_ERROR(b)) {
            if (is_error_of_request(state, b)) return pass_error_of_request(state, f, bb);
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
        leave_connection(call);
        show_environment(state);
        if (is_without_head(state, bb)) call.told = core::Outcome::protocol;
        // mod_proxy_http has all headers when it begins with the body, which may break off before its first byte.
        if (!is_error_first || (call.is_http && state.r->sent_bodyct != 0)) note_headers(state);
        begin_holding(state);
    }
    if (call.has_headers && !call.is_finished && !is_read_later && !state.r->connection->aborted) {
        // uwsgi takes the end of the connection for the end of the response, however much is missing; and a client that
        // knows the length may be back before mod_proxy has seen that end.
        call.is_broken_off = call.is_broken_off || (is_end && call.passed < call.announced);
        is_end = is_end || (call.announced >= 0 && call.passed >= call.announced);
        note_body_for_rules(state, bb);
        if (is_end) {
            note_end_for_rules(state, OK);
            finish_call(state, call.is_broken_off ? broken_off_outcome(state) : answer_outcome(state));
        } else if (has_settled(state)) {
            finish_call(state, answer_outcome(state));
        }
    }
    const apr_status_t rv = pass_timed(state, f, bb, is_end);
    // (What reads SCGI's socket returns how that ended.)
    if (rv != APR_SUCCESS && !is_read_later && !call.is_cut && !call.is_broken_off) call.is_pass_failed = true;
    return rv;
}

/// The request is sent: what comes back?
void begin_watch(RequestState& state, ap_filter_rec_t* filter, request_rec* response, conn_rec* backend,
                 bool waits_for_100) noexcept {
    note_sent(state.call, backend, waits_for_100);
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
    begin_watch(*state, tunnel_filter, nullptr, call.new_connection, false);
    return OK;
}

extern "C" int on_create_req(request_rec* r, request_rec* pr) noexcept {
    RequestState* const state = request_state(r, false);
    if (state == nullptr || !state->is_nested || state->call.breaker == nullptr) return DECLINED;
    state->call.is_kept_alive = pr->connection->keepalives > 0;
    state->call.is_kept = state->call.is_kept_alive;
    note_use(*pr);
    // Only the head is sent, with an Expect of the client's or of `ping=`; the body follows a `100 Continue`.
    const bool waits_for_100 = state->body != nullptr && apr_table_get(r->notes, "proxy-100-continue") != nullptr;
    begin_watch(*state, backend_filter, pr, pr->connection, waits_for_100);
    // Under TLS the member may still refuse the name, until it begins to answer.
    if (state->call.handshake == Handshake::none) leave_connection(state->call);
    return OK;
}

}  // namespace

ap_filter_t* add_response_filter(RequestState& state) noexcept {
    // The very first, whatever types the others have (ap_add_output_filter_handle goes by them): nothing of an answer
    // that is withheld may pass a filter of others. INFLATE, for one, takes itself out of the chain.
    return add_first_filter(state.r, response_filter, &state);
}

void note_begin(RequestState& state) noexcept {
    state.call.type_before = state.r->content_type;
    state.call.line_before = state.r->status_line;
    state.call.fields_before = count_fields(state.r);
    const bool is_here = state.body == nullptr || state.body->is_whole();
    if (state.call.is_probe() && !state.call.is_http && is_here) mark(state.call, shm::Phase::sent);
}

bool is_slow(const RequestState& state) noexcept {
    const core::Millis threshold = state.call.breaker->policy.slow_call.threshold;
    return threshold > 0 && has_all(state) && latency_of(state, now()) > threshold;
}

bool has_settled(const RequestState& state) noexcept {
    const Call& call = state.call;
    return call.has_headers && now() - call.headers_at >= settle_time(state.r, *call.breaker);
}

void register_watch_filters() noexcept {
    register_body_filter();
    register_backend_filter();
    // Next to the handler: sees what the backend sent before any other filter has touched it. Of the least type, so
    // that filters which the handler adds come behind it.
    response_filter =
        ap_register_output_filter("CIRCUITBREAKER_RESPONSE", on_response, nullptr, static_cast<ap_filter_type>(0));
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
