// The request's body, read before the member is asked.
//
// Purpose: a client that stalls in the middle of its upload must not hold what others wait for: one of the member's few
// probe slots, or one of its places (CircuitBreakerMaxConcurrent). So a request takes a probe slot once its body is
// here, and a place once the first part of it is.
// Thread safety: belongs to one request.
// Invariants: nothing is held while the client is waited for.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_READ_AHEAD_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_READ_AHEAD_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// May this request carry a probe, as far as its body goes? It has none, or it is here, or (before the body has been
/// waited for) may be read ahead. A longer one, and one that waits for a `100 Continue`, may if nothing else was probed
/// for a whole open time: an application that gets nothing but large uploads has to recover, too.
[[nodiscard]] bool may_carry_probe(const RequestState& state, const Breaker& breaker, const shm::Slot& slot) noexcept;

/// Before a permit of that breaker is asked for: reads as much as that needs, also if it comes to need more while the
/// client is waited for. OK, or the status of the request error.
[[nodiscard]] int read_ahead(const RequestState& state, const Breaker& breaker, const shm::Slot& slot) noexcept;

}  // namespace cb::httpd

#endif
