// Refusals: 503 at once, with Retry-After and the reason in the environment.
//
// Purpose: DESIGN 6, "On a refusal"; and the count of what a breaker kept from its member.
// Thread safety: each request on its own thread; counters are shared atomics.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_REFUSE_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_REFUSE_HPP

#include "mask.hpp"

namespace cb::httpd {

/// Looks whether the breaker would let a request through. In Observe: always Refusal::none.
[[nodiscard]] shm::Refusal refusal_of(RequestState& state, Breaker& breaker, shm::Slot& slot) noexcept;
/// Counts a refusal; in Observe as one that would have been.
void count_refusal(const Breaker& breaker, shm::Slot& slot, shm::Refusal refusal) noexcept;

/// Notes that all usable members of the request's balancer are hidden.
void note_refusals(RequestState& state, const Mask& mask) noexcept;
/// Notes that a worker without a balancer refuses.
void note_refusal(RequestState& state, const Breaker& breaker, shm::Slot& slot, shm::Refusal refusal) noexcept;
/// Refuses the request, by what was noted: 503.
int refuse(RequestState& state) noexcept;

}  // namespace cb::httpd

#endif
