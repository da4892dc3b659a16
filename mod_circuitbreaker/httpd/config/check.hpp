// What is checked once all of the configuration has been read, before the server starts or restarts.
//
// Purpose: what can't work stops the start with a message; what has no effect is warned of. Each message names the
// directive, its file and its line, and what would be right.
// Thread safety: in check_config (one thread).
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_CHECK_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_CHECK_HPP

#include "httpd/httpd_api.hpp"

namespace cb::httpd {

/// False, and logged, if the server must not start like this.
[[nodiscard]] bool check_configuration(apr_pool_t* temporary, server_rec* main_server) noexcept;

}  // namespace cb::httpd

#endif
