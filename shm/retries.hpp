// The retry budget of CircuitBreakerFailover: how many failed calls may be made again with another member.
//
// Purpose: keeps an outage from becoming a storm of retries. Each member counts the retries after its own failed calls
// in 16 buckets, which together cover the span. The budget is one for all members of the balancer.
// Thread safety: any number of threads and processes, lock-free. A killed child leaves at most one retry too many in a
// bucket, until that bucket is out of the span.
// Invariants: never more than `allowed` in a span; of two that ask for the last one, both may be turned away.
#ifndef CIRCUITBREAKER_SHM_RETRIES_HPP
#define CIRCUITBREAKER_SHM_RETRIES_HPP

#include "core/policy.hpp"
#include "layout.hpp"

namespace cb::shm {

/// Counts a retry after a call to `failed`, one of `members` (nullptr: one without a breaker), unless there were
/// `allowed` in the last `span` milliseconds (at least 16) before.
[[nodiscard]] bool take_retry(Slot& failed, Slot* const* members, std::uint32_t count, core::Millis span,
                              std::uint64_t allowed, core::Millis now) noexcept;

}  // namespace cb::shm

#endif
