// Probes before the open time is over, where a request finds no other member (DESIGN 13).
//
// Purpose: what the control word has no room for. Slot.opened says since when a breaker has been open, so that `min`
// can be kept; Slot.interrupted keeps the end of the open time while an early round goes on, so that it can go on as
// before. How: who makes an open breaker half-open early writes the end to Slot.interrupted first, with the generation
// that is to come. He has read Slot.interrupted before the control word and writes by CAS: so one who was held up can't
// overwrite what a later round has written.
// Thread safety: any number of threads and processes, lock-free (checked by tests/model/early.pml).
// Invariants: as long as an early round goes on, Slot.interrupted holds the end that the control word had. Slot.opened
// is never earlier than the breaker opened; who finds it of another generation writes the present time.
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

/// How long until it has been open for policy.open_time.min? `word` is open.
[[nodiscard]] core::Millis time_to_minimum(Slot& slot, std::uint64_t word, const core::Policy& policy,
                                           core::Millis now) noexcept;

/// Has it been open for so long? False for any other state.
[[nodiscard]] bool has_been_open(Slot& slot, std::uint64_t word, const core::Policy& policy, core::Millis now) noexcept;

/// May a request that finds no other member be a probe, as far as time goes?
[[nodiscard]] bool is_early_allowed(Slot& slot, std::uint64_t word, const core::Policy& policy,
                                    core::Millis now) noexcept;

/// The breaker has just opened: `word`.
void note_opened(Slot& slot, std::uint64_t word, core::Millis now) noexcept;

/// Before the CAS from `seen.word` to `next`: if that is an early round's, keeps the end of the open time. False:
/// `seen` is out of date.
[[nodiscard]] bool keep_end(Slot& slot, const Seen& seen, std::uint64_t next) noexcept;

/// The end of the open time that the early round `word` began in, ms since segment start, modulo 2^36. Right if the
/// control word is still `word` afterwards.
[[nodiscard]] core::Millis kept_end(const Slot& slot) noexcept;

/// Has the last round of this open breaker begun early? (It failed.)
[[nodiscard]] bool was_probed_early(std::uint64_t interrupted, std::uint64_t word) noexcept;

}  // namespace cb::shm

#endif
