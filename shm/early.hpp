// Early probes: before the open time is over, for a request that finds no other member.
//
// Purpose: what the control word has no room for. Slot.opened says since when a breaker has been open, so that `min`
// can be kept. Slot.interrupted keeps the end of the open time during an early round, for the case that it fails.
// How: a process that begins an early round writes Slot.interrupted before it changes the control word. The value
// carries the generation that the round will have. The process has read Slot.interrupted before the control word, and
// writes it by CAS: if it was held up in between, it can't overwrite the value of a later round.
// Thread safety: any number of threads and processes, lock-free (checked by tests/model/early.pml).
// Invariants: during an early round Slot.interrupted holds the end that the control word had. Slot.opened is never
// earlier than the moment at which the breaker opened; a process that finds it of another generation writes the present
// time.
#ifndef CIRCUITBREAKER_SHM_EARLY_HPP
#define CIRCUITBREAKER_SHM_EARLY_HPP

#include "core/breaker.hpp"
#include "layout.hpp"

namespace cb::shm {

/// A control word, and what Slot.interrupted held just before.
struct Seen {
    std::uint64_t interrupted;
    std::uint64_t word;
};
[[nodiscard]] Seen look(const Slot& slot) noexcept;

/// Time until the breaker has been open for policy.open_time.min. `word` must be open.
[[nodiscard]] core::Millis time_to_minimum(Slot& slot, std::uint64_t word, const core::Policy& policy,
                                           core::Millis now) noexcept;

/// May a request that finds no other member be a probe, as far as state and time go? Half-open: yes. Open: once it has
/// been open for policy.open_time.min.
[[nodiscard]] bool is_early_allowed(Slot& slot, std::uint64_t word, const core::Policy& policy,
                                    core::Millis now) noexcept;

/// The breaker has just opened: `word`.
void note_opened(Slot& slot, std::uint64_t word, core::Millis now) noexcept;

/// Before the CAS from `seen.word` to `next`: if that is an early round's, keeps the end of the open time. False:
/// `seen` is out of date.
[[nodiscard]] bool keep_end(Slot& slot, const Seen& seen, std::uint64_t next) noexcept;

/// When the open time ends that the present early round began in: ms since segment start, modulo 2^36. The value is
/// right if the control word is still the same afterwards.
[[nodiscard]] core::Millis kept_end(const Slot& slot) noexcept;

/// Did the last round of this open breaker begin early?
[[nodiscard]] bool was_probed_early(std::uint64_t interrupted, std::uint64_t word) noexcept;

}  // namespace cb::shm

#endif
