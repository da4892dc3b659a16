// The one loop that applies next() to a control word.
//
// Purpose: load, decide, CAS, note; shared by member.cpp, probes.cpp and max_open.cpp and by nobody else.
// Thread safety: lock-free; a retry means that somebody else made progress.
#ifndef CIRCUITBREAKER_SHM_CONTROL_HPP
#define CIRCUITBREAKER_SHM_CONTROL_HPP

#include "core/breaker.hpp"
#include "member.hpp"

namespace cb::shm {

/// Applies the event; a transition that was due first is carried out on the way. The clock is read again at each retry,
/// and so are the sums of a result. Returns the last step.
core::Step apply(Slot& slot, core::Event event, const core::Policy& policy, const Process& process) noexcept;

/// Takes a probe's lease and its slot of the round; `is_last_resort` as in admit(). kind none: there was none to have;
/// call: the breaker has closed meanwhile.
[[nodiscard]] Permit take_probe(Slot& slot, const core::Policy& policy, const Process& process, core::Millis lease_span,
                                bool is_last_resort) noexcept;

/// Ends a probe with its outcome, or by the deadline's rule if that has passed.
void settle_probe(Slot& slot, const core::Policy& policy, const Process& process, Permit& permit,
                  const Ending& ending) noexcept;

/// A result that would trip: asks MaxOpen under the member's intent, then applies the event with the answer.
core::Step trip_within_max_open(Slot& slot, core::Event event, const core::Policy& policy, const Process& process,
                                Peers peers) noexcept;

}  // namespace cb::shm

#endif
