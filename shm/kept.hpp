// Stale calls on kept connections: counted while there are some, reported once by one process.
//
// Purpose: applies core/kept_calls.hpp to the member's word.
// Thread safety: any number of threads and processes, lock-free. The process whose CAS sets `is_said` makes the report;
// if it is killed before that, there is none.
#ifndef CIRCUITBREAKER_SHM_KEPT_HPP
#define CIRCUITBREAKER_SHM_KEPT_HPP

#include "member.hpp"

namespace cb::shm {

/// A call on a connection that had served another request has ended.
void note_kept_call(Slot& slot, bool is_stale, const core::Policy& policy, const Process& process) noexcept;

}  // namespace cb::shm

#endif
