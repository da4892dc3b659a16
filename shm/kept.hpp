// Calls on kept connections: counted while some of them are stale, and reported once by one process.
//
// Purpose: core/kept_calls.hpp, applied to the member's word.
// Thread safety: any number of threads and processes, lock-free. Who makes the word say so reports it; a child that is
// killed in between takes the report with it.
#ifndef CIRCUITBREAKER_SHM_KEPT_HPP
#define CIRCUITBREAKER_SHM_KEPT_HPP

#include "member.hpp"

namespace cb::shm {

/// A call on a connection that had served another request has ended.
void note_kept_call(Slot& slot, bool is_stale, const core::Policy& policy, const Process& process) noexcept;

}  // namespace cb::shm

#endif
