#include "outcome.hpp"

#include <apr_reslist.h>

#include <cstring>

#include "client_doing.hpp"
#include "heard.hpp"
#include "httpd/runtime.hpp"
#include "response_head.hpp"
#include "timing.hpp"

namespace cb::httpd {
namespace {

using core::Outcome;

bool has_note(const request_rec* r, const char* name) noexcept {
    return apr_table_get(r->notes, name) != nullptr;
}

bool is_gateway_failure(int rv) noexcept {
    return rv == HTTP_INTERNAL_SERVER_ERROR || rv == HTTP_BAD_GATEWAY || rv == HTTP_SERVICE_UNAVAILABLE;
}

/// Is this status about the request? Reading it from the client failed (an input filter may have answered already), or
/// the protocol has no such method or transfer coding. (A 412 over SCGI comes from a script's Last-Modified.)
bool is_request_error(int rv) noexcept {
    return (rv >= 400 && rv < 500 && rv != HTTP_PRECONDITION_FAILED) || rv == HTTP_NOT_IMPLEMENTED ||
           rv == AP_FILTER_ERROR;
}

/// Do mod_proxy's own flags keep requests from the member? An error that was marked since the call began does not
/// count: that is how mod_proxy notes a failed connection in Observe.
bool is_kept_from_member(const Call& call) noexcept {
    const proxy_worker_shared& worker = *call.target.worker->s;
    if (is_barred(worker)) return true;
    return (worker.status & PROXY_WORKER_IN_ERROR) != 0 && worker.error_time == call.target.error_time;
}

/// Were all connections of the pool in use for the whole of `acquire=` (ap_proxy_acquire_connection)? Over HTTP the
/// fixups hook tells. Over other protocols this is a guess, because connections may have come back since.
bool is_pool_exhausted(const Call& call) noexcept {
    if (call.target.is_http) return !call.seen.has_connection;
    const proxy_worker_shared& worker = *call.target.worker->s;
    if (worker.hmax == 0 || worker.acquire_set == 0 || call.target.worker->cp == nullptr ||
        call.target.worker->cp->res == nullptr) {
        return false;
    }
    const auto waited = static_cast<apr_interval_time_t>(now() - call.target.started) * 1000 + 1000;
    return waited >= worker.acquire &&
           apr_reslist_acquired_count(call.target.worker->cp->res) >= static_cast<apr_uint32_t>(worker.hmax);
}

/// The call never left httpd.
bool is_local(const Call& call, int rv) noexcept {
    return rv == HTTP_SERVICE_UNAVAILABLE && (is_kept_from_member(call) || is_pool_exhausted(call));
}

bool is_timed_out(const Call& call, const request_rec* r, int rv) noexcept {
    return has_note(r, "proxy_timedout") || rv == HTTP_GATEWAY_TIME_OUT || APR_STATUS_IS_TIMEUP(call.seen.read_status);
}

Outcome handshake_outcome(const RequestState& state) noexcept {
    return is_tls_name_of_client(state) ? Outcome::client : Outcome::connect;
}

/// The same for a refusal after the handshake, when the request had been sent already.
bool is_name_refused(const RequestState& state) noexcept {
    return state.call.seen.handshake == Handshake::broken && is_tls_name_of_client(state);
}

Outcome after_headers(const RequestState& state) noexcept {
    if (state.call.is_broken_off()) return broken_off_outcome(state);
    if (state.r->connection->aborted) return Outcome::client;
    return answer_outcome(state);
}

Outcome http_not_sent(const RequestState& state, int rv) noexcept {
    const Call& call = state.call;
    const request_rec* const r = state.r;
    if (r->connection->aborted) return Outcome::client;
    if (call.seen.handshake == Handshake::failed) return handshake_outcome(state);
    if (is_request_error(rv)) return Outcome::client;
    const bool has_begun = call.seen.has_written || (call.seen.has_connection && rv == HTTP_BAD_GATEWAY);
    if (is_timed_out(call, r, rv)) return has_begun && state.body != nullptr ? Outcome::upload : Outcome::timeout;
    if (call.seen.told != Outcome::none) return call.seen.told;
    if (is_local(call, rv)) return Outcome::local;
    // It broke while the request was being written (ap_proxy_pass_brigade): some of it may have arrived. Without a
    // body, or with nothing of it written, what the client sends makes no difference.
    if (rv == HTTP_BAD_GATEWAY && call.seen.has_connection) {
        if (state.body != nullptr && call.seen.has_written) return Outcome::upload;
        constexpr std::size_t kTakenAtOnce = 16384;  // by a new connection's buffers; it broke before it had all
        if (length_of_head(r) > kTakenAtOnce) return Outcome::client;
        return call.seen.is_race ? Outcome::stale : Outcome::reset;
    }
    if (!is_gateway_failure(rv)) return Outcome::none;
    return rv == HTTP_SERVICE_UNAVAILABLE && call.seen.has_connection && !hears_errors(r) ? Outcome::connect
                                                                                          : Outcome::local;
}

Outcome http_outcome(const RequestState& state, int rv) noexcept {
    const Call& call = state.call;
    if (call.has_headers()) return after_headers(state);
    if (is_request_bad(state)) return Outcome::client;
    if (!call.is_sent()) return http_not_sent(state, rv);
    if (call.seen.handshake == Handshake::failed) return handshake_outcome(state);  // mod_proxy_wstunnel
    const bool is_late = is_timed_out(call, state.r, rv);
    if (!call.has_bytes()) {
        if (call.seen.is_tunnel && call.seen.read_status == APR_SUCCESS)
            return Outcome::client;  // the member had not left
        if (is_uploading(state)) return Outcome::upload;
        if (is_late) return Outcome::timeout;
        if (is_name_refused(state)) return Outcome::client;
        if (call.seen.is_race) return Outcome::stale;
        return was_kept_waiting(state) ? Outcome::upload : Outcome::reset;
    }
    // Bytes, but no answer: how did reading end?
    if (is_uploading(state)) return Outcome::upload;
    if (is_late) return Outcome::timeout;
    if (call.seen.read_status != APR_SUCCESS) return Outcome::reset;
    return Outcome::protocol;
}

/// The same over a protocol whose connection we don't see, when the member had at least part of the request.
bool is_upload_broken(const RequestState& state) noexcept {
    if (!is_uploading(state)) return false;
    return !state.call.seen.is_write_failed || state.body->size > 0;
}

/// nghttp2 sends no header block of more than 64 KB (NGHTTP2_MAX_HEADERSLEN), and mod_proxy_http2 then ends as if the
/// member had refused the request. mod_proxy sends the Host twice and writes a character of the path as up to three, so
/// at most three times what the client sent, and a few fields of its own.
bool is_too_long_for_http2(const RequestState& state) noexcept {
    constexpr std::size_t kMost = (65536 - 2048) / 3;
    return state.call.target.worker->s->scheme[0] == 'h' && length_of_head(state.r) > kMost;
}

/// Is the body shorter than announced? mod_proxy_http2 takes a stream that was reset without an error for one that has
/// ended. (The body of an SCGI answer can't be counted.)
bool is_stopped_early(const Call& call) noexcept {
    return call.target.worker->s->scheme[0] == 'h' && call.seen.passed_bytes < call.seen.announced;
}

/// mod_proxy_fcgi takes an END_REQUEST before the end of the headers for a whole answer: 200, and nothing in it. (The
/// error page that it sends itself with ProxyErrorOverride has its status.) Headers without a body look like that, too,
/// where no empty record ends them, as with PHP: nothing is passed on, but something is set.
bool has_said_nothing(const RequestState& state) noexcept {
    const Call& call = state.call;
    const char* const scheme = call.target.worker->s->scheme;
    if (scheme[0] == 'h') return call.is_answering();  // note_headers() found none
    if (std::strcmp(scheme, "fcgi") != 0) return false;
    return call.seen.told == Outcome::protocol || (!call.is_answering() && !has_set_fields(state));
}

Outcome other_outcome(const RequestState& state, int rv) noexcept {
    const Call& call = state.call;
    const request_rec* const r = state.r;
    if (call.has_headers()) {
        // FCGI and SCGI return AP_FILTER_ERROR, http2 a status, and no error bucket was passed.
        if (rv != OK && rv != DONE && !r->connection->aborted) return broken_off_outcome(state);
        if (is_stopped_early(call) && !r->connection->aborted) return broken_off_outcome(state);
        return after_headers(state);
    }
    if (r->connection->aborted || is_request_bad(state)) return Outcome::client;
    if (call.seen.handshake == Handshake::failed) return handshake_outcome(state);
    if (is_name_refused(state) || is_too_long_for_http2(state)) return Outcome::client;
    if ((rv >= 500 && rv != HTTP_NOT_IMPLEMENTED) || rv == AP_FILTER_ERROR) {
        if (is_local(call, rv)) return Outcome::local;
        if (call.seen.told == Outcome::connect || !core::concerns_member(call.seen.told)) {
            if (call.seen.told != Outcome::none) return call.seen.told;
        }
        if (is_upload_broken(state)) return Outcome::upload;
        if (call.seen.told == Outcome::reset && was_kept_waiting(state)) return Outcome::upload;
        if (call.seen.told != Outcome::none) return call.seen.told;
    }
    if (is_request_error(rv)) return Outcome::client;
    if (is_timed_out(call, r, rv)) return Outcome::timeout;
    if (is_gateway_failure(rv)) {
        // mod_proxy_http2 says nothing of what broke; the others do.
        if (call.target.worker->s->scheme[0] != 'h' && hears_errors(r)) return Outcome::local;
        if (now() - sent_at(state) >= member_timeout(r, *call.target.worker)) return Outcome::timeout;
        if (was_kept_waiting(state)) return Outcome::upload;
        return may_be_reset_by_http2(state) ? Outcome::client : Outcome::reset;  // it may have been sent
    }
    if (rv == DECLINED) return Outcome::none;
    if (rv != OK && rv != DONE) return core::status_outcome(rv);
    return has_said_nothing(state) ? Outcome::protocol : core::status_outcome(r->status);
}

}  // namespace

Outcome answer_outcome(const RequestState& state) noexcept {
    // A 408 to a request whose body was on its way: the member did not wait for the rest.
    if (state.call.seen.status == HTTP_REQUEST_TIME_OUT && is_uploading(state)) return Outcome::upload;
    return core::status_outcome(state.call.seen.status);
}

Outcome broken_off_outcome(const RequestState& state) noexcept {
    // mod_proxy_http2 stops the stream of an answer that is replaced by an error page.
    if (has_note(state.r, "proxy-error-override")) return answer_outcome(state);
    if (is_request_bad(state) || may_be_reset_by_http2(state)) return Outcome::client;
    // The member is not charged for what a filter of httpd's does with its answer.
    if (state.call.seen.is_pass_failed) return state.r->connection->aborted ? Outcome::client : answer_outcome(state);
    if (is_uploading(state)) return Outcome::upload;
    return is_client_too_slow(state.call) ? Outcome::client : Outcome::truncated;
}

Outcome outcome_of(const RequestState& state, int rv) noexcept {
    const Call& call = state.call;
    if (call.answer.is_cut && call.has_headers()) return core::status_outcome(call.seen.status);  // we stopped it
    // ProxyErrorOverride: the backend's own status comes back as the result, its body was thrown away.
    if (rv >= 100 && has_note(state.r, "proxy-error-override")) return core::status_outcome(rv);
    if (!call.target.is_http && !call.has_headers() && rv >= 100 && rv == call.seen.line_status)
        return core::status_outcome(rv);  // uwsgi's way
    return call.target.is_http || call.is_sent() ? http_outcome(state, rv) : other_outcome(state, rv);
}

void clear_notes(request_rec* r) noexcept {
    apr_table_unset(r->notes, "proxy-error-override");
    apr_table_unset(r->notes, "proxy_timedout");
    apr_table_unset(r->notes, "proxy-status");
}

}  // namespace cb::httpd
