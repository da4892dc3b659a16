// Calls on kept connections, and how many of them ran into the race for one (`stale`), in one word.
//
//   62..31 began, 64 ms | 30 said | 29..15 calls | 14..0 stale
//
// Purpose: tells when `stale` is no rare race any more but the rule, once until that is over. Counting begins with a
// stale call and lasts for a window at a time; while nothing is stale nothing is counted.
// Thread safety: pure functions on values; shm/kept.cpp applies them by CAS.
// Invariants: an all-zero word is a member whose connections are well.
#ifndef CIRCUITBREAKER_CORE_KEPT_CALLS_HPP
#define CIRCUITBREAKER_CORE_KEPT_CALLS_HPP

#include <cstdint>

#include "policy.hpp"

namespace cb::core {

/// Fewer calls on kept connections show nothing.
inline constexpr std::uint32_t kLeastKeptCalls = 10;

struct KeptCalls {
    std::uint32_t began = 0;  // of the present window, in 64 ms
    bool is_said = false;     // that most were stale, and they have not been well since
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

/// One more call on a kept connection. `is_said` is set by the one after which it is to be said: more than half of the
/// window's were stale. It is cleared after a window in which no more than a tenth were.
[[nodiscard]] KeptCalls with_kept_call(KeptCalls before, bool is_stale, const Window& window, Millis now) noexcept;

}  // namespace cb::core

#endif
