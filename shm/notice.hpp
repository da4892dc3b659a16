// The end of an open time is announced a while before (CircuitBreakerOpenTime notice=).
#ifndef CIRCUITBREAKER_SHM_NOTICE_HPP
#define CIRCUITBREAKER_SHM_NOTICE_HPP

#include "member.hpp"

namespace cb::shm {

/// Tells the observer if the open time ends within policy.open_time.notice, or has ended without a probe, and nobody
/// has told of it. `lookahead`: the caller's next look comes that much later.
/// Thread safety: any number of threads and processes, lock-free; one of them tells.
void announce_probe(Slot& slot, const core::Policy& policy, const Process& process, core::Millis lookahead) noexcept;

}  // namespace cb::shm

#endif
