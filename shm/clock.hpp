// The segment's clock: milliseconds of CLOCK_MONOTONIC since the segment was created.
//
// Purpose: every decision uses this clock, so that a step of the wall clock changes nothing.
// Thread safety: any thread of any process.
#ifndef CIRCUITBREAKER_SHM_CLOCK_HPP
#define CIRCUITBREAKER_SHM_CLOCK_HPP

#include <time.h>

#include <atomic>
#include <cstdint>

#include "core/policy.hpp"

namespace cb::shm {

[[nodiscard]] inline std::uint64_t monotonic_ns() noexcept {
    timespec at{};
    clock_gettime(CLOCK_MONOTONIC, &at);
    return static_cast<std::uint64_t>(at.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(at.tv_nsec);
}

struct Clock {
    std::uint64_t start_ns = 0;
    const std::atomic<std::uint64_t>* manual = nullptr;  // tests: the time, in place of the real clock

    [[nodiscard]] core::Millis now() const noexcept {
        if (manual != nullptr) return manual->load(std::memory_order_seq_cst);
        return (monotonic_ns() - start_ns) / 1'000'000U;
    }
};

/// Uniform 32 bits for jitter: a hash of the nanosecond clock and an address, so no state is shared.
[[nodiscard]] inline std::uint32_t jitter_draw(const void* salt) noexcept {
    std::uint64_t x = monotonic_ns() ^ (reinterpret_cast<std::uintptr_t>(salt) << 20U);
    x += 0x9E3779B97F4A7C15U;  // splitmix64 (Steele, Lea, Flood)
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
    return static_cast<std::uint32_t>((x ^ (x >> 31U)) >> 32U);
}

}  // namespace cb::shm

#endif
