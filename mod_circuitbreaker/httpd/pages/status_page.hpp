// `SetHandler circuitbreaker-status`: which of its forms is asked for.
//
// Purpose: HTML, `?format=json`, `?auto`; each of them for one member with `?member=ID`.
// Thread safety: each request on its own thread.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_STATUS_PAGE_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_STATUS_PAGE_HPP

#include "httpd/httpd_api.hpp"

namespace cb::httpd {

extern "C" int cb_on_status(request_rec* r) noexcept;

}  // namespace cb::httpd

#endif
