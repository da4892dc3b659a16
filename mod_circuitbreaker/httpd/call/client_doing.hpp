// What of the end of a call may be its client's doing.
//
// Purpose: outcome.cpp counts against a member only what is not (DESIGN.md, Evidence).
// Thread safety: pure functions of one request's state.
#ifndef CIRCUITBREAKER_HTTPD_CALL_CLIENT_DOING_HPP
#define CIRCUITBREAKER_HTTPD_CALL_CLIENT_DOING_HPP

#include <cstddef>

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// httpd has found something wrong with the request, or the client has not sent all of it.
[[nodiscard]] bool is_request_bad(const RequestState& state) noexcept;

/// The request's body is still on its way to the member, or the rest of it could not be sent.
[[nodiscard]] bool is_uploading(const RequestState& state) noexcept;

/// The client kept the member waiting for the rest of the body, and for longer than it then stayed: it may have left
/// before that came. (What is written to a connection that its other end has closed is lost without an error.)
[[nodiscard]] bool was_kept_waiting(const RequestState& state) noexcept;

/// Of the request line and the fields, about.
[[nodiscard]] std::size_t length_of_head(const request_rec* r) noexcept;

/// ProxyPreserveHost: the name of the TLS handshake (SNI), and the one that the member's certificate must have, is the
/// client's Host (ap_proxy_determine_connection). A handshake under a name that the administrator has not written says
/// nothing of the member. (A wildcard of ServerAlias is no name.)
[[nodiscard]] bool is_tls_name_of_client(const RequestState& state) noexcept;

/// What the client can make of an HTTP/2 request that its member resets, though it is well. mod_proxy_http2 passes
/// trailers on; mod_http2 resets a stream whose trailers come when it has answered. And no HTTP/2 server takes an empty
/// Host for a name, which an HTTP/1.0 client may send and ProxyPreserveHost passes on.
[[nodiscard]] bool may_be_reset_by_http2(const RequestState& state) noexcept;

/// The member breaks off an answer that it can't write any more, since the client takes it too slowly: most of the time
/// since the member's last byte went by while we waited for the client.
[[nodiscard]] bool is_client_too_slow(const Call& call) noexcept;

}  // namespace cb::httpd

#endif
