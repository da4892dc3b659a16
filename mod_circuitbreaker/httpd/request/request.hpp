// What we keep of one request: the choice of a member and the call that is being made.
//
// Purpose: shared by select, call, judge and refuse; lives in the request's pool.
// Thread safety: belongs to the thread that handles the request.
// Invariants: at most one permit at a time; a cleanup on the request's pool gives it back if nothing else did.
#ifndef CIRCUITBREAKER_HTTPD_REQUEST_REQUEST_HPP
#define CIRCUITBREAKER_HTTPD_REQUEST_REQUEST_HPP

#include "httpd/members/registry.hpp"
#include "request_body.hpp"
#include "shm/member.hpp"
#include "snapshot.hpp"

namespace cb::httpd {

/// The beginning of a response's body, kept while a verdict rule looks at it.
struct Sample {
    char* bytes = nullptr;
    std::uint32_t size = 0;
    std::uint32_t capacity = 0;
    bool is_wanted = false;
    bool is_over = false;   // there was more than the limit
    bool is_whole = false;  // the response has ended, and all of it is here
};

/// An interim response: `fields` are still to come of one that tells nothing, or of a `100 Continue`, after which the
/// body is sent (`read`: once more is read, it was).
enum class Interim : std::uint8_t { none, fields, fields_of_continue, read };

/// The TLS handshake of a connection that was made for a call. `broken`: it was done, but the other end refuses us all
/// the same (TLS 1.3: it looks at our certificate later).
enum class Handshake : std::uint8_t { none, done, failed, broken };

/// What becomes of an answer: it goes to the client, is held back until it is judged, or another member gives it.
enum class Hold : std::uint8_t { none, undecided, withheld };

/// One call to one member, as far as it has been seen (DESIGN 4.5 to 4.8).
struct Call {
    Breaker* breaker = nullptr;  // nullptr: nothing to watch
    shm::Slot* slot = nullptr;
    proxy_worker* worker = nullptr;
    shm::Permit permit;  // kind none: made without asking (Observe)
    ap_filter_t* response_filter = nullptr;
    apr_time_t error_time = 0;  // mod_proxy's last mark of an error when the call began
    core::Millis started = 0;
    core::Millis sent_at = 0;
    core::Millis first_byte_at = 0;
    core::Millis headers_at = 0;
    Sample sample;
    // Content-Type, status line and number of fields of the response when the handler was called.
    const char* type_before = nullptr;
    const char* line_before = nullptr;
    int fields_before = 0;
    apr_bucket_brigade* held = nullptr;      // of an answer that is held back
    apr_off_t held_size = 0;                 // bytes of it so far
    apr_socket_t* timed_socket = nullptr;    // of a probe with a timeout of its own
    apr_interval_time_t own_timeout = 0;     // what the socket had before
    core::Millis retry_after = 0;            // what the response asks for
    const bool* expressions = nullptr;       // of each rule, as they were when the headers came
    apr_status_t read_status = APR_SUCCESS;  // how reading from the backend ended, before there was an answer
    int status = 0;
    int line_status = 0;                       // in the backend's first line, if that is HTTP's
    core::Outcome told = core::Outcome::none;  // what the handler of another protocol said of it in the error log
    apr_off_t announced = -1;                  // Content-Length, where mod_proxy doesn't see to it
    apr_off_t passed = 0;                      // bytes of the body
    conn_rec* new_connection = nullptr;        // to the backend, made for this call; nullptr once it is gone
    core::Millis caught_up_at = 0;             // when all that the member had sent until then had been read
    core::Millis client_wait = 0;              // time since then that was spent on passing it to the client
    core::Millis passed_at = 0;                // when something was last passed on
    core::Millis written_at = 0;               // HTTP: when the first part of the request had been written
    bool has_run = false;                      // a handler has been called for it
    bool is_http = false;                      // create_req tells "sent", the backend filter "bytes came"
    bool has_connection = false;               // HTTP: one of the pool is ours, new or kept; it is connected next
    bool is_new_connection = false;
    bool is_tunnel = false;  // mod_proxy_wstunnel's own: passes bytes, whatever they say
    Handshake handshake = Handshake::none;
    bool has_written = false;       // HTTP: some of the request has been written
    bool is_write_failed = false;   // HTTP: the rest of it could not be
    bool is_sent = false;           // all of it that is sent before the member answers
    bool waits_for_100 = false;     // the body is sent only after a `100 Continue`
    bool is_request_error = false;  // httpd has answered the request itself, while it was being read
    bool is_kept_alive = false;     // the connection had served a request before, and may turn out to be dead
    bool is_kept = false;           // the same, whatever it turned out to be
    bool is_race = false;           // it ended without a word, and had been closed while it was idle
    bool has_bytes = false;
    Interim interim = Interim::none;
    bool has_interim = false;   // an interim response that the client has seen, or bytes of a tunnel
    bool is_answering = false;  // something was passed towards the client
    bool has_headers = false;
    bool is_broken_off = false;   // an error bucket was passed
    bool is_pass_failed = false;  // before that a filter or the client took no more of it
    bool is_finished = false;     // verdict given, permit back
    bool is_settled = false;      // it was given by the headers, while the response went on
    bool is_break_counted = false;
    bool is_cut = false;  // some of what was held back is gone
    Hold hold = Hold::none;
    core::Verdict verdict = core::Verdict::ignore;  // once it is finished

