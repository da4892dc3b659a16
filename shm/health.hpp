// Checks of mod_proxy_hcheck while a breaker is open: has one passed that began after it opened?
//
// How: whoever looks first notes when the last check had ended. A check that ends at another time began later, unless
// one was under way at the first look: then the next one counts. In Slot.health: generation of the open state:20 | one
// has passed:1 | failures that mod_proxy_hcheck had counted:8 | end of the last check:32, ms since 1970; 0: one was
// under way. Thread safety: any number of threads and processes, lock-free. Health checks and requests know no common
// order, so nothing here is stronger than one word by itself. Invariants: what has passed stays so until the breaker's
// generation changes.
#ifndef CIRCUITBREAKER_SHM_HEALTH_HPP
#define CIRCUITBREAKER_SHM_HEALTH_HPP

#include "core/word.hpp"
#include "layout.hpp"

namespace cb::shm {

/// What mod_proxy_hcheck has written of a member.
struct LastCheck {
    core::Millis ended = 0;      // ms since 1970; 0: one is under way
    std::uint32_t failures = 0;  // that mod_proxy_hcheck has counted; a check that adds one has not passed
    bool has_passed = false;
};

/// Notes the check for the open breaker whose control word is `word`. True if by now one has passed that began after
/// it opened.
bool note_check(Slot& slot, std::uint64_t word, const LastCheck& check, core::Millis now) noexcept;

/// Time since a new end of a check was seen, or since the first look; 0 before that. On the segment's clock, so that it
/// is right whatever is done to the wall clock.
[[nodiscard]] core::Millis time_since_check(const Slot& slot, std::uint64_t word, core::Millis now) noexcept;

/// The end of a check may be noted next without a check: what ends next does not count.
void doubt_checks(Slot& slot) noexcept;

/// The same as note_check(), without a look at the last check.
[[nodiscard]] bool has_passed_check(const Slot& slot, std::uint64_t word) noexcept;

}  // namespace cb::shm

#endif
