// Refusals: 503 at once, with Retry-After and the reason in the environment.
//
// Purpose: answers a request that no member takes, and counts for each breaker the requests that it has refused.
// Thread safety: the counters are shared atomics; the rest belongs to one request.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_REFUSE_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_REFUSE_HPP

#include "mask.hpp"

namespace cb::httpd {

/// Counts a refusal; in Observe as "would have been refused".
void count_refusal(const Breaker& breaker, shm::Slot& slot, shm::Refusal refusal) noexcept;
/// Counts the refusals of all hidden members, once a member was chosen.
void count_refusals(const Mask& mask) noexcept;

/// Notes that all usable members of the request's balancer are hidden.
void note_refusals(RequestState& state, const Mask& mask) noexcept;
/// Notes that a worker without a balancer refuses.
void note_refusal(RequestState& state, const Breaker& breaker, shm::Slot& slot, shm::Refusal refusal) noexcept;
/// Refuses the request with what was noted: 503.
int refuse(RequestState& state) noexcept;

}  // namespace cb::httpd

#endif
