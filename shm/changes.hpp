// The number of a member's changes: one for each change of state and for each reset of a closed breaker, in the order
// in which they happened.
//
// Purpose: what an event is numbered by. The control word's generation will not do: the end of a ramp keeps it, and a
// window of another shape takes one.
// How: Slot.changes says of one change (by the state and the generation that it led to) which number it has. Nobody
// changes the control word before the change that led to it stands there. So Slot.changes is one change behind at most,
// and who wins the CAS of the control word knows his number: the next one. Whoever finds it behind brings it up.
// Thread safety: any number of threads and processes, lock-free (checked by tests/model/changes.pml).
// Invariants: numbers begin with 1 and are consecutive. A process that is killed after its CAS has taken its number all
// the same: the one that is missing among the reports.
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

/// Is `after` of another state or another generation than `before`? Then a CAS from the one to the other needs the two
/// calls below.
[[nodiscard]] constexpr bool is_another(std::uint64_t before, std::uint64_t after) noexcept {
    return core::state_of(before) != core::state_of(after) || core::generation_of(before) != core::generation_of(after);
}

/// Before the CAS from `seen`: sees to it that the change that led to `seen` has its number, and returns that in
/// `number`. False: the control word is another one by now.
[[nodiscard]] bool settle_number(Slot& slot, std::uint64_t seen, std::uint64_t& number) noexcept;

/// After the CAS from `seen` (whose number settle_number() has given) to `word`: the number of the last change now.
std::uint64_t take_number(Slot& slot, std::uint64_t seen, std::uint64_t number, std::uint64_t word) noexcept;

/// Number 0 for a slot's next life, which begins with this control word. Nobody else uses the slot yet.
void renew_numbers(Slot& slot, std::uint64_t word) noexcept;

}  // namespace cb::shm

#endif
