// What the head of a response tells, as it comes: status line, interim responses, fields.
//
// Purpose: over HTTP the bytes from the member are read here, a line at a time; elsewhere what the handler has set in
// the request.
// Thread safety: one request's state.
#ifndef CIRCUITBREAKER_HTTPD_CALL_RESPONSE_HEAD_HPP
#define CIRCUITBREAKER_HTTPD_CALL_RESPONSE_HEAD_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// Bytes of an HTTP response before its body: one line of its head. Returns the status if it is the status line that is
/// waited for (the first one, or the one after an interim response), else 0. The time of the first byte is that of the
/// first response that is no interim one.
int note_bytes(Call& call, apr_bucket_brigade* bb, core::Millis now) noexcept;

/// A `101` that mod_proxy did not ask for begins no tunnel.
[[nodiscard]] bool may_tunnel(const Call& call, const request_rec* r) noexcept;

/// Of the response, so far.
[[nodiscard]] int count_fields(const request_rec* r) noexcept;
/// Has the handler set anything that comes from the head of a response?
[[nodiscard]] bool has_set_fields(const RequestState& state) noexcept;
/// mod_proxy_fcgi passes the end of an answer whose headers have not ended, and what it has read of them as the body.
/// Of a whole answer the end never comes together with the beginning.
[[nodiscard]] bool is_without_head(const RequestState& state, const apr_bucket_brigade* bb) noexcept;

}  // namespace cb::httpd

#endif