    /// While its permit is out.
    [[nodiscard]] bool is_probe() const noexcept { return permit.kind == shm::PermitKind::probe; }
};

/// The calls of one request, as CircuitBreakerFailover sees them.
struct Failover {
    const Snapshot* before = nullptr;     // nullptr: the present call's answer goes to the client, whatever it is
    bool keeps_body = false;              // so that the request may be sent again
    const proxy_worker* first = nullptr;  // member of the first call
    core::Millis began_at = 0;
    int calls = 0;
    int tries = 0;  // of these, the ones with a connection to their member
};
struct Ramp;  // ramp.cpp

/// What CIRCUIT_BREAKER_* say of the last call, or of the refusal; nullptr: nothing. See `environment`.
struct Told {
    const char* member = nullptr;  // of a call
    const char* state = nullptr;
    const char* verdict = nullptr;
    const char* rejected = nullptr;
    const char* fallback = nullptr;
    bool is_probe = false;
    bool is_observed = false;  // the call, by a breaker that changes nothing
    bool is_shown = false;     // the environment has it
};

/// The refusal that ends first of those that a request has met.
struct Refused {
    shm::Refusal why = shm::Refusal::none;  // none: it has met none
    core::Millis wait = 0;
    bool with_retry_after = false;
};

struct RequestState {
    request_rec* r = nullptr;
    proxy_server_conf* conf = nullptr;
    proxy_balancer* balancer = nullptr;  // the real one; nullptr for a worker without
    const char* balancer_url = nullptr;  // *url before a member was chosen
    proxy_worker** tried = nullptr;      // members that have had this request, or refused it when asked
    int tried_count = 0;
    proxy_worker** failed = nullptr;            // its members without a breaker that have failed the request
    const proxy_balancer* failed_of = nullptr;  // that balancer
    int failed_count = 0;
    RequestBody* body = nullptr;         // nullptr: the request has none
    Ramp* ramps = nullptr;               // of the members that were recovering when they were asked
    const char* probe_header = nullptr;  // set in headers_in for this attempt
    bool is_marked = false;              // as a probe
    bool is_fallback = false;            // the balancer is another one's fallback
    bool is_nested = false;              // we are running mod_proxy's own hook
    Refused refused;
    Told told;
    apr_table_t* inherited = nullptr;   // of CIRCUIT_BREAKER_*, from the request that this one was made of
    const char* retry_after = nullptr;  // what a refusal has put into err_headers_out
    Call call;
    Failover failover;
};

/// The state of this request; made when asked for first. nullptr if `is_wanted` is false and there is none.
[[nodiscard]] RequestState* request_state(request_rec* r, bool is_wanted) noexcept;

/// What holds of that directive for this request: a <Location>'s word or the like, or else the member's policy.
[[nodiscard]] inline const core::Policy& policy_for(const request_rec* r, const Breaker& breaker,
                                                    Directive directive) noexcept {
    const Settings* const said = said_for_request(r, directive);
    return said != nullptr ? said->policy : breaker.policy;
}

/// Next to the handler, before the filters of others on the way to the client.
ap_filter_t* add_first_filter(request_rec* r, ap_filter_rec_t* filter, void* context) noexcept;

/// The policy's value unless a <Location>, <Directory>, <Files> or <If> of this request says otherwise.
[[nodiscard]] core::Millis settle_time(const request_rec* r, const Breaker& breaker) noexcept;
/// Time that mod_proxy gives a silent member before it gives up (`timeout=`, ProxyTimeout, Timeout), ms.
[[nodiscard]] core::Millis member_timeout(const request_rec* r, const proxy_worker& worker) noexcept;
/// CircuitBreakerBodyLimit, likewise.
[[nodiscard]] std::uint32_t body_limit(const RequestState& state) noexcept;
/// A field of the member's answer. (ap_scan_script_header_err: FastCGI's and SCGI's are in err_headers_out.)
[[nodiscard]] inline const char* answer_field(const request_rec* r, const char* name) noexcept {
    const char* const value = apr_table_get(r->headers_out, name);
    return value != nullptr ? value : apr_table_get(r->err_headers_out, name);
}
[[nodiscard]] bool wants_retry_after(const request_rec* r, const Breaker& breaker) noexcept;

}  // namespace cb::httpd

#endif
