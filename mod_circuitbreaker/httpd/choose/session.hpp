// The sticky session of a request, as mod_proxy_balancer finds it (`stickysession=`, `stickysessionsep=`,
// `scolonpathdelim=`).
//
// Purpose: tells which member a request is bound to, before mod_proxy chooses, and tells one client's session from
// another's.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_SESSION_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_SESSION_HPP

#include <cstdint>

#include "httpd/members/member_lists.hpp"

namespace cb::httpd {

struct Session {
    const char* value = nullptr;  // of the parameter or cookie; nullptr: the request has none
    const char* route = nullptr;  // the part of it that names the member

    /// The value holds the route alone, so it is the same for all clients: `ROUTEID=.a`.
    [[nodiscard]] bool is_route_only() const noexcept { return route - value <= 1; }
};

/// `url`: as mod_proxy has it before a member is chosen.
[[nodiscard]] Session find_session(const request_rec* r, const proxy_balancer& balancer, const char* url) noexcept;

/// Is the session bound to that member? By its route, or because the member stands in for that of the route
/// (`redirect=`).
[[nodiscard]] bool is_bound(const Session& session, Members members, const proxy_worker_shared& worker) noexcept;

/// The session that the response begins with a Set-Cookie, if it does.
[[nodiscard]] Session find_new_session(const request_rec* r, const proxy_balancer& balancer) noexcept;

/// A hash that is uniform over 64 bits and the same for each request of that session. Another `salt` gives another
/// order of sessions. If the value only names the member, the client's address and User-Agent stand for the session.
[[nodiscard]] std::uint64_t session_hash(const request_rec* r, const Session& session, std::uint64_t salt) noexcept;

}  // namespace cb::httpd

#endif
