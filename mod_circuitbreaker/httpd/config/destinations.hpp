// Where the directives of a virtual host send requests to: ProxyPass, handlers, RewriteRule with [P].
//
// Purpose: tells which of the main server's members a virtual host uses (virtual_hosts.hpp).
// Thread safety: reads the configuration only, while the server starts or restarts.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_DESTINATIONS_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_DESTINATIONS_HPP

#include "httpd/proxy_api.hpp"

namespace cb::httpd {

struct Destination {
    const proxy_balancer* balancer;
    const proxy_worker* worker;  // nullptr as well: a backend that no directive declares
};

/// Adds those of the directive, of those beside it, and of those within them to `found`, as Destination.
void find_destinations(apr_pool_t* p, const server_rec* s, const ap_directive_t* directive,
                       apr_array_header_t* found) noexcept;

}  // namespace cb::httpd

#endif
