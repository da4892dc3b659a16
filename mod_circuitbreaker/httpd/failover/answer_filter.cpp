#include "answer_filter.hpp"

#include <algorithm>

#include "holding.hpp"
#include "httpd/call/backend_connection.hpp"
#include "httpd/call/call.hpp"
#include "httpd/call/outcome.hpp"
#include "httpd/call/response_head.hpp"
#include "httpd/call/timing.hpp"
#include "httpd/call/verdicts.hpp"
#include "httpd/call/watch.hpp"
#include "httpd/choose/ramp.hpp"
#include "httpd/request/environment.hpp"
#include "httpd/runtime.hpp"

namespace cb::httpd {
namespace {

ap_filter_rec_t* answer_filter;

/// An error that httpd has found in the request passes here on its way to the client, in place of an answer: HTTP_IN
/// sends it (bail_out_on_error in http_filters.c), or another filter that reads the request. What mod_proxy itself
/// sends, for a member that broke off, is a 502 (ap_proxy_backend_broke); mod_proxy_http2 says 400 once the answer has
/// begun.
bool is_error_of_request(const RequestState& state, const apr_bucket* b) noexcept {
    if (state.body != nullptr && state.body->is_reading) return true;
    const int status = static_cast<const ap_bucket_error*>(b->data)->status;
    return !state.call.has_headers() && status != HTTP_BAD_GATEWAY && status != HTTP_GATEWAY_TIME_OUT;
}

/// Such an error is neither withheld nor counted, and the connection stays as it is.
apr_status_t pass_error_of_request(RequestState& state, ap_filter_t* f, apr_bucket_brigade* bb) noexcept {
    state.call.seen.is_request_error = true;
    state.failover.before = nullptr;
    return let_go(state.call, f, bb);
}

/// What one brigade of the answer says.
struct Part {
    bool is_end = false;
    bool is_error = false;             // the answer breaks off, or there is an error in its place
    bool is_error_of_request = false;  // an error about the request; nothing else is looked at then
    bool is_read_later = false;        // SCGI's whole response: one bucket that is read while it is passed on
    apr_off_t bytes = 0;
};

Part look_at(const RequestState& state, apr_bucket_brigade* bb) noexcept {
    Part part;
    for (apr_bucket* b = APR_BRIGADE_FIRST(bb); b != APR_BRIGADE_SENTINEL(bb); b = APR_BUCKET_NEXT(b)) {
        if (AP_BUCKET_IS_ERROR(b)) {
            part.is_error = true;
            part.is_error_of_request = is_error_of_request(state, b);
            if (part.is_error_of_request) break;
        }
        part.is_end = part.is_end || APR_BUCKET_IS_EOS(b);
        part.is_read_later = part.is_read_later || b->length == static_cast<apr_size_t>(-1);
        if (!part.is_read_later) part.bytes += static_cast<apr_off_t>(b->length);
    }
    return part;
}

void begin_answer(RequestState& state, const apr_bucket_brigade* bb, bool is_error) noexcept {
    Call& call = state.call;
    call.seen.passing = is_error ? Passing::broken_off : Passing::begun;
    leave_connection(call);
    show_environment(state);
    if (is_without_head(state, bb)) call.seen.told = core::Outcome::protocol;
    // When mod_proxy_http begins with the body, it has all headers. The body may break off before its first byte.
    if (!is_error || (call.target.is_http && state.r->sent_bodyct != 0)) note_headers(state);
    if (call.has_headers()) note_new_session(state);
    begin_holding(state);
}

/// The body goes on. True if the answer is complete.
bool go_on(RequestState& state, apr_bucket_brigade* bb, bool is_end) noexcept {
    Call& call = state.call;
    // uwsgi takes the end of the connection for the end of the response, however much is missing. And a client that
    // knows the length may send its next request before mod_proxy has seen that end.
    if (is_end && call.seen.passed_bytes < call.seen.announced) call.seen.passing = Passing::broken_off;
    is_end = is_end || (call.seen.announced >= 0 && call.seen.passed_bytes >= call.seen.announced);
    note_body_for_rules(state, bb);
    if (is_end) {
        note_end_for_rules(state, OK);
        finish_call(state, call.is_broken_off() ? broken_off_outcome(state) : answer_outcome(state));
    } else if (has_settled(state)) {
        finish_call(state, answer_outcome(state));
    }
    return is_end;
}

/// Passes on what the client gets now, and notes how long that took. If the client reads slowly, mod_proxy reads slowly
/// too, and the member may break off because of that.
apr_status_t pass_timed(RequestState& state, ap_filter_t* f, apr_bucket_brigade* bb, bool is_end) noexcept {
    Call& call = state.call;
    if (call.is_finished()) return pass_or_hold(state, f, bb, is_end);
    const core::Millis before = now();
    if (is_end) {  // and not finished: SCGI's whole response, whose time is the member's and the client's
        const apr_status_t rv = pass_or_hold(state, f, bb, is_end);
        call.seen.passing_on += now() - before;
        return rv;
    }
    constexpr core::Millis kPause =
        20;  // a longer one since the last part was passed on: mod_proxy was waiting for the member
    if (call.seen.caught_up_at == 0 || before - call.seen.passed_at >= kPause) {
        call.seen.caught_up_at = before;
        call.seen.client_wait = 0;
    }
    // If the client does not read on, or the member is silent afterwards, this thread may be blocked at the deadline.
    const bool is_timed_to_end = call.target.breaker->policy.slow_call.until_end;
    if (is_timed_to_end) mark_answer(state, before);
    const apr_status_t rv = pass_or_hold(state, f, bb, is_end);
    call.seen.passed_at = now();
    call.seen.client_wait += call.seen.passed_at - before;
    const core::Millis until =
        call.has_headers() ? std::min(call.seen.passed_at, settles_at(state)) : call.seen.passed_at;
    if (until > before) call.seen.passing_on += until - before;
    if (is_timed_to_end) mark_answer(state, settles_at(state));
    return rv;
}

extern "C" apr_status_t on_answer_of_handler(ap_filter_t* f, apr_bucket_brigade* bb) noexcept {
    auto& state = *static_cast<RequestState*>(f->ctx);
    Call& call = state.call;
    if (call.seen.is_request_error) return ap_pass_brigade(f->next, bb);
    if (call.answer.is_cut) {  // how the handler ends what we stopped says nothing of the member
        apr_brigade_cleanup(bb);
        return APR_ECONNABORTED;
    }
    const Part part = look_at(state, bb);
    if (part.is_error_of_request) return pass_error_of_request(state, f, bb);
    call.seen.passed_bytes += part.bytes;
    if (call.is_answering()) {
        if (part.is_error) call.seen.passing = Passing::broken_off;
    } else if (!APR_BRIGADE_EMPTY(bb)) {
        begin_answer(state, bb, part.is_error);
    }
    bool is_end = part.is_end;
    if (call.has_headers() && !call.is_finished() && !part.is_read_later && !state.r->connection->aborted) {
        is_end = go_on(state, bb, is_end);
    }
    const apr_status_t rv = pass_timed(state, f, bb, is_end);
    // For SCGI the result is that of reading from the member, which happens while the bucket is passed on.
    if (rv != APR_SUCCESS && !part.is_read_later && !call.answer.is_cut && !call.is_broken_off()) {
        call.seen.is_pass_failed = true;
    }
    return rv;
}

}  // namespace

ap_filter_t* add_answer_filter(RequestState& state) noexcept {
    // The very first, whatever types the others have (ap_add_output_filter_handle orders by type): no part of a
    // withheld answer may reach another filter. INFLATE, for example, would remove itself from the chain.
    return add_first_filter(state.r, answer_filter, &state);
}

void register_answer_filter() noexcept {
    // Next to the handler: it sees what the member sent before any other filter has touched it. Of the least type, so
    // that filters which the handler adds come behind it.
    answer_filter = ap_register_output_filter("CIRCUITBREAKER_RESPONSE", on_answer_of_handler, nullptr,
                                              static_cast<ap_filter_type>(0));
}

}  // namespace cb::httpd
