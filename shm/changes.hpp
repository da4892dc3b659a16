// The number of a member's changes: 1, 2, 3... in the order in which they happened.
//
// Purpose: events are numbered by it. Each change of state has a number, and each reset of a closed breaker. The
// control word's generation can't serve for that: the end of a ramp keeps it, and a new window shape advances it.
// How: Slot.changes holds the number of one change, and the state and generation that this change led to. No process
// changes the control word before the last change stands in Slot.changes. So Slot.changes is at most one change
// behind, and the process whose CAS of the control word succeeds knows its number: the next one. Whoever finds
// Slot.changes behind brings it up to date.
// Thread safety: any number of threads and processes, lock-free (checked by tests/model/changes.pml).
// Invariants: numbers begin with 1 and are consecutive. A process that is killed after its CAS has used up its number;
// that number is missing among the reports.
#ifndef CIRCUITBREAKER_SHM_CHANGES_HPP
#define CIRCUITBREAKER_SHM_CHANGES_HPP

#include "core/breaker.hpp"
#include "layout.hpp"

namespace cb::shm {

/// A control word, and the number of the last change that led to it (0: none yet).
struct NumberedWord {
    std::uint64_t word;
    std::uint64_t number;
};
[[nodiscard]] NumberedWord numbered_word(const Slot& slot) noexcept;

/// Do the two words differ in state or generation? Then a CAS from one to the other needs the two calls below.
[[nodiscard]] constexpr bool is_another(std::uint64_t before, std::uint64_t after) noexcept {
    return core::state_of(before) != core::state_of(after) || core::generation_of(before) != core::generation_of(after);
}

/// Before the CAS from `seen`: makes sure that the change that led to `seen` has its number, and returns it in
/// `number`. False: the control word has changed meanwhile.
[[nodiscard]] bool settle_number(Slot& slot, std::uint64_t seen, std::uint64_t& number) noexcept;

/// After the CAS from `seen` (`number`: from settle_number()) to `word`. Returns the number of what is now the last
/// change.
std::uint64_t take_number(Slot& slot, std::uint64_t seen, std::uint64_t number, std::uint64_t word) noexcept;

/// Number 0, for a slot that is given to another member and begins with this control word. Nobody else uses it yet.
void renew_numbers(Slot& slot, std::uint64_t word) noexcept;

}  // namespace cb::shm

#endif
