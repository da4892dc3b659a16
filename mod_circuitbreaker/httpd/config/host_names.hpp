// Names of hosts, as they stand in `host=NAME` and in a request's Host.
//
// Purpose: a page that acts answers to its own names only, where CircuitBreakerControl says which these are: a browser
// can be led to it under a name of somebody else's, whose pages are then "of the same host" (DNS rebinding).
// Thread safety: pure, but for the pool.
// Invariants: names are kept in one spelling (lower case, no port, no trailing dot, an IPv6 address in its shortest
// form and without brackets), so that they are equal if their bytes are.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_HOST_NAMES_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_HOST_NAMES_HPP

#include "httpd/httpd_api.hpp"

namespace cb::httpd {

/// The one spelling of a host name, an IPv4 address or an [IPv6] address; nullptr if `text` is none of these.
[[nodiscard]] const char* host_name(apr_pool_t* p, const char* text) noexcept;

/// Is the request's host one of these names? nullptr: whatever it is.
[[nodiscard]] bool is_for_host(const request_rec* r, const apr_array_header_t* names) noexcept;

}  // namespace cb::httpd

#endif
