// The story of a request: take a member, call it, judge the call, then answer or go to another member.
//
// Purpose: mod_proxy calls us where it would choose a member, and where it would call the member. Both times we run its
// own hooks in our place, once or several times.
#ifndef CIRCUITBREAKER_HTTPD_ATTEMPTS_HPP
#define CIRCUITBREAKER_HTTPD_ATTEMPTS_HPP

namespace cb::httpd {

/// Registers for mod_proxy's hooks, in pre_config.
void register_attempt_hooks() noexcept;

}  // namespace cb::httpd

#endif
