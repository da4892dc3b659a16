// The status page itself.
//
// Purpose: says from top to bottom who is out, since when, why, what was tried and when it will be probed; on a phone,
// in the dark, and without JavaScript.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_HTML_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_HTML_HPP

#include "html_member.hpp"

namespace cb::httpd {

void write_html(request_rec* r, const MemberList& members, const PageOptions& options) noexcept;

}  // namespace cb::httpd

#endif
