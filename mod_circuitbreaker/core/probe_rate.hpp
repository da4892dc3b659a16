// Adaptive probing (`CircuitBreakerProbes N max=N`): how a member's probes have gone so far, in one word.
//
//   29..22 samples | 21..6 rate | 5..0 round
//
// Purpose: a moving average over the probes that proved something, and the size of the next round. shm/adaptive.cpp
// applies these functions by CAS.
// Invariants: an all-zero word is a member that was never probed; fewer than kRateSamples samples have no effect.
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

/// The sample that a settled probe gives. A neutral one gives none.
[[nodiscard]] ProbeSample sample_of(Verdict verdict, bool slow) noexcept;

/// The plain mean of the first kRateSamples samples, then an exponentially weighted one (the newest counts for
/// 1/kRateSamples).
[[nodiscard]] ProbeRate with_sample(ProbeRate before, ProbeSample sample) noexcept;

/// Size of the round that begins now: twice the last one if the rate is good, `probes.round` if it is poor, else the
/// same as the last one.
[[nodiscard]] std::uint32_t next_round(const ProbeRate& rate, const Probes& probes) noexcept;

}  // namespace cb::core

#endif
