// What stands in a virtual host and has no effect there.
//
// Purpose: a member has one breaker and one policy, of the server that defines it. A virtual host whose requests go to
// members of the main server changes nothing about them, whatever it says; that is told at start, with file and line
// and with the place where it would have an effect.
// Thread safety: reads the configuration only, while the server starts or restarts.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_VIRTUAL_HOSTS_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_VIRTUAL_HOSTS_HPP

#include "httpd/httpd_api.hpp"

namespace cb::httpd {

/// One warning for each virtual host with such directives.
void warn_of_virtual_hosts(apr_pool_t* temporary, server_rec* main_server) noexcept;

}  // namespace cb::httpd

#endif
