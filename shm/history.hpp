// The last changes of state of one member.
//
// Purpose: the strip of states on the status page, and the figures of flapping and of outages.
// Thread safety: any number of threads and processes, lock-free. The entry that a killed child was writing is missing;
// nothing is decided by it.
// Invariants: entries come newest last; kHistory of them at most.
#ifndef CIRCUITBREAKER_SHM_HISTORY_HPP
#define CIRCUITBREAKER_SHM_HISTORY_HPP

#include "core/breaker.hpp"
#include "layout.hpp"

namespace cb::shm {

/// In the slot: time:36 | state:3 | level:5 | reason:4 | number:16.
struct HistoryEntry {
    core::Millis at = 0;  // on the segment's clock
    std::uint32_t level = 0;
    core::State to = core::State::closed;
    core::Reason reason = core::Reason::none;
};

/// From one entry's time to another's, which wrap. Of two changes at one instant, the later one may have been noted
/// with the earlier time: then 0.
[[nodiscard]] constexpr core::Millis between(core::Millis from, core::Millis to) noexcept {
    const core::Millis span = (to - from) & core::kTimeMask;
    return span <= core::kTimeMask / 2 ? span : 0;
}

/// `number`: the number of the change (changes.hpp). Who sees the entry sees what its process wrote before.
void note_history(Slot& slot, std::uint64_t number, const HistoryEntry& entry) noexcept;

/// Is the last change, which has that number, among the entries? (0: there was none yet.)
[[nodiscard]] bool is_in_history(const Slot& slot, std::uint64_t number) noexcept;

/// Copies the entries, oldest first, up to the change with that number (the last one); returns how many.
std::uint32_t read_history(const Slot& slot, std::uint64_t last, HistoryEntry (&entries)[kHistory]) noexcept;
std::uint32_t read_history(const Slot& slot, HistoryEntry (&entries)[kHistory]) noexcept;

}  // namespace cb::shm

#endif
