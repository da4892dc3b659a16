// May this member have this request?
//
// Purpose: the questions that choosing asks, each about one request and one member. Nothing is taken or counted, except
// that a ramp's ticket is drawn once for a request and a member.
// Thread safety: each request on its own thread; breakers are read from shared memory.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_ASK_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_ASK_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// Has the request a session that goes to its own member alone (`nofailover`)?
[[nodiscard]] bool has_member_of_its_own(const RequestState& state) noexcept;

/// Would mod_proxy give that member of state.balancer this request, by its own flags and errors, and by its session?
[[nodiscard]] bool is_usable(const RequestState& state, const proxy_worker& worker) noexcept;

/// The same, but for errors. A member that drains gets the requests of its own sessions.
[[nodiscard]] bool is_barred_for(const RequestState& state, const proxy_worker_shared& worker) noexcept;

/// May this request be a probe of that member? By its body (read_ahead.hpp) and by CircuitBreakerProbeIf, whose
/// expression is evaluated only while there is something to probe. A closed member has no probes; should it open at
/// this very moment, the request is refused.
[[nodiscard]] bool may_probe(const RequestState& state, const Breaker& breaker, const shm::Slot& slot) noexcept;

/// Why the breaker would refuse the request; none if it would not. In Observe always none.
[[nodiscard]] shm::Refusal refusal_of(RequestState& state, Breaker& breaker, shm::Slot& slot) noexcept;

/// Can an open member be probed before its open time is over, by requests such as this one that find no other member?
/// Not in a balancer of one, nor with `forcerecovery=Off`.
[[nodiscard]] bool can_be_last_resort(const RequestState& state, const proxy_worker& worker) noexcept;
/// And would it be now, by this request?
[[nodiscard]] bool is_last_resort(RequestState& state, const proxy_worker& worker) noexcept;

/// Is there a member, other than the one of the present call and those tried before, that would have the request now?
[[nodiscard]] bool is_another_allowed(RequestState& state) noexcept;

}  // namespace cb::httpd

#endif
