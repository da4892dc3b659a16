// What the head of a response tells, as it comes: status line, interim responses, fields.
//
// Purpose: over HTTP it is read here, line by line, from the member's bytes. Over other protocols only what the handler
// has set in the request record can be seen.
#ifndef CIRCUITBREAKER_HTTPD_CALL_RESPONSE_HEAD_HPP
#define CIRCUITBREAKER_HTTPD_CALL_RESPONSE_HEAD_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// Notes one line of the head of an HTTP response. Returns the status if it is an expected status line (the first one,
/// or the one after an interim response), else 0. Interim responses don't count for the time of the first byte.
int note_bytes(Call& call, apr_bucket_brigade* bb, core::Millis now) noexcept;

/// Can a `101` begin a tunnel? Not if mod_proxy did not ask for one.
[[nodiscard]] bool may_tunnel(const Call& call, const request_rec* r) noexcept;

/// Number of header fields in the request record for the response.
[[nodiscard]] int count_fields(const request_rec* r) noexcept;
/// Has the handler set anything that comes from the head of a response?
[[nodiscard]] bool has_set_fields(const RequestState& state) noexcept;
/// Is this brigade the end of a FastCGI answer whose headers never ended? mod_proxy_fcgi passes what it has read of
/// them as the body, together with the end. With a complete answer the end never comes together with the beginning.
[[nodiscard]] bool is_without_head(const RequestState& state, const apr_bucket_brigade* bb) noexcept;

}  // namespace cb::httpd

#endif
