// One call to one member: where it goes, what was seen of it, its answer, and how it ended.
//
// Purpose: the parts of a call. Each part has its writer: call/call writes `target` and `ended`, the files of call/
// that watch write `seen`, call/verdicts and failover/ write `answer`.
// Thread safety: belongs to the thread that handles the request.
#ifndef CIRCUITBREAKER_HTTPD_REQUEST_CALL_PARTS_HPP
#define CIRCUITBREAKER_HTTPD_REQUEST_CALL_PARTS_HPP

#include <optional>

#include "core/verdict.hpp"
#include "httpd/members/registry.hpp"
#include "shm/member.hpp"

namespace cb::httpd {

/// The member that the call goes to, and the permit for it.
struct Target {
    Breaker* breaker = nullptr;  // nullptr: nothing to watch
    shm::Slot* slot = nullptr;
    proxy_worker* worker = nullptr;
    shm::Permit permit;         // kind none: the call is made without one (Observe)
    apr_time_t error_time = 0;  // when mod_proxy had last marked the member as in error, as the call began
    core::Millis started = 0;
    apr_socket_t* timed_socket = nullptr;  // of a probe with a timeout of its own (CircuitBreakerProbeTimeout)
    apr_interval_time_t own_timeout = 0;   // what the socket had before
    bool has_run = false;                  // a scheme handler has been called for it
    bool is_http = false;  // http, https, ws, wss: mod_proxy_http's hooks and our backend filter see the call
};

/// Where reading is in an interim response. `fields`: its fields are being read, and ignored. `fields_of_continue`: the
/// same in a `100 Continue`. `continued`: a `100 Continue` was read to its end; mod_proxy now sends the body.
enum class Interim : std::uint8_t { none, fields, fields_of_continue, continued };

/// The TLS handshake of a connection that was made for a call. `broken`: it succeeded, but the member refused us
/// afterwards (in TLS 1.3 a server checks the client's certificate after the handshake).
enum class Handshake : std::uint8_t { none, done, failed, broken };

/// How far the call has come, in this order; a `100 Continue` sets it back to the beginning. Over HTTP and uwsgi all
/// steps are seen, over other protocols only the last.
enum class Reached : std::uint8_t {
    nothing,
    sent,   // the request, as far as it is sent before the member answers
    bytes,  // the response has begun
    headers,
};

/// How far the answer has come on its way to the client, also if it is held back. These are no further steps of
/// Reached: an error may pass before anything of an answer was read.
enum class Passing : std::uint8_t {
    nothing,
    begun,
    broken_off,  // an error bucket was passed, or the end came too early
};

/// The facts that are seen while the call runs. The outcome follows from them.
struct Seen {
    // The connection. Over HTTP:
    bool has_connection = false;     // mod_proxy has taken one from the pool, new or kept; it is connected next
    bool is_new_connection = false;  // it was made for this call, or the member has answered a part of it
    bool is_kept_alive = false;      // it has served a request before, and this response has not begun
    bool is_kept = false;            // it has served a request before
    bool is_race = false;            // the member had closed it while it was idle, so there was no response
    bool is_tunnel = false;          // mod_proxy_wstunnel's: it passes every byte on
    Handshake handshake = Handshake::none;
    conn_rec* new_connection = nullptr;  // made for this call; nullptr once it is gone
    // The request on its way.
    bool has_written = false;       // HTTP: part of it has been written
    bool is_write_failed = false;   // writing the rest of it failed
    bool waits_for_100 = false;     // the body is sent only after a `100 Continue`
    bool is_request_error = false;  // httpd has answered the request itself while reading it
    core::Millis written_at = 0;    // HTTP: when its first part had been written
    core::Millis sent_at = 0;
    // The response.
    Reached reached = Reached::nothing;
    Passing passing = Passing::nothing;
    Interim interim = Interim::none;
    bool has_interim = false;     // the client has been sent an interim response, or bytes of a tunnel
    bool is_pass_failed = false;  // passing it on failed (a filter, or the client) before it broke off
    int line_status = 0;          // in its first line, if that is a status line
    int status = 0;
    core::Millis first_byte_at = 0;
    core::Millis headers_at = 0;
    core::Millis retry_after = 0;            // its Retry-After
    apr_status_t read_status = APR_SUCCESS;  // how reading ended, if there was no answer before
    apr_off_t announced = -1;                // Content-Length, where mod_proxy doesn't check it
    apr_off_t passed_bytes = 0;              // of the body
    // A probe's verdict by its headers, if it is in time and if it is slow.
    core::Verdict by_headers[2] = {core::Verdict::ignore, core::Verdict::ignore};
    // The class that follows from the handler's messages in the error log (heard.hpp).
    core::Outcome told = core::Outcome::none;
    // Content-Type, status line and number of fields in the request record when the handler was called.
    const char* type_before = nullptr;
    const char* line_before = nullptr;
    int fields_before = 0;
    // The client.
    core::Millis caught_up_at = 0;  // when all that the member had sent by then had last been read
    core::Millis client_wait = 0;   // time since then that went by while it was passed to the client
    core::Millis passed_at = 0;     // when something was last passed on
    core::Millis passing_on = 0;    // time that went by while the answer was passed to the client
};

/// The beginning of a response's body, kept while a verdict rule looks at it.
struct Sample {
    char* bytes = nullptr;
    std::uint32_t size = 0;
    std::uint32_t capacity = 0;
    bool is_wanted = false;
    bool is_over = false;   // the body is longer than the limit
    bool is_whole = false;  // the response has ended, and all of its body is here
};

/// What becomes of an answer. `none`: it goes to the client. `undecided`: it is held back until it is judged.
/// `withheld`: the client doesn't see it, as another member is asked.
enum class Hold : std::uint8_t { none, undecided, withheld };

/// What is kept of the answer.
struct Answer {
    Sample sample;
    const bool* expressions = nullptr;   // for each rule: the value of its expr= when the headers came
    apr_bucket_brigade* held = nullptr;  // what is held back
    apr_off_t held_size = 0;
    Hold hold = Hold::none;
    bool is_cut = false;  // part of what was held back has been thrown away
};

/// How far the end of the call has come, in this order.
enum class Stage : std::uint8_t {
    running,
    finished,       // verdict given, permit back
    settled,        // the same, but judged by its headers while the response went on
    break_counted,  // and the response has broken off since
};

/// A probe that has ended and was not told of yet, as another member may still get the request (events/probe_event).
struct UntoldProbe {
    const shm::Slot* slot;
    const char* verdict;  // as in CIRCUIT_BREAKER_VERDICT; nullptr: the probe was not judged by that
    shm::ProbeEnd end;
};

struct Ended {
    Stage stage = Stage::running;
    core::Verdict failover_verdict = core::Verdict::ignore;  // once it is finished; see verdict_for_failover()
    bool was_probe = false;                                  // once it is finished
    std::optional<UntoldProbe> untold;
};

struct Call {
    Target target;
    Seen seen;
    Answer answer;
    Ended ended;

    /// False once its permit was given back.
    [[nodiscard]] bool is_probe() const noexcept { return target.permit.kind == shm::PermitKind::probe; }
    [[nodiscard]] bool is_finished() const noexcept { return ended.stage >= Stage::finished; }
    [[nodiscard]] bool is_settled() const noexcept { return ended.stage >= Stage::settled; }
    // Always false over FCGI, SCGI, AJP and HTTP/2, where no hook tells of it; then only the headers are seen.
    [[nodiscard]] bool is_sent() const noexcept { return seen.reached >= Reached::sent && seen.sent_at != 0; }
    [[nodiscard]] bool has_bytes() const noexcept { return seen.reached >= Reached::bytes && seen.first_byte_at != 0; }
    [[nodiscard]] bool has_headers() const noexcept { return seen.reached >= Reached::headers; }
    [[nodiscard]] bool is_answering() const noexcept { return seen.passing >= Passing::begun; }
    [[nodiscard]] bool is_broken_off() const noexcept { return seen.passing == Passing::broken_off; }
};

}  // namespace cb::httpd

#endif
