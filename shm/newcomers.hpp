// Sessions that began at a member while it was probed or recovering.
//
// Purpose: such a session stays at the member, whatever share of the older sessions the ramp lets through.
// Thread safety: any number of threads and processes, lock-free.
// Invariants: a session that was noted is known for the rest of the ramp. This is a Bloom filter: now and then another
// session is taken for a noted one (5 % with 1000 noted). That one comes back earlier than it should; it never comes
// back later, nor goes to and fro.
#ifndef CIRCUITBREAKER_SHM_NEWCOMERS_HPP
#define CIRCUITBREAKER_SHM_NEWCOMERS_HPP

#include "layout.hpp"

namespace cb::shm {

/// `hash`: of the session, uniform over 64 bits; the low half is used.
void note_newcomer(Slot& slot, std::uint64_t hash) noexcept;
[[nodiscard]] bool is_newcomer(const Slot& slot, std::uint64_t hash) noexcept;
/// To be called when a recovery begins.
void forget_newcomers(Slot& slot) noexcept;

}  // namespace cb::shm

#endif
