// The request's body, read before the member is asked.
//
// Purpose: a client that stalls during its upload must not hold what others wait for: one of the member's few probe
// slots, or one of its places (CircuitBreakerMaxConcurrent). So a request takes a probe slot only when its body is
// here, and a place only when the first part of the body is here.
// Thread safety: belongs to one request.
// Invariants: no slot and no place is held while the client is waited for.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_READ_AHEAD_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_READ_AHEAD_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// Does its body allow this request to be a probe? Yes if it has none, if it is here already, or if it can be read
/// ahead before the member is asked. A longer body, and one that waits for a `100 Continue`, only if there was no probe
/// for a whole open time: an application that gets nothing but large uploads must be able to recover, too.
[[nodiscard]] bool may_carry_probe(const RequestState& state, const Breaker& breaker, const shm::Slot& slot) noexcept;

/// Before a permit is asked for: reads as much of the body as the permit needs. If it needs more after the wait for the
/// client (the member has opened), reads that too. OK, or the status of a request error.
[[nodiscard]] int read_ahead(const RequestState& state, const Breaker& breaker, const shm::Slot& slot) noexcept;

}  // namespace cb::httpd

#endif
