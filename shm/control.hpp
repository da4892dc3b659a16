// The one loop that applies next() to a control word.
//
// Purpose: load, decide, CAS, note. Used by member.cpp, probes.cpp and max_open.cpp only.
// Thread safety: lock-free; a retry means that another process or thread has made progress.
#ifndef CIRCUITBREAKER_SHM_CONTROL_HPP
#define CIRCUITBREAKER_SHM_CONTROL_HPP

#include "core/breaker.hpp"
#include "member.hpp"

namespace cb::shm {

/// Applies the event, and before it any transition that is due. Each retry reads the clock again, and the sums of a
/// result. Returns the last step; `before`, unless nullptr, is then the word that it was taken from.
core::Step apply(Slot& slot, core::Event event, const core::Policy& policy, const Process& process,
                 std::uint64_t* before = nullptr) noexcept;

/// Takes a lease and a place in the round for a probe; `is_last_resort` as in admit(). The permit's kind is none if
/// there was nothing to take, and call if the breaker has closed meanwhile.
[[nodiscard]] Permit take_probe(Slot& slot, const core::Policy& policy, const Process& process, core::Millis lease_span,
                                bool is_last_resort) noexcept;

/// Ends a probe with its outcome, or, if its deadline has passed, by verdict_at_deadline(). nullopt if somebody else
/// has ended it.
std::optional<ProbeEnd> settle_probe(Slot& slot, const core::Policy& policy, const Process& process, Permit& permit,
                                     const Ending& ending) noexcept;

/// For a result that would open the breaker: claims the member's intent word, asks MaxOpen, and applies the event with
/// the answer.
core::Step trip_within_max_open(Slot& slot, core::Event event, const core::Policy& policy, const Process& process,
                                Peers peers) noexcept;

}  // namespace cb::shm

#endif
