// The window of one member: recent calls, failures and slow calls, as DESIGN 3 ("The window") lays them out.
//
// Purpose: record() one call, sum() what the window holds. Two kinds share one area of 257 words:
//   time   words 1..32: 16 buckets, two rings. A bucket is generation:12 | lap:20 | calls:16 | hits:16; ring one counts
//          failures, ring two slow calls. A newer tag wins; who comes after a rotation drops its count.
//   count  word 0: the head generation:20 | cell:44; words 1..256: cells generation:20 | lap:8 | fill-1:4 | 16 x 2 bits
//          (failure, slow), one outcome one CAS; a full cell is passed by CAS on the head.
// Thread safety: any number of threads and processes; lock-free; a process killed anywhere leaves a valid window.
// Invariants: only what was recorded under the asked generation is summed; nothing is summed twice.
#ifndef CIRCUITBREAKER_SHM_WINDOW_HPP
#define CIRCUITBREAKER_SHM_WINDOW_HPP

#include <cstdint>

#include "core/breaker.hpp"
#include "core/policy.hpp"
#include "layout.hpp"

namespace cb::shm {

/// The window's shape as one non-zero word: who finds another one in the slot must not touch the window.
[[nodiscard]] std::uint64_t shape_of(const core::Window& window) noexcept;

/// Width of a bucket of a time window, ms: a sixteenth of the span, at least 100.
[[nodiscard]] core::Millis bucket_width(const core::Window& window) noexcept;

struct Sample {
    bool failure;
    bool timed;  // false: slow calls are not measured, the slow ring is left alone
    bool slow;
};

/// Records one call of `generation`. False if the window has moved on and the call was dropped.
bool record(Atomic64 (&area)[kWindowWords], const core::Window& window, std::uint32_t generation, core::Millis now,
            Sample sample) noexcept;

/// What the window holds of `generation` at `now`. Of a count window the last N calls (N > 4080: at least 4081).
[[nodiscard]] core::Sums sum(const Atomic64 (&area)[kWindowWords], const core::Window& window, std::uint32_t generation,
                             core::Millis now) noexcept;

}  // namespace cb::shm

#endif
