#include "judge.hpp"

#include <apr_reslist.h>

#include <algorithm>

#include "runtime.hpp"

namespace cb::httpd {
namespace {

using core::Outcome;

/// FCGI, SCGI and AJP answer 503 or 500 to whatever happens, on sockets that no hook or filter sees: what it was they
/// say only in the error log, each in words and with a number of its own. (Below LogLevel error they say nothing; then
/// it is a guess.)
struct Saying {
    const char* begin;
    Outcome outcome;  // none: by the status that comes with it
};
constexpr Saying kSayings[] = {
    {"AH00940", Outcome::local},    // disabled connection for
    {"AH00941", Outcome::local},    // failed to acquire connection for
    {"AH00952", Outcome::local},    // error creating a socket
    {"AH01093", Outcome::client},   // http: that Transfer-Encoding is not supported
    {"AH10396", Outcome::client},   // ajp: the same
    {"AH00957", Outcome::connect},  // attempt to connect failed, to the last address (h2c says nothing else)
    {"AH02454", Outcome::connect},  // the same to a unix domain socket
    {"AH01079", Outcome::connect},  // fcgi: failed to make connection to backend
    {"AH00866", Outcome::connect},  // scgi: the same
    {"AH10101", Outcome::connect},  // uwsgi
    {"AH00896", Outcome::connect},  // ajp
    {"AH02452", Outcome::connect},  // wstunnel
    {"AH00897", Outcome::connect},  // ajp: cping/cpong failed
    {"AH00898", Outcome::connect},  // ap_proxyerror: name lookup
    {"AH00859", Outcome::client},   // scgi: receiving request body failed
    {"AH10099", Outcome::client},   // uwsgi
    {"AH10100", Outcome::client},   // uwsgi: unable to decode uri
    {"AH10259", Outcome::client},   // uwsgi: headers too large
    {"AH03382", Outcome::client},   // http2: check input
    {"AH02822", Outcome::client},   // ajp: dialog with client failed
    {"AH01073", Outcome::none},     // fcgi: failed writing request
    {"AH01074", Outcome::none},     // fcgi: failed writing environment
    {"AH01075", Outcome::none},     // fcgi: error dispatching request
    {"AH00858", Outcome::none},     // scgi: sending data failed
    {"AH10098", Outcome::none},     // uwsgi
    {"AH00868", Outcome::none},     // ajp: request failed
    {"AH00876", Outcome::none},     // ajp: send failed
    {"AH00878", Outcome::none},     // ajp: read response failed
    {"AH00893", Outcome::none},     // ajp: dialog failed
    {"%s: %s", Outcome::reset},     // scgi: end of script output before headers
    {"malformed header", Outcome::protocol},
};

Outcome broken_by(apr_status_t status) noexcept {
    constexpr apr_status_t kAjpOverflow = APR_OS_START_USERERR + 1;
    constexpr apr_status_t kAjpMethod = APR_OS_START_USERERR + 10;
    constexpr apr_status_t kAjpSignature = APR_OS_START_USERERR + 4;
    constexpr apr_status_t kAjpTooBig = APR_OS_START_USERERR + 5;
    constexpr apr_status_t kAjpHeader = APR_OS_START_USERERR + 7;
    if (APR_STATUS_IS_TIMEUP(status)) return Outcome::timeout;
    if (status == kAjpOverflow || status == kAjpMethod) return Outcome::client;  // such a request can't be put in AJP
    const bool is_nonsense =
        APR_STATUS_IS_EINVAL(status) || status == kAjpSignature || status == kAjpTooBig || status == kAjpHeader;
    return is_nonsense ? Outcome::protocol : Outcome::reset;
}

/// What httpd lacks itself: descriptors, ports, memory.
bool is_own_trouble(apr_status_t status) noexcept {
    return APR_STATUS_IS_EMFILE(status) || APR_STATUS_IS_ENFILE(status) || APR_STATUS_IS_ENOMEM(status) ||
           status == ENOBUFS || status == EADDRNOTAVAIL || status == EADDRINUSE;
}

bool has_note(const request_rec* r, const char* name) noexcept {
    return apr_table_get(r->notes, name) != nullptr;
}

bool is_gateway_failure(int rv) noexcept {
    return rv == HTTP_INTERNAL_SERVER_ERROR || rv == HTTP_BAD_GATEWAY || rv == HTTP_SERVICE_UNAVAILABLE;
}

/// Reading the request from the client failed; an input filter may have sent the answer to that already. (SCGI's 412 is
/// what httpd makes of a script's Last-Modified.)
bool is_request_error(int rv) noexcept {
    return (rv >= 400 && rv < 500 && rv != HTTP_PRECONDITION_FAILED) || rv == AP_FILTER_ERROR;
}

/// mod_proxy's own flags keep requests from the member. An error that it marked since the call began doesn't: that is
/// how it notes a failed connect (Observe leaves it its marks).
bool is_barred(const Call& call) noexcept {
    const proxy_worker_shared& worker = *call.worker->s;
    constexpr unsigned kOut = PROXY_WORKER_NOT_USABLE_BITMAP & ~static_cast<unsigned>(PROXY_WORKER_IN_ERROR);
    if ((worker.status & kOut) != 0) return true;
    return (worker.status & PROXY_WORKER_IN_ERROR) != 0 && worker.error_time == call.error_time;
}

/// All connections of the pool were out for the whole of `acquire=` (ap_proxy_acquire_connection). Over HTTP the fixups
/// hook tells; elsewhere it is a guess, as connections may have come back since.
bool is_pool_exhausted(const Call& call) noexcept {
    if (call.is_http) return !call.has_connection;
    const proxy_worker_shared& worker = *call.worker->s;
    if (worker.hmax == 0 || worker.acquire_set == 0 || call.worker->cp == nullptr || call.worker->cp->res == nullptr) {
        return false;
    }
    const auto waited = static_cast<apr_interval_time_t>(runtime.process.clock.now() - call.started) * 1000 + 1000;
    return waited >= worker.acquire &&
           apr_reslist_acquired_count(call.worker->cp->res) >= static_cast<apr_uint32_t>(worker.hmax);
}

/// The call never left httpd.
bool is_local(const Call& call, int rv) noexcept {
    return rv == HTTP_SERVICE_UNAVAILABLE && (is_barred(call) || is_pool_exhausted(call));
}

bool is_timed_out(const Call& call, const request_rec* r, int rv) noexcept {
    return has_note(r, "proxy_timedout") || rv == HTTP_GATEWAY_TIME_OUT || APR_STATUS_IS_TIMEUP(call.read_status);
}

/// httpd has found something wrong with the request, or the client has not sent all of it.
bool is_request_bad(const RequestState& state) noexcept {
    return state.call.is_request_error || (state.body != nullptr && state.body->failure != APR_SUCCESS);
}

/// The request's body is still on its way to the member, or the rest of it could not be sent.
bool is_uploading(const RequestState& state) noexcept {
    if (state.body == nullptr) return false;
    const Call& call = state.call;
    if (!call.is_http) return !state.body->has_end || call.is_write_failed;
    return !call.is_sent || call.waits_for_100 || call.is_write_failed;
}

/// ProxyPreserveHost: the name of the TLS handshake (SNI), and the one that the member's certificate must have, is the
/// client's Host (ap_proxy_determine_connection). A handshake under a name that the administrator has not written says
/// nothing of the member. (A wildcard of ServerAlias is no name.)
bool is_tls_name_of_client(const RequestState& state) noexcept {
    const request_rec* const r = state.r;
    const auto* const dir =
        static_cast<const proxy_dir_conf*>(ap_get_module_config(r->per_dir_config, proxy.proxy_module));
    if (dir->preserve_host == 0) return false;
    const char* const name = r->hostname;
    if (name == nullptr) return true;
    const server_rec& server = *r->server;
    if (ap_cstr_casecmp(name, state.call.worker->s->hostname_ex) == 0) return false;
    if (server.server_hostname != nullptr && ap_cstr_casecmp(name, server.server_hostname) == 0) return false;
    for (int i = 0; server.names != nullptr && i < server.names->nelts; ++i) {
        const char* const alias = APR_ARRAY_IDX(server.names, i, const char*);
        if (alias != nullptr && ap_cstr_casecmp(name, alias) == 0) return false;
    }
    return true;
}

Outcome handshake_outcome(const RequestState& state) noexcept {
    return is_tls_name_of_client(state) ? Outcome::client : Outcome::connect;
}

/// The member breaks off an answer that it can't write any more, since the client takes it too slowly: most of the time
/// since the member's last byte went by while we waited for the client.
bool is_client_too_slow(const Call& call) noexcept {
    constexpr core::Millis kShortest = 100;  // ordinary flow control is shorter
    const core::Millis now = runtime.process.clock.now();
    return call.client_wait >= kShortest && now > call.caught_up_at && call.client_wait * 2 > now - call.caught_up_at;
}

Outcome after_headers(const RequestState& state) noexcept {
    if (state.call.is_broken_off) return broken_off_outcome(state);
    if (state.r->connection->aborted) return Outcome::client;
    return answer_outcome(state);
}

/// Does httpd log at the level of errors? Then a connection that could not be made has been heard of.
bool is_heard(const request_rec* r) noexcept {
    return ap_get_server_module_loglevel(r->server, proxy.proxy_module->module_index) >= APLOG_ERR;
}

Outcome http_not_sent(const RequestState& state, int rv) noexcept {
    const Call& call = state.call;
    const request_rec* const r = state.r;
    if (r->connection->aborted) return Outcome::client;
    if (call.handshake == Handshake::failed) return handshake_outcome(state);
    if (is_request_error(rv)) return Outcome::client;
    const bool has_begun = call.has_written || (call.has_connection && rv == HTTP_BAD_GATEWAY);
    if (is_timed_out(call, r, rv)) return has_begun && state.body != nullptr ? Outcome::upload : Outcome::timeout;
    if (call.told != Outcome::none) return call.told;
    if (is_local(call, rv)) return Outcome::local;
    // It broke while the request was being written (ap_proxy_pass_brigade): some of it may have arrived. Without a
    // body, or with nothing of it written, it is all the same what the client sends.
    if (rv == HTTP_BAD_GATEWAY && call.has_connection) {
        if (state.body != nullptr && call.has_written) return Outcome::upload;
        return call.is_new_connection ? Outcome::reset : Outcome::stale;
    }
    if (!is_gateway_failure(rv)) return Outcome::none;
    return rv == HTTP_SERVICE_UNAVAILABLE && call.has_connection && !is_heard(r) ? Outcome::connect : Outcome::local;
}

Outcome http_outcome(const RequestState& state, int rv) noexcept {
    const Call& call = state.call;
    if (call.has_headers) return after_headers(state);
    if (is_request_bad(state)) return Outcome::client;
    if (!call.is_sent) return http_not_sent(state, rv);
    const bool is_late = is_timed_out(call, state.r, rv);
    if (!call.has_bytes) {
        if (call.is_tunnel && call.read_status == APR_SUCCESS)
            return Outcome::client;  // it was not the member that left
        if (is_uploading(state)) return Outcome::upload;
        if (is_late) return Outcome::timeout;
        return call.is_kept_alive ? Outcome::stale : Outcome::reset;
    }
    // Bytes, but no answer: how did reading end?
    if (is_uploading(state)) return Outcome::upload;
    if (is_late) return Outcome::timeout;
    if (call.read_status != APR_SUCCESS) return Outcome::reset;
    return Outcome::protocol;
}

Outcome other_outcome(const RequestState& state, int rv) noexcept {
    const Call& call = state.call;
    const request_rec* const r = state.r;
    if (call.has_headers) {
        // FCGI and SCGI return AP_FILTER_ERROR, http2 a status, and no error bucket was passed.
        if (rv != OK && rv != DONE && !r->connection->aborted) return broken_off_outcome(state);
        return after_headers(state);
    }
    if (r->connection->aborted || is_request_bad(state)) return Outcome::client;
    if (call.handshake == Handshake::failed) return handshake_outcome(state);
    const bool is_failure = rv >= 500 || rv == AP_FILTER_ERROR;
    if (is_failure && (call.told == Outcome::connect || !core::concerns_member(call.told)) &&
        call.told != Outcome::none) {
        return call.told;
    }
    if (is_failure && is_uploading(state) && !is_local(call, rv)) return Outcome::upload;
    if (is_failure && call.told != Outcome::none) return call.told;
    if (is_request_error(rv)) return Outcome::client;
    if (is_timed_out(call, r, rv)) return Outcome::timeout;
    if (is_local(call, rv)) return Outcome::local;
    if (is_gateway_failure(rv)) {
        if (runtime.process.clock.now() - sent_at(state) >= member_timeout(r, *call.worker)) return Outcome::timeout;
        return Outcome::reset;  // it may have been sent
    }
    if (rv == OK || rv == DONE) return core::status_outcome(r->status);
    return rv == DECLINED ? Outcome::none : core::status_outcome(rv);
}

/// 0 if these bytes begin no status line.
int status_in(const char* line, apr_size_t length) noexcept {
    constexpr apr_size_t kLength = sizeof "HTTP/1.1 200" - 1;
    if (length < kLength || memcmp(line, "HTTP/1.", 7) != 0 || apr_isdigit(line[7]) == 0 || line[8] != ' ') return 0;
    int status = 0;
    for (const char* digit = line + 9; digit < line + kLength; ++digit)
        status = apr_isdigit(*digit) != 0 ? status * 10 + (*digit - '0') : 0;
    return status;
}

}  // namespace

int note_bytes(Call& call, apr_bucket_brigade* bb, core::Millis now) noexcept {
    char line[12];
    apr_size_t length = sizeof line;
    if (apr_brigade_flatten(bb, line, &length) != APR_SUCCESS) length = 0;
    const int status = status_in(line, length);
    if (call.interim != Interim::none && status == 0) {
        const bool is_blank = length > 0 && (line[0] == '\n' || line[0] == '\r');
        if (is_blank && call.interim == Interim::fields_of_continue) call.interim = Interim::read;
        return 0;
    }
    call.has_bytes = true;
    call.first_byte_at = now;
    call.line_status = status;
    const bool is_interim = status >= 100 && status < 200 && status != HTTP_SWITCHING_PROTOCOLS;
    call.interim = is_interim ? Interim::fields : Interim::none;
    call.has_interim = call.has_interim || (is_interim && status != HTTP_CONTINUE);
    if (status == HTTP_CONTINUE) {
        // The head has arrived, and the body is sent from now on: as if nothing had been, but for the connection, which
        // has turned out to be alive.
        call.interim = Interim::fields_of_continue;
        call.has_bytes = false;
        call.is_sent = false;
        call.is_kept_alive = false;
        call.is_new_connection = true;
    }
    return status;
}

bool may_tunnel(const Call& call, const request_rec* r) noexcept {
    const proxy_worker_shared& worker = *call.worker->s;
    return (worker.scheme[0] == 'w' || *worker.upgrade != '\0') && apr_table_get(r->headers_in, "Upgrade") != nullptr;
}

Outcome answer_outcome(const RequestState& state) noexcept {
    // It did not wait for the rest of the request.
    if (state.call.status == HTTP_REQUEST_TIME_OUT && is_uploading(state)) return Outcome::upload;
    return core::status_outcome(state.call.status);
}

Outcome broken_off_outcome(const RequestState& state) noexcept {
    if (is_request_bad(state)) return Outcome::client;
    if (is_uploading(state)) return Outcome::upload;
    return is_client_too_slow(state.call) ? Outcome::client : Outcome::truncated;
}

Outcome outcome_of(const RequestState& state, int rv) noexcept {
    const Call& call = state.call;
    if (call.is_cut && call.has_headers) return core::status_outcome(call.status);  // we stopped it
    // ProxyErrorOverride: the backend's own status comes back as the result, its body was thrown away.
    if (rv >= 100 && has_note(state.r, "proxy-error-override")) return core::status_outcome(rv);
    if (!call.is_http && !call.has_headers && rv >= 100 && rv == call.line_status)
        return core::status_outcome(rv);  // uwsgi's way
    return call.is_http || call.is_sent ? http_outcome(state, rv) : other_outcome(state, rv);
}

void hear(Call& call, const ap_errorlog_info& said) noexcept {
    if (said.format == nullptr || call.is_sent) return;
    // What is said for debugging decides nothing: AH00957 of an address that has others after it.
    if ((said.level & APLOG_LEVELMASK) > APLOG_WARNING) return;
    for (const Saying& saying : kSayings) {
        if (strncmp(said.format, saying.begin, strlen(saying.begin)) != 0) continue;
        if (call.told == Outcome::local) return;  // what follows from that
        call.told = saying.outcome != Outcome::none ? saying.outcome : broken_by(said.status);
        if (call.told == Outcome::connect && is_own_trouble(said.status)) call.told = Outcome::local;
        return;
    }
}

core::Millis sent_at(const RequestState& state) noexcept {
    const Call& call = state.call;
    if (call.is_sent) return call.sent_at;
    return state.body != nullptr ? std::max(call.started, state.body->ended_at) : call.started;
}

core::Millis latency_of(const RequestState& state, core::Millis now) noexcept {
    const Call& call = state.call;
    const core::Millis from = sent_at(state);
    const bool has_begun = call.has_bytes && call.interim == Interim::none;  // interim responses are no first byte
    const core::Millis to = has_begun ? call.first_byte_at : call.has_headers ? call.headers_at : now;
    return to > from ? to - from : 0;
}

bool is_timed(Outcome outcome) noexcept {
    return core::is_status(outcome) || outcome == Outcome::timeout || outcome == Outcome::truncated ||
           outcome == Outcome::reset || outcome == Outcome::protocol;
}

void clear_notes(request_rec* r) noexcept {
    apr_table_unset(r->notes, "proxy-error-override");
    apr_table_unset(r->notes, "proxy_timedout");
    apr_table_unset(r->notes, "proxy-status");
}

}  // namespace cb::httpd
