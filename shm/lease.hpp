// Lease words: the right to one of a member's probe slots, for a limited time.
//
//   63..62 state | 61..59 phase | 58..44 sequence | 43..22 pid | 21..0 deadline (64 ms units)
//
// Purpose: packing and the rules of time of one lease word; probes.hpp has the protocol.
// Thread safety: pure functions on values.
// Invariants: each taking of a lease has another sequence number, so an exact CAS can't mistake one for the next.
#ifndef CIRCUITBREAKER_SHM_LEASE_HPP
#define CIRCUITBREAKER_SHM_LEASE_HPP

#include <cstdint>

#include "core/policy.hpp"
#include "core/verdict.hpp"
#include "layout.hpp"

namespace cb::shm {

enum class LeaseState : std::uint8_t { free, reserved, active, settling };

/// How far a probe has come, and from its headers on what its verdict would be.
enum class Phase : std::uint8_t { not_sent, sent, success, failure, fatal, tolerate, ignore };

[[nodiscard]] constexpr Phase provisional(core::Verdict verdict) noexcept {
    return static_cast<Phase>(static_cast<std::uint8_t>(verdict) + static_cast<std::uint8_t>(Phase::success));
}

/// The verdict of a probe whose deadline has passed (DESIGN 3): not sent is neutral, sent is a failure.
[[nodiscard]] constexpr core::Verdict verdict_at_deadline(Phase phase) noexcept {
    if (phase == Phase::not_sent) return core::Verdict::ignore;
    if (phase == Phase::sent) return core::Verdict::failure;
    return static_cast<core::Verdict>(static_cast<std::uint8_t>(phase) - static_cast<std::uint8_t>(Phase::success));
}

struct Lease {
    LeaseState state = LeaseState::free;
    Phase phase = Phase::not_sent;
    std::uint16_t sequence = 0;  // 15 bits
    std::uint32_t pid = 0;       // 22 bits
    std::uint32_t deadline = 0;  // 22 bits, units of kUnit

    static constexpr core::Millis kUnit = 64;
    static constexpr std::uint32_t kDeadlineMask = (1U << 22U) - 1;

    [[nodiscard]] std::uint64_t bits() const noexcept {
        return std::uint64_t{static_cast<std::uint8_t>(state)} << 62U |
               std::uint64_t{static_cast<std::uint8_t>(phase) & 7U} << 59U | std::uint64_t{sequence & 0x7FFFU} << 44U |
               std::uint64_t{pid & kPidMask} << 22U | (deadline & kDeadlineMask);
    }
    static Lease of(std::uint64_t bits) noexcept {
        return {static_cast<LeaseState>(bits >> 62U), static_cast<Phase>((bits >> 59U) & 7U),
                static_cast<std::uint16_t>((bits >> 44U) & 0x7FFFU), static_cast<std::uint32_t>(bits >> 22U) & kPidMask,
                static_cast<std::uint32_t>(bits) & kDeadlineMask};
    }
    /// The deadline `span` after `now`, rounded up. Spans reach 2^21 units (37 hours).
    static std::uint32_t deadline_after(core::Millis now, core::Millis span) noexcept {
        return static_cast<std::uint32_t>((now + span + kUnit - 1) / kUnit) & kDeadlineMask;
    }
    /// Brings the deadline forward to `due`, rounded up, if it is later than that.
    void shorten(core::Millis due) noexcept {
        const std::uint32_t earlier = deadline_after(due, 0);
        if (((deadline - earlier) & kDeadlineMask) < (1U << 21U)) deadline = earlier;
    }
    [[nodiscard]] bool is_past(core::Millis now) const noexcept {
        const std::uint32_t since = (static_cast<std::uint32_t>(now / kUnit) - deadline) & kDeadlineMask;
        return since < (1U << 21U);
    }
};

}  // namespace cb::shm

#endif
