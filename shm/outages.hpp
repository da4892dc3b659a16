// How long a member's outages last, and how much of that is our own waiting (core/outage.hpp).
//
// How: Slot.proven says since when the member is known to be well. An opening, or an early round that fails, clears it.
// When the breaker closes, the history tells when the outage began and how long each state lasted.
// Thread safety: any number of threads and processes, lock-free. Figures for people: of two changes at one instant, a
// proof may be missed. Outages that an operator has ended are not counted, nor are those that have more changes than
// the history keeps.
#ifndef CIRCUITBREAKER_SHM_OUTAGES_HPP
#define CIRCUITBREAKER_SHM_OUTAGES_HPP

#include "member.hpp"

namespace cb::shm {

/// A health check has passed, or a probe has succeeded.
void note_proof(Slot& slot, core::Millis now) noexcept;

/// The member has opened, or stays open because a probe failed.
void forget_proof(Slot& slot) noexcept;

/// The first probe begins, `idle` ms after the open time was over. That was no waiting of ours, but for a request, so
/// it is taken out of the time since the proof.
void note_first_probe(Slot& slot, core::Millis idle, core::Millis now) noexcept;

/// The breaker has just closed by change `number`, which is in the history already.
void note_end_of_outage(Slot& slot, std::uint64_t number, const core::Policy& policy, const Process& process) noexcept;

}  // namespace cb::shm

#endif
