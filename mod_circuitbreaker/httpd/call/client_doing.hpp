// Which endings of a call may be its client's doing.
//
// Purpose: outcome.cpp counts an ending against the member only if none of these applies (DESIGN.md, Evidence).
#ifndef CIRCUITBREAKER_HTTPD_CALL_CLIENT_DOING_HPP
#define CIRCUITBREAKER_HTTPD_CALL_CLIENT_DOING_HPP

#include <cstddef>

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// httpd has found something wrong with the request, or the client has not sent all of it.
[[nodiscard]] bool is_request_bad(const RequestState& state) noexcept;

/// The request's body is still on its way to the member, or the rest of it could not be sent.
[[nodiscard]] bool is_uploading(const RequestState& state) noexcept;

/// The client kept the member waiting for the rest of the body, for longer than the member stayed afterwards. So it may
/// have left before the rest came. (What is written to a connection that the other end has closed is lost without an
/// error.)
[[nodiscard]] bool was_kept_waiting(const RequestState& state) noexcept;

/// Length of the request line and the header fields, roughly.
[[nodiscard]] std::size_t length_of_head(const request_rec* r) noexcept;

/// The TLS handshake uses a name that the client chose. With ProxyPreserveHost the client's Host is the name in the
/// handshake (SNI) and the one that the member's certificate must have (ap_proxy_determine_connection). If the
/// administrator has not written that name, the handshake says nothing of the member. (A wildcard of ServerAlias is no
/// name.)
[[nodiscard]] bool is_tls_name_of_client(const RequestState& state) noexcept;

/// The client has sent what a healthy HTTP/2 member may answer with a reset. One such thing are trailers:
/// mod_proxy_http2 passes them on, and mod_http2 resets a stream whose trailers come after its answer. Another is an
/// empty Host: an HTTP/1.0 client may send it, ProxyPreserveHost passes it on, and no HTTP/2 server accepts it.
[[nodiscard]] bool may_be_reset_by_http2(const RequestState& state) noexcept;

/// The member broke off an answer because the client read it too slowly: most of the time since the member's last byte
/// went by while we waited for the client.
[[nodiscard]] bool is_client_too_slow(const Call& call) noexcept;

}  // namespace cb::httpd

#endif
