// Sessions that have begun at a member while it was probed or recovering.
//
// Purpose: such a session is at home there and stays, whatever share of the older ones the ramp lets in by now.
// Thread safety: any number of threads and processes, lock-free.
// Invariants: what was noted is known for the rest of the ramp. Now and then something else is taken for it (a Bloom
// filter: 5 % with 1000 sessions noted), which then comes earlier than it should; never later, nor to and fro.
#ifndef CIRCUITBREAKER_SHM_NEWCOMERS_HPP
#define CIRCUITBREAKER_SHM_NEWCOMERS_HPP

#include "layout.hpp"

namespace cb::shm {

/// `hash` of the session, uniform over 64 bits; the low half is used.
void note_newcomer(Slot& slot, std::uint64_t hash) noexcept;
[[nodiscard]] bool is_newcomer(const Slot& slot, std::uint64_t hash) noexcept;
/// A recovery begins.
void forget_newcomers(Slot& slot) noexcept;

}  // namespace cb::shm

#endif
