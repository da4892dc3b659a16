// Flapping: seen at an opening, reported once by one process.
//
// Purpose: gathers the figures (core/flapping.hpp) from the last changes of state, the last failing calls and the
// totals. Thread safety: any number of threads and processes, lock-free. A child that is killed before its report
// leaves it to the next opening. Invariants: Slot.flapping is set by the CAS of the one process that reports. It is
// cleared by an operator's reset, and when the breaker has been well (level 0 by evidence) and has not opened more than
// kFlappingOpenings times within kFlappingSpans of its open times: found when the evidence is there, or else at its
// next opening.
#ifndef CIRCUITBREAKER_SHM_FLAPPING_HPP
#define CIRCUITBREAKER_SHM_FLAPPING_HPP

#include "member.hpp"

namespace cb::shm {

/// The figures at `now`, for a breaker at `level`.
[[nodiscard]] core::Flapping figures_of(const Slot& slot, const core::Policy& policy, std::uint32_t level,
                                        core::Millis now) noexcept;

/// After a change from `before` to `after` that this process carried out and that stands in the history.
void watch_flapping(Slot& slot, const core::Word& before, const core::Word& after, const core::Policy& policy,
                    const Process& process, core::Millis now) noexcept;

}  // namespace cb::shm

#endif
