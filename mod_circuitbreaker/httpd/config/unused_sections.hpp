// <Proxy> sections that apply to no member.
//
// Purpose: a warning for each one, with file and line and with what would help.
// Thread safety: reads configuration only, while the server starts or restarts.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_UNUSED_SECTIONS_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_UNUSED_SECTIONS_HPP

#include "httpd/httpd_api.hpp"

namespace cb::httpd {

void warn_of_unused_sections(apr_pool_t* temporary, server_rec* main_server) noexcept;

}  // namespace cb::httpd

#endif
