// What an operator can do to a breaker, by POST to the status page.
//
// Purpose: force open, force closed, reset, back to automatic. Only where CircuitBreakerControl is On, only by POST,
// only with the token of one of our pages, and only from a page of the same host.
// Thread safety: draw_action_token() is for the parent, in post_config; the rest belongs to one request.
// Invariants: a refused action changes nothing. Every action, refused or not, leaves one line in the error log.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_ACTIONS_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_ACTIONS_HPP

#include "html_out.hpp"
#include "model.hpp"

namespace cb::httpd {

/// Draws the token once in the life of the segment, so that forms are still valid after a restart.
void draw_action_token() noexcept;

/// 32 hexadecimal digits; nullptr if there is no token, and so no action.
[[nodiscard]] const char* action_token(apr_pool_t* p) noexcept;

/// Where the forms of a page post to, and with what.
struct Controls {
    const char* url = nullptr;
    const char* token = nullptr;  // nullptr: there are none

    [[nodiscard]] bool are_there() const noexcept { return token != nullptr; }
};

/// Those of the status page, for this request. None if every POST to it would be refused.
[[nodiscard]] Controls own_controls(const request_rec* r) noexcept;

/// Those of the first <Location> of this virtual host that has both `SetHandler circuitbreaker-status` and
/// `CircuitBreakerControl On`, and answers to the name that this request came under.
[[nodiscard]] Controls controls_of_server(request_rec* r) noexcept;

/// The buttons that make sense in the member's state.
void write_action_form(const HtmlOut& out, const MemberSnapshot& member, const Controls& controls) noexcept;

/// Does what a POST asks for: 303 back to the page, or why not.
[[nodiscard]] int do_action(request_rec* r) noexcept;

/// 403, and the line in the error log that says why.
[[nodiscard]] int refuse_action(const request_rec* r, const char* why) noexcept;

}  // namespace cb::httpd

#endif
