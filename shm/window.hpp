// The window of one member: its recent calls, failures and slow calls.
//
// Purpose: record() adds one call, sum() adds up what the window holds. There are two kinds, in one area of 257 words:
//   time   words 1..32: two rings of 16 buckets. A bucket is generation:12 | lap:20 | calls:16 | hits:16; the first
//          ring's hits are failures, the second's slow calls. A bucket with a newer tag (generation and lap) replaces
//          an older one; a call that comes after that is dropped.
//   count  word 0: the head, generation:20 | cell:44. Words 1..256: cells, generation:20 | lap:8 | fill-1:4 | 16 x 2
//          bits (failure, slow). One call is one CAS; a full cell is passed by a CAS on the head.
// Thread safety: any number of threads and processes, lock-free; a process killed anywhere leaves a valid window.
// Invariants: only what was recorded under the given generation is summed, and nothing is summed twice.
#ifndef CIRCUITBREAKER_SHM_WINDOW_HPP
#define CIRCUITBREAKER_SHM_WINDOW_HPP

#include <cstdint>

#include "core/breaker.hpp"
#include "core/policy.hpp"
#include "layout.hpp"

namespace cb::shm {

/// The window's shape as one non-zero word. A process that finds another shape in the slot must not touch the window.
[[nodiscard]] std::uint64_t shape_of(const core::Window& window) noexcept;

/// Width of a bucket of a time window, ms: a sixteenth of the span, at least 100.
[[nodiscard]] core::Millis bucket_width(const core::Window& window) noexcept;

struct Sample {
    bool failure;
    bool timed;  // false: no time was measured; the slow ring stays as it is
    bool slow;
};

/// Records one call of `generation`. False: the window has moved on, and the call was dropped.
bool record(Atomic64 (&area)[kWindowWords], const core::Window& window, std::uint32_t generation, core::Millis now,
            Sample sample) noexcept;

/// What the window holds of `generation` at `now`. A count window gives the last N calls (N > 4080: at least 4081).
[[nodiscard]] core::Sums sum(const Atomic64 (&area)[kWindowWords], const core::Window& window, std::uint32_t generation,
                             core::Millis now) noexcept;

}  // namespace cb::shm

#endif
