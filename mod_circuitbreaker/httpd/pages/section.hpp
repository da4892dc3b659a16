// The breakers as a section of a page of httpd's own (balancer-manager, mod_status).
//
// Purpose: one table in the plain HTML of those pages: no style of ours, no script, ASCII only.
// Thread safety: writes one request's response.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_SECTION_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_SECTION_HPP

#include "actions.hpp"
#include "html_out.hpp"
#include "model.hpp"

namespace cb::httpd {

void begin_section(const HtmlOut& out, const Controls& controls) noexcept;
void write_section_row(const HtmlOut& out, const MemberSnapshot& member, const Controls& controls) noexcept;
void end_section(const HtmlOut& out) noexcept;

}  // namespace cb::httpd

#endif
