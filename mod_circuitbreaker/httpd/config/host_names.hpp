// Names of hosts, as they stand in `host=NAME` and in a request's Host.
//
// Purpose: a page that acts on breakers answers only to the names that CircuitBreakerControl lists. Otherwise a browser
// could be led to it under an attacker's name, and the attacker's pages would be "of the same host" (DNS rebinding).
// Invariants: names are kept in one spelling (lower case, no port, no trailing dot, an IPv6 address in its shortest
// form and without brackets), so that equal names have equal bytes.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_HOST_NAMES_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_HOST_NAMES_HPP

#include "httpd/httpd_api.hpp"

namespace cb::httpd {

/// The one spelling of a host name, an IPv4 address or an [IPv6] address; nullptr if `text` is none of these.
[[nodiscard]] const char* host_name(apr_pool_t* p, const char* text) noexcept;

/// Is the request's host one of these names? nullptr: every name is right.
[[nodiscard]] bool is_for_host(const request_rec* r, const apr_array_header_t* names) noexcept;

}  // namespace cb::httpd

#endif
