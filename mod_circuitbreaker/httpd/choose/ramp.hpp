// What decides on a request at the ramps of recovering members.
//
// Purpose: the ticket of a request with a sticky session depends on the session alone. So a session comes back once,
// when the growing share has reached it, and then stays. A session that begins at the member meanwhile stays there too.
// Thread safety: belongs to one request.
// Invariants: one ticket for a request and a member. A session that was let through is let through until the ramp ends.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_RAMP_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_RAMP_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// The request's ticket for that member; nullptr if its breaker is closed, so that there is nothing to ask.
[[nodiscard]] shm::RampTicket* ramp_ticket(RequestState& state, const Breaker& breaker, shm::Slot& slot) noexcept;

/// The response's headers have come: if they begin a session, that session stays at the member.
void note_new_session(RequestState& state) noexcept;

}  // namespace cb::httpd

#endif
