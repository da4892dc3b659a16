// Our part of mod_status.
//
// Purpose: a section on its page, and `Key: value` lines in its `?auto`. Without mod_status nobody asks.
// Thread safety: each request on its own thread.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_SERVER_STATUS_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_SERVER_STATUS_HPP

#include "httpd/httpd_api.hpp"

namespace cb::httpd {

void register_status_hook() noexcept;

}  // namespace cb::httpd

#endif
