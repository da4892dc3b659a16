// `SetHandler circuitbreaker-status`: the breakers as text, one `Key: value` block a member.
//
// Purpose: what an operator and a script can read without tools.
// Thread safety: reads shared atomics one by one; a page is no snapshot.
#ifndef CIRCUITBREAKER_HTTPD_STATUS_HPP
#define CIRCUITBREAKER_HTTPD_STATUS_HPP

#include "httpd_api.hpp"

namespace cb::httpd {

extern "C" int cb_on_status(request_rec* r) noexcept;

}  // namespace cb::httpd

#endif
