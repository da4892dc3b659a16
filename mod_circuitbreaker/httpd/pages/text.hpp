// `?auto`: the breakers as `Key: value` lines, a blank line after each member.
//
// Purpose: what a script can read without tools. A member's lines begin with `Member:`; numbers are whole, times in ms.
// Thread safety: writes one request's response.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_TEXT_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_TEXT_HPP

#include "model.hpp"

namespace cb::httpd {

void write_text(request_rec* r, const MemberList& members) noexcept;

}  // namespace cb::httpd

#endif
