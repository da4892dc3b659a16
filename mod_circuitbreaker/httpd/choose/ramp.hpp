// What a request shows at the ramps of recovering members.
//
// Purpose: the ticket of a request that has a sticky session is the session's. So a session comes back once, when the
// growing share has reached it, and stays (DESIGN 5, CASES 19); one that begins at the member meanwhile stays too.
// Thread safety: belongs to one request.
// Invariants: one ticket for a request and a member; who was let in by a session is let in to the ramp's end.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_RAMP_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_RAMP_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// The request's ticket for that member; nullptr while its breaker has no ramp to pass.
[[nodiscard]] shm::RampTicket* ramp_ticket(RequestState& state, const Breaker& breaker, shm::Slot& slot) noexcept;

/// The response's headers have come: the session that it begins is at home from now on.
void note_new_session(RequestState& state) noexcept;

}  // namespace cb::httpd

#endif
