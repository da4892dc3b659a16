// The request's body on its way from the client to the member.
//
// Purpose: an input filter between the handler and httpd's own filters. It sees how far the body has come and whether
// reading it failed, since what the client does must never count against a member. It can keep the body so that it can
// be sent again, and read it ahead, before a member is asked.
// Thread safety: one request's.
// Invariants: it changes no byte, and mod_proxy frames the request as it would without it. Filters that read the body
// change the request's fields (mod_deflate, MergeTrailers); mod_proxy sends those that were there before.
#ifndef CIRCUITBREAKER_HTTPD_REQUEST_REQUEST_BODY_HPP
#define CIRCUITBREAKER_HTTPD_REQUEST_REQUEST_BODY_HPP

#include "httpd/httpd_api.hpp"
#include "shm/member.hpp"

namespace cb::httpd {

struct RequestBody {
    ap_filter_t* filter = nullptr;
    apr_bucket_brigade* kept = nullptr;   // from the first byte on, while `keeps`
    apr_bucket_brigade* ahead = nullptr;  // what has been read and is still to be given to the handler
    apr_table_t* fields = nullptr;        // the request's, before any of the body was read
    apr_table_t* fields_after = nullptr;  // as they are to be when the handler has begun to read what is `ahead`
    apr_off_t size = 0;                   // bytes read from the client
    apr_off_t limit = 0;                  // of what is kept
    core::Millis ended_at = 0;            // when it had been read to its end
    core::Millis waits_since = 0;         // the handler waits for the client; 0: it doesn't
    core::Millis pause = 0;               // the longest that it has waited
    const shm::Permit* probe = nullptr;   // of the call that reads it, if that is a probe
    core::Millis due_at = 0;  // of a probe that began before it was here: reading fails then; 0: no such time
    apr_status_t failure = APR_SUCCESS;  // how reading from the client failed
    bool keeps = false;
    bool has_end = false;
    bool is_end_alone = false;  // it came after all data, in a brigade of its own, as that of a chunked body does
    bool is_end_ahead = false;  // it has been read, and is still to be given to the handler
    bool is_reading = false;    // the client's bytes are being read just now: errors that pass are about the request

    /// The client has sent all of it.
    [[nodiscard]] bool is_whole() const noexcept { return has_end && failure == APR_SUCCESS; }
};

void register_body_filter() noexcept;

/// Does the request have a body, as mod_proxy sees it? Not a subrequest's: mod_proxy sends none with it.
[[nodiscard]] bool has_body(const request_rec* r) noexcept;

/// Watches the body from now on. nullptr if the request says that it has none. To be called before any of it is read.
[[nodiscard]] RequestBody* watch_body(request_rec* r) noexcept;

/// Keeps the body, up to `limit` bytes, so that it can be sent again. False if that can't be: it says itself that it is
/// longer, or some of it has gone by already.
[[nodiscard]] bool keep_body(const request_rec* r, RequestBody& body, apr_off_t limit) noexcept;

/// Reads up to `bytes` of the body ahead, waiting for the client. The handler reads them as it would have. False if
/// reading fails; `body.failure` says how.
[[nodiscard]] bool fetch_body(request_rec* r, RequestBody& body, apr_off_t bytes) noexcept;

/// All of a kept body, from its first byte on, is read once more, by a call that finds the request's fields as the
/// first one did. `fields_after`: what reading has made of them.
void rewind_body(request_rec* r, RequestBody& body, apr_table_t* fields_after) noexcept;

/// Content-Length, -1 if the request doesn't tell.
[[nodiscard]] apr_off_t announced_length(const request_rec* r) noexcept;

}  // namespace cb::httpd

#endif
