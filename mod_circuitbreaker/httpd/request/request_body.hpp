// The request's body on its way from the client to the member.
//
// Purpose: an input filter between the handler and httpd's own filters. It sees how far the body has come and whether
// reading it failed, because what the client does must never count against a member. It can keep the body, so that the
// request can be sent again, and read it ahead, before a member is asked.
// Thread safety: belongs to the thread that handles the request.
// Invariants: it changes no byte, and mod_proxy frames the request as it would without it. Filters that read the body
// may change the request's fields (mod_deflate, MergeTrailers); mod_proxy sends the fields as they were before.
#ifndef CIRCUITBREAKER_HTTPD_REQUEST_REQUEST_BODY_HPP
#define CIRCUITBREAKER_HTTPD_REQUEST_REQUEST_BODY_HPP

#include "httpd/httpd_api.hpp"
#include "shm/member.hpp"

namespace cb::httpd {

struct RequestBody {
    ap_filter_t* filter = nullptr;
    apr_bucket_brigade* kept = nullptr;   // from the first byte on, while `keeps`
    apr_bucket_brigade* ahead = nullptr;  // read already, and not yet given to the handler
    apr_table_t* fields = nullptr;        // the request's fields before any of the body was read
    apr_table_t* fields_after = nullptr;  // its fields for the time after the handler has begun to read `ahead`
    apr_off_t size = 0;                   // bytes read from the client
    apr_off_t limit = 0;                  // of what is kept
    core::Millis ended_at = 0;            // when it had been read to its end
    core::Millis waits_since = 0;         // since when the handler has been waiting for the client; 0: it isn't
    core::Millis pause = 0;               // the longest such wait
    const shm::Permit* probe = nullptr;   // of the call that reads it, if that is a probe
    core::Millis due_at = 0;             // of a probe that began before the body was here: when reading fails; 0: never
    apr_status_t failure = APR_SUCCESS;  // how reading from the client failed
    bool keeps = false;
    bool has_end = false;
    bool is_end_alone = false;  // the end came after all data, in a brigade of its own, as with a chunked body
    bool is_end_ahead = false;  // the end was read, and not yet given to the handler
    bool is_reading = false;    // the client is being read: an error that passes now is about the request

    /// The client has sent all of it.
    [[nodiscard]] bool is_whole() const noexcept { return has_end && failure == APR_SUCCESS; }
};

void register_body_filter() noexcept;

/// Does the request have a body, as mod_proxy sees it? Not a subrequest's: mod_proxy sends none with it.
[[nodiscard]] bool has_body(const request_rec* r) noexcept;

/// Watches the body from now on. nullptr if the request has none. To be called before any of it is read.
[[nodiscard]] RequestBody* watch_body(request_rec* r) noexcept;

/// Keeps the body, up to `limit` bytes, so that it can be sent again. False if that is impossible: its Content-Length
/// is above the limit, or part of it has been read already.
[[nodiscard]] bool keep_body(const request_rec* r, RequestBody& body, apr_off_t limit) noexcept;

/// Reads up to `bytes` of the body ahead, waiting for the client. The handler notices no difference. False if reading
/// fails; `body.failure` says how.
[[nodiscard]] bool fetch_body(request_rec* r, RequestBody& body, apr_off_t bytes) noexcept;

/// The next call reads a kept body from its first byte on, and finds the request's fields as the first call did.
/// `fields_after`: the fields as reading the body has changed them.
void rewind_body(request_rec* r, RequestBody& body, apr_table_t* fields_after) noexcept;

/// The request's Content-Length, -1 if it has none.
[[nodiscard]] apr_off_t announced_length(const request_rec* r) noexcept;

}  // namespace cb::httpd

#endif
