// The questions about one request and one member: may this member have this request?
//
// Purpose: used to choose a member. Nothing is taken or counted, except that a ramp's ticket is drawn once for a
// request and a member.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_ASK_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_ASK_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// Does the request have a session that may only go to its own member (`nofailover`)?
[[nodiscard]] bool has_member_of_its_own(const RequestState& state) noexcept;

/// Would mod_proxy give this request to that member of state.balancer, by the member's status (flags and errors) and
/// by the request's session?
[[nodiscard]] bool is_usable(const RequestState& state, const proxy_worker& worker) noexcept;

/// Do the member's flags keep mod_proxy from giving it this request? Errors are not looked at. A member that drains
/// gets the requests of its own sessions.
[[nodiscard]] bool is_barred_for(const RequestState& state, const proxy_worker_shared& worker) noexcept;

/// May this request be a probe of that member? Depends on its body (read_ahead.hpp) and on CircuitBreakerProbeIf, which
/// is evaluated only if the member is open or half-open. (If it opens right after that, the request is refused.)
[[nodiscard]] bool may_probe(const RequestState& state, const Breaker& breaker, const shm::Slot& slot) noexcept;

/// Why the breaker would refuse the request; none if it would not. Always none in Observe.
[[nodiscard]] shm::Refusal refusal_of(RequestState& state, Breaker& breaker, shm::Slot& slot) noexcept;

/// Can this member be probed early by a request such as this one, if it finds no other member? Not in a balancer of
/// one, nor with `forcerecovery=Off`.
[[nodiscard]] bool can_be_last_resort(const RequestState& state, const proxy_worker& worker) noexcept;
/// Could this request probe it early right now?
[[nodiscard]] bool is_last_resort(RequestState& state, const proxy_worker& worker) noexcept;

/// Would another member take the request now? Not counting the one of the present call and those tried before.
[[nodiscard]] bool is_another_allowed(RequestState& state) noexcept;

}  // namespace cb::httpd

#endif
