// Lease words: the right to one of a member's probe slots, for a limited time.
//
//   63..62 state | 61..59 phase | 58..44 sequence | 43..22 pid | 21..0 deadline (64 ms units)
//
//   free      nobody's
//   reserved  just being taken by `pid`
//   active    a probe of `pid`, until the deadline. In the phase `overdue` the deadline has passed and the outcome is
//             applied, but the call may still be at the member: the lease is free when `pid` gives it back, or at a
//             second deadline.
//   settling  `pid` is applying the outcome. The deadline's field then holds the pid of the holder who keeps the lease
//             afterwards, as overdue; 0: it will be free.
//
// Purpose: packing, and the rules about time, of one lease word; probes.cpp has the protocol.
// Invariants: each time a lease is taken its sequence number changes, so that an exact CAS can't mistake one probe for
// the next.
#ifndef CIRCUITBREAKER_SHM_LEASE_HPP
#define CIRCUITBREAKER_SHM_LEASE_HPP

#include <cstdint>

#include "core/policy.hpp"
#include "core/verdict.hpp"
#include "layout.hpp"

namespace cb::shm {

enum class LeaseState : std::uint8_t { free, reserved, active, settling };

/// How far a probe has come; once the headers of its answer are here, the verdict by them. `overdue`: the lease has
/// ended, and the call has not.
enum class Phase : std::uint8_t { not_sent, sent, success, failure, fatal, tolerate, ignore, overdue };

[[nodiscard]] constexpr Phase provisional(core::Verdict verdict) noexcept {
    return static_cast<Phase>(static_cast<std::uint8_t>(verdict) + static_cast<std::uint8_t>(Phase::success));
}

/// The member has not answered yet.
[[nodiscard]] constexpr bool is_unanswered(Phase phase) noexcept {
    return phase == Phase::not_sent || phase == Phase::sent;
}

/// The verdict on a probe whose deadline has passed: not sent is neutral, sent and unanswered is a failure, answered is
/// judged by its headers.
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
    std::uint32_t deadline = 0;  // 22 bits, units of kUnit; settling: the holder's pid

    static constexpr core::Millis kUnit = 64;
    static constexpr core::Millis kHorizon = kUnit << 21U;  // 37 hours: beyond it is_past() is wrong
    static constexpr std::uint32_t kDeadlineMask = (1U << 22U) - 1;
    static_assert(kDeadlineMask >= kPidMask, "the field has room for a holder's pid");

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
    [[nodiscard]] bool is_overdue() const noexcept { return state == LeaseState::active && phase == Phase::overdue; }
    /// Settling: who keeps it afterwards, as overdue; 0: nobody.
    [[nodiscard]] std::uint32_t holder() const noexcept { return state == LeaseState::settling ? deadline : 0; }
    /// The probe's call may be at the member: it was admitted, and its end has not been seen.
    [[nodiscard]] bool is_in_flight() const noexcept { return state == LeaseState::active || holder() != 0; }

    /// Its next states, with the same sequence number.
    [[nodiscard]] Lease freed() const noexcept { return {LeaseState::free, Phase::not_sent, sequence, 0, 0}; }
    [[nodiscard]] Lease settled_by(std::uint32_t settler, std::uint32_t holder_left) const noexcept {
        return {LeaseState::settling, phase, sequence, settler, holder_left};
    }
    [[nodiscard]] Lease overdue_until(std::uint32_t second_deadline) const noexcept {
        return {LeaseState::active, Phase::overdue, sequence, holder(), second_deadline};
    }

    [[nodiscard]] bool is_past(core::Millis now) const noexcept {
        const std::uint32_t since = (static_cast<std::uint32_t>(now / kUnit) - deadline) & kDeadlineMask;
        return since < (1U << 21U);
    }
};

}  // namespace cb::shm

#endif
