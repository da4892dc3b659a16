// The sticky session of a request, as mod_proxy_balancer finds it (`stickysession=`, `stickysessionsep=`,
// `scolonpathdelim=`).
//
// Purpose: which member a request is bound to, before mod_proxy chooses, and who its client is.
// Thread safety: pure functions on one request.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_SESSION_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_SESSION_HPP

#include <cstdint>

#include "httpd/members/member_lists.hpp"

namespace cb::httpd {

struct Session {
    const char* value = nullptr;  // of the parameter or cookie; nullptr: the request has none
    const char* route = nullptr;  // what of it names the member

    /// Nothing in the value tells one client from another: `ROUTEID=.a`.
    [[nodiscard]] bool is_route_only() const noexcept { return route - value <= 1; }
};

/// `url` as mod_proxy is given it before a member is chosen.
[[nodiscard]] Session find_session(const request_rec* r, const proxy_balancer& balancer, const char* url) noexcept;

/// The session is that member's: by its route, or as the one that stands in for the route's own (`redirect=`).
[[nodiscard]] bool is_bound(const Session& session, Members members, const proxy_worker_shared& worker) noexcept;

/// The session that the response gives to the client in a Set-Cookie, if it does.
[[nodiscard]] Session find_new_session(const request_rec* r, const proxy_balancer& balancer) noexcept;

/// Uniform over 64 bits, the same for each request of that session; another `salt` makes another order of sessions.
/// Where the value only names the member, the client's address and User-Agent stand for the session.
[[nodiscard]] std::uint64_t session_hash(const request_rec* r, const Session& session, std::uint64_t salt) noexcept;

}  // namespace cb::httpd

#endif
