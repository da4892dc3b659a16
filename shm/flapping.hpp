// Flapping: a breaker that opens more than 3 times within 10 of its open times (that of its present level).
//
// Thread safety: any number of threads and processes, lock-free. If a child is killed before it has reported, the next
// opening is reported.
// Invariants: Slot.flapping is set by the CAS of the one process that reports. It is cleared by an operator's reset, or
// when both hold: the breaker has been well (level 0), and it no longer opens that often. That is looked at when it is
// proven well, and at the next opening.
#ifndef CIRCUITBREAKER_SHM_FLAPPING_HPP
#define CIRCUITBREAKER_SHM_FLAPPING_HPP

#include "member.hpp"

namespace cb::shm {

/// After a change from `before` to `after` that this process has carried out and noted in the history.
void watch_flapping(Slot& slot, const core::Word& before, const core::Word& after, const core::Policy& policy,
                    const Process& process, core::Millis now) noexcept;

}  // namespace cb::shm

#endif
