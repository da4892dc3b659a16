// The story of a request: take a member, call it, judge the call, and go elsewhere or answer.
//
// mod_proxy calls us where it would choose a member and where it would call it. Both times we run its own hooks in our
// place, once or several times.
// Thread safety: each request on its own thread.
#ifndef CIRCUITBREAKER_HTTPD_ATTEMPTS_HPP
#define CIRCUITBREAKER_HTTPD_ATTEMPTS_HPP

namespace cb::httpd {

/// mod_proxy's hooks, in pre_config.
void register_attempt_hooks() noexcept;

}  // namespace cb::httpd

#endif
