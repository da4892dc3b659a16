// One outage in figures, and in words if it was longer than it had to be.
//
// Purpose: an outage is the time from the first opening to closed. The member is known to be well from its first proof
// on (a passing health check, or a successful probe) if no probe fails afterwards. What comes after that is our own
// waiting. When it is most of the outage, a setting is too cautious.
// Thread safety: values.
#ifndef CIRCUITBREAKER_CORE_OUTAGE_HPP
#define CIRCUITBREAKER_CORE_OUTAGE_HPP

#include "policy.hpp"

namespace cb::core {

/// The state in which most of the waiting was done.
enum class WaitedIn : std::uint8_t { none, open, half_open, recovering };

struct Outage {
    Millis lasted = 0;
    Millis waited = 0;  // after the proof; 0: there was none
    WaitedIn most_in = WaitedIn::none;
};

inline constexpr Millis kLeastWaiting = 5 * kMillisPerSecond;  // shorter ones are nobody's concern

/// Was most of it our own waiting?
[[nodiscard]] constexpr bool is_too_cautious(const Outage& outage) noexcept {
    return outage.waited >= kLeastWaiting && outage.waited * 2 > outage.lasted;
}

/// An outage in one word, so that pages can show it: most_in:2 | waited:31 | lasted:31, ms (at most 24 days each).
[[nodiscard]] std::uint64_t pack(const Outage& outage) noexcept;
[[nodiscard]] Outage unpack_outage(std::uint64_t bits) noexcept;

/// "of the 62 s that it was out, 55 s had passed after it was known to be well, most of them ...: lower ..."
struct OutageText {
    char text[320] = "";

    OutageText(const Outage& outage, const Policy& policy) noexcept;
};

}  // namespace cb::core

#endif
