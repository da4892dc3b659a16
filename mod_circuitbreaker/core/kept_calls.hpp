// Calls on kept backend connections, and how many of them found the connection closed by the member (`stale`).
//
//   62..31 began, 64 ms | 30 said | 29..15 calls | 14..0 stale
//
// Purpose: tells when `stale` is no longer a rare race but the rule. That is reported once until it is over. Counting
// begins with a stale call and lasts for one window; while no call is stale, nothing is counted. shm/kept.cpp applies
// these functions by CAS.
// Invariants: an all-zero word has nothing counted and nothing reported.
#ifndef CIRCUITBREAKER_CORE_KEPT_CALLS_HPP
#define CIRCUITBREAKER_CORE_KEPT_CALLS_HPP

#include <cstdint>

#include "policy.hpp"

namespace cb::core {

/// Fewer calls on kept connections show nothing.
inline constexpr std::uint32_t kLeastKeptCalls = 10;

struct KeptCalls {
    std::uint32_t began = 0;  // when the present window began, in units of 64 ms
    bool is_said = false;     // it was reported that most are stale, and that is not over
    std::uint32_t calls = 0;
    std::uint32_t stale = 0;

    [[nodiscard]] std::uint64_t bits() const noexcept {
        return std::uint64_t{began} << 31U | std::uint64_t{is_said} << 30U | std::uint64_t{calls} << 15U | stale;
    }
    static KeptCalls of(std::uint64_t bits) noexcept {
        return {static_cast<std::uint32_t>(bits >> 31U), (bits >> 30U & 1U) != 0,
                static_cast<std::uint32_t>(bits >> 15U & 0x7FFFU), static_cast<std::uint32_t>(bits & 0x7FFFU)};
    }
    friend bool operator==(const KeptCalls&, const KeptCalls&) = default;
};

/// The word after one more call on a kept connection. `is_said` becomes true when more than half of the window's calls
/// are stale, which the caller then reports. It becomes false after a window in which no more than a tenth were.
[[nodiscard]] KeptCalls with_kept_call(KeptCalls before, bool is_stale, const Window& window, Millis now) noexcept;

}  // namespace cb::core

#endif
