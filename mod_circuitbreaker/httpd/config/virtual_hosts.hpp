// Directives in a virtual host that have no effect there.
//
// Purpose: a member has one breaker and one policy, of the server that defines it. So directives in a virtual host do
// nothing to members of the main server, even if its requests go there. A warning at start says so, with file and line,
// and with the place where they would have an effect.
// Thread safety: reads the configuration only, while the server starts or restarts.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_VIRTUAL_HOSTS_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_VIRTUAL_HOSTS_HPP

#include "httpd/httpd_api.hpp"

namespace cb::httpd {

/// One warning for each virtual host with such directives.
void warn_of_virtual_hosts(apr_pool_t* temporary, server_rec* main_server) noexcept;

}  // namespace cb::httpd

#endif
