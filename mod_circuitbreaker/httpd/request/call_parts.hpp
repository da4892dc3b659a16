// One call to one member: to whom, what was seen of it, its answer, and how it ended.
//
// Each part has its writer: `target` and `ended` call/call, `seen` the files of call/ that watch, `answer`
// call/verdicts and failover/. Thread safety: belongs to the thread that handles the request.
#ifndef CIRCUITBREAKER_HTTPD_REQUEST_CALL_PARTS_HPP
#define CIRCUITBREAKER_HTTPD_REQUEST_CALL_PARTS_HPP

#include "core/verdict.hpp"
#include "httpd/members/registry.hpp"
#include "shm/member.hpp"

namespace cb::httpd {

/// Whom the call goes to, and by what right.
struct Target {
    Breaker* breaker = nullptr;  // nullptr: nothing to watch
    shm::Slot* slot = nullptr;
    proxy_worker* worker = nullptr;
    shm::Permit permit;         // kind none: made without asking (Observe)
    apr_time_t error_time = 0;  // mod_proxy's last mark of an error when the call began
    core::Millis started = 0;
    apr_socket_t* timed_socket = nullptr;  // of a probe with a timeout of its own (CircuitBreakerProbeTimeout)
    apr_interval_time_t own_timeout = 0;   // what the socket had before
    bool has_run = false;                  // a handler has been called for it
    bool is_http = false;  // http, https, ws, wss: the hooks of mod_proxy_http and our backend filter see it
};

/// An interim response. `fields`: the rest of it is still to come, and tells nothing. `fields_of_continue`: the same of
/// a `100 Continue`. `continued`: that has been read to its end; mod_proxy sends the body before it reads on.
enum class Interim : std::uint8_t { none, fields, fields_of_continue, continued };

/// The TLS handshake of a connection that was made for a call. `broken`: it succeeded, but the member refuses us
/// afterwards (in TLS 1.3 it looks at our certificate later).
enum class Handshake : std::uint8_t { none, done, failed, broken };

/// How far the call has come, each step after the one before. Over HTTP and uwsgi each is seen; elsewhere only the
/// last.
enum class Reached : std::uint8_t {
    nothing,
    sent,   // all of the request that is sent before the member answers
    bytes,  // the response has begun
    headers,
};

/// What went to the client, or would have. (An error may break off a response of which nothing was read, so these are
/// not further steps of Reached.)
enum class Passing : std::uint8_t {
    nothing,
    begun,
    broken_off,  // an error bucket was passed, or the end came too early
};

/// The facts, as they are seen while the call runs. The outcome follows from them.
struct Seen {
    // The connection. Over HTTP:
    bool has_connection = false;     // one of the pool is ours, new or kept; it is connected next
    bool is_new_connection = false;  // it was made for this call
    bool is_kept_alive = false;      // it had served a request before, and may turn out to be dead
    bool is_kept = false;            // the same, whatever it turned out to be
    bool is_race = false;            // it ended without a word, and had been closed while it was idle
    bool is_tunnel = false;          // mod_proxy_wstunnel's own: it passes bytes, whatever they say
    Handshake handshake = Handshake::none;
    conn_rec* new_connection = nullptr;  // made for this call; nullptr once it is gone
    // The request on its way.
    bool has_written = false;       // HTTP: some of it has been written
    bool is_write_failed = false;   // the rest of it could not be
    bool waits_for_100 = false;     // the body is sent only after a `100 Continue`
    bool is_request_error = false;  // httpd has answered the request itself, while it was being read
    core::Millis written_at = 0;    // HTTP: when its first part had been written
    core::Millis sent_at = 0;
    // The response.
    Reached reached = Reached::nothing;
    Passing passing = Passing::nothing;
    Interim interim = Interim::none;
    bool has_interim = false;     // one that the client has seen, or bytes of a tunnel
    bool is_pass_failed = false;  // a filter or the client took no more of it, before it broke off
    int line_status = 0;          // in its first line, if that is HTTP's
    int status = 0;
    core::Millis first_byte_at = 0;
    core::Millis headers_at = 0;
    core::Millis retry_after = 0;            // what it asks for
    apr_status_t read_status = APR_SUCCESS;  // how reading ended, before there was an answer
    apr_off_t announced = -1;                // Content-Length, where mod_proxy doesn't see to it
    apr_off_t passed_bytes = 0;              // of the body
    // What the handler of another protocol said of the call in the error log.
    core::Outcome told = core::Outcome::none;
    // Content-Type, status line and number of fields of the response when the handler was called.
    const char* type_before = nullptr;
    const char* line_before = nullptr;
    int fields_before = 0;
    // The client.
    core::Millis caught_up_at = 0;  // when all that the member had sent until then had been read
    core::Millis client_wait = 0;   // time since then that was spent on passing it to the client
    core::Millis passed_at = 0;     // when something was last passed on
};

/// The beginning of a response's body, kept while a verdict rule looks at it.
struct Sample {
    char* bytes = nullptr;
    std::uint32_t size = 0;
    std::uint32_t capacity = 0;
    bool is_wanted = false;
    bool is_over = false;   // there was more than the limit
    bool is_whole = false;  // the response has ended, and all of it is here
};

/// What becomes of an answer: it goes to the client, is held back until it is judged, or another member gives it.
enum class Hold : std::uint8_t { none, undecided, withheld };

/// The answer, as far as it is kept.
struct Answer {
    Sample sample;
    const bool* expressions = nullptr;   // of each rule, as they were when the headers came
    apr_bucket_brigade* held = nullptr;  // what is held back
    apr_off_t held_size = 0;
    Hold hold = Hold::none;
    bool is_cut = false;  // some of what was held back is gone
};

/// How far the end of the call has come, each step after the one before.
enum class Stage : std::uint8_t {
    running,
    finished,       // verdict given, permit back
    settled,        // the same, by the headers, while the response went on
    break_counted,  // and then it broke off
};

struct Ended {
    Stage stage = Stage::running;
    core::Verdict verdict = core::Verdict::ignore;  // once it is finished
};

struct Call {
    Target target;
    Seen seen;
    Answer answer;
    Ended ended;

    /// While its permit is out.
    [[nodiscard]] bool is_probe() const noexcept { return target.permit.kind == shm::PermitKind::probe; }
    [[nodiscard]] bool is_finished() const noexcept { return ended.stage >= Stage::finished; }
    [[nodiscard]] bool is_settled() const noexcept { return ended.stage >= Stage::settled; }
    // Not where nothing has told of it, though headers have come (FCGI, SCGI, AJP, HTTP/2).
    [[nodiscard]] bool is_sent() const noexcept { return seen.reached >= Reached::sent && seen.sent_at != 0; }
    [[nodiscard]] bool has_bytes() const noexcept { return seen.reached >= Reached::bytes && seen.first_byte_at != 0; }
    [[nodiscard]] bool has_headers() const noexcept { return seen.reached >= Reached::headers; }
    [[nodiscard]] bool is_answering() const noexcept { return seen.passing >= Passing::begun; }
    [[nodiscard]] bool is_broken_off() const noexcept { return seen.passing == Passing::broken_off; }
};

}  // namespace cb::httpd

#endif
