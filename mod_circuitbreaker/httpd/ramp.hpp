// What a request shows at the ramps of recovering members.
//
// Purpose: the ticket of a request that has a sticky session is the session's, so that a session comes back once, when
// the growing share has reached it, and stays (DESIGN 5, CASES 19). Sessions are found as mod_proxy_balancer finds
// them. Thread safety: belongs to one request. Invariants: one ticket for a request and a member; a session's ticket is
// the same for the whole of one ramp.
#ifndef CIRCUITBREAKER_HTTPD_RAMP_HPP
#define CIRCUITBREAKER_HTTPD_RAMP_HPP

#include "request.hpp"

namespace cb::httpd {

/// The request's ticket for that member; nullptr while its breaker has no ramp to pass.
[[nodiscard]] shm::RampTicket* ramp_ticket(RequestState& state, const Breaker& breaker, shm::Slot& slot) noexcept;

}  // namespace cb::httpd

#endif
