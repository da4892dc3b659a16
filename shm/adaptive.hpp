// Adaptive probing in shared memory: the word Slot.probe_rate, kept by whoever settles a probe or begins a round.
//
// Purpose: what the CAS loop (control.cpp) has to ask before an event, and to note after it.
// Thread safety: any number of threads and processes, lock-free.
// Invariants: a probe is a sample at most once, and the round grows at most once for each round begun, as both follow a
// CAS of the control word that only one process wins. A child killed between the two costs that one sample, or that one
// doubling.
#ifndef CIRCUITBREAKER_SHM_ADAPTIVE_HPP
#define CIRCUITBREAKER_SHM_ADAPTIVE_HPP

#include "core/breaker.hpp"
#include "layout.hpp"

namespace cb::shm {

/// Fills in what the event needs of earlier probes: the size of a round, a longer open time.
void ask_earlier_probes(const Slot& slot, core::Event& event, const core::Policy& policy) noexcept;

/// Notes what the event, which was applied, says about probes.
void note_probe(Slot& slot, const core::Event& event, const core::Step& step, const core::Policy& policy) noexcept;

}  // namespace cb::shm

#endif
