// One member on the status page: its row, and what is behind it.
//
// Purpose: the row says how it is; the details say what failed, what was tried, what is in force, and let one act.
// Thread safety: writes one request's response.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_HTML_MEMBER_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_HTML_MEMBER_HPP

#include "actions.hpp"
#include "html_out.hpp"

namespace cb::httpd {

struct PageOptions {
    unsigned refresh = 5;  // seconds; 0: not by itself
    Controls controls;
    const char* member = nullptr;  // its id, if one alone was asked for
};

inline constexpr const char* kMemberColumns =
    "<colgroup><col class=\"c-member\"><col class=\"c-state\"><col class=\"c-rate\"><col class=\"c-rate\">"
    "<col class=\"c-number\"><col class=\"c-number\"><col class=\"c-small\"><col class=\"c-small\">"
    "<col class=\"c-strip\"></colgroup>\n<thead><tr><th scope=\"col\">Member</th><th scope=\"col\">State</th><th "
    "scope=\"col\">Failures</th>"
    "<th scope=\"col\">Slow calls</th><th scope=\"col\">In a row</th><th scope=\"col\">Probes</th>"
    "<th scope=\"col\">In flight</th><th scope=\"col\">Refused</th><th scope=\"col\">Last hour</th></tr></thead>\n";

/// "open", as a coloured mark.
void write_state(const HtmlOut& out, core::State state) noexcept;
void write_time(const HtmlOut& out, const MemberSnapshot& member, core::Millis at) noexcept;

/// One row, and one with the details, if they are wanted here.
void write_member_rows(const HtmlOut& out, const MemberSnapshot& member, const PageOptions& options,
                       bool with_details) noexcept;

}  // namespace cb::httpd

#endif
