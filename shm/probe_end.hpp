// How a probe ended, and where its round stands then.
//
// Purpose: each probe is told of exactly once: by the process that has ended its lease (probes.cpp).
// Thread safety: plain values.
#ifndef CIRCUITBREAKER_SHM_PROBE_END_HPP
#define CIRCUITBREAKER_SHM_PROBE_END_HPP

#include <cstdint>

#include "core/breaker.hpp"
#include "layout.hpp"

namespace cb::shm {

/// A round of probes, and how many of them have ended.
struct Round {
    std::uint32_t size = 0;  // 0: there is none
    std::uint32_t succeeded = 0;
    std::uint32_t failed = 0;
    std::uint32_t neutral = 0;
};

/// Who ended a probe: its own call, in time; somebody (perhaps the call) after the deadline; the parent, as the
/// holder's process had died.
enum class EndedBy : std::uint8_t { call, deadline, death };

struct ProbeEnd {
    bool is_probe = true;  // false: a dead process has left a lease without a probe
    EndedBy by = EndedBy::call;
    core::Outcome outcome = core::Outcome::none;  // none: not known
    core::Verdict verdict = core::Verdict::ignore;
    bool slow = false;
    ProbeResult result = ProbeResult::neutral;
    std::uint8_t method = 0;  // like the latency only known where the call itself has ended the probe
    core::Millis latency = 0;
    Round round;  // with this probe; size 0: its round was over, so it counted nowhere

    /// Are outcome, method and latency those of its call? Not if no call was made.
    [[nodiscard]] bool is_of_its_call() const noexcept { return outcome != core::Outcome::none; }
};

/// As events and metrics spell it.
[[nodiscard]] const char* name(ProbeResult result) noexcept;

/// What the end of a probe proves.
[[nodiscard]] ProbeResult result_of(const core::Event& event) noexcept;

/// The round of a word, with the probe that `event` ends in it. (The client's doing is not counted.)
[[nodiscard]] Round round_of(const core::Word& before, const core::Event& event) noexcept;

}  // namespace cb::shm

#endif
