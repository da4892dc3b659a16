// Adaptive probing: how a member's probes have gone so far, in one word (DESIGN 6, `CircuitBreakerProbes N max=N`).
//
//   29..22 samples | 21..6 rate | 5..0 round
//
// Purpose: a moving average over the probes that proved something, and the size of the round that begins next.
// Thread safety: pure functions on values; shm/adaptive.cpp applies them by CAS.
// Invariants: an all-zero word is a member that was never probed; nothing follows from fewer than kRateSamples samples.
#ifndef CIRCUITBREAKER_CORE_PROBE_RATE_HPP
#define CIRCUITBREAKER_CORE_PROBE_RATE_HPP

#include <cstdint>

#include "policy.hpp"
#include "verdict.hpp"

namespace cb::core {

inline constexpr std::uint32_t kRateSamples = 10;
inline constexpr std::uint32_t kWholeRate = 65535;

struct ProbeRate {
    std::uint32_t samples = 0;  // saturates at kRateSamples
    std::uint32_t rate = 0;     // of successes, in 1/65535
    std::uint32_t round = 0;    // the last round begun; 0: none yet

    [[nodiscard]] std::uint64_t bits() const noexcept { return samples << 22U | rate << 6U | round; }
    static ProbeRate of(std::uint64_t bits) noexcept {
        return {static_cast<std::uint32_t>(bits >> 22U & 0xFFU), static_cast<std::uint32_t>(bits >> 6U & 0xFFFFU),
                static_cast<std::uint32_t>(bits & 0x3FU)};
    }
    /// At least 90 percent succeed.
    [[nodiscard]] bool is_good() const noexcept { return samples >= kRateSamples && rate * 10 >= kWholeRate * 9; }
    /// Less than 50 percent succeed.
    [[nodiscard]] bool is_poor() const noexcept { return samples >= kRateSamples && rate * 2 < kWholeRate; }
    friend bool operator==(const ProbeRate&, const ProbeRate&) = default;
};

[[nodiscard]] constexpr bool is_adaptive(const Probes& probes) noexcept {
    return probes.max > probes.round;
}

enum class ProbeSample : std::uint8_t { none, success, failure };

/// What a settled probe says about its member: the neutral ones say nothing.
[[nodiscard]] ProbeSample sample_of(Verdict verdict, bool slow) noexcept;

/// The plain mean of the first kRateSamples, from then on an exponentially weighted one (1/kRateSamples for the
/// newest).
[[nodiscard]] ProbeRate with_sample(ProbeRate before, ProbeSample sample) noexcept;

/// Size of the round that begins now: twice the last one while the rate is good, `probes.round` when it is poor.
[[nodiscard]] std::uint32_t next_round(const ProbeRate& rate, const Probes& probes) noexcept;

}  // namespace cb::core

#endif
