// Adaptive probing in shared memory: Slot.probe_rate, written by whoever settles a probe or begins a round.
//
// Purpose: what the CAS loop (control.cpp) asks before an event, and notes after it.
// Thread safety: any number of threads and processes, lock-free.
// Invariants: a probe is a sample at most once, and a round grows at most once, because both follow a CAS of the
// control word that one process wins. A child killed between the two loses that sample, or that growth.
#ifndef CIRCUITBREAKER_SHM_ADAPTIVE_HPP
#define CIRCUITBREAKER_SHM_ADAPTIVE_HPP

#include "core/breaker.hpp"
#include "layout.hpp"

namespace cb::shm {

/// Fills in what the event needs to know of earlier probes: the size of a round, and whether an open time is longer.
void ask_earlier_probes(const Slot& slot, core::Event& event, const core::Policy& policy) noexcept;

/// After the event was applied: notes what it says about probes.
void note_probe(Slot& slot, const core::Event& event, const core::Step& step, const core::Policy& policy) noexcept;

}  // namespace cb::shm

#endif
