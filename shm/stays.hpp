// How long a member has been in each of its states.
//
// Purpose: totals that never fall between two reads. A change of state moves the stay that it ends from "so far" to the
// totals, in several steps; a reader in between would miss it, or count it twice.
// Thread safety: read_stays() from any thread of any process, lock-free; it writes nothing.
#ifndef CIRCUITBREAKER_SHM_STAYS_HPP
#define CIRCUITBREAKER_SHM_STAYS_HPP

#include "changes.hpp"
#include "clock.hpp"

namespace cb::shm {

struct Stays {
    NumberedWord at;
    core::Millis since = 0;  // start of the present state
    core::Millis now = 0;
    std::uint64_t ms[core::kStates] = {};  // the present stay included
    bool is_settled = false;               // false: a change was not noted in full, for as long as the reader waited
};

/// Reads again while a change is being noted. Not for ever: a killed child may have left one half noted, and then it is
/// read as it stands until the next change. So this may take 20 ms; not for requests.
[[nodiscard]] Stays read_stays(const Slot& slot, const Clock& clock) noexcept;

}  // namespace cb::shm

#endif
