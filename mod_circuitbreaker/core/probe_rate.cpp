#include "probe_rate.hpp"

#include <algorithm>

namespace cb::core {

ProbeSample sample_of(Verdict verdict, bool slow) noexcept {
    if (slow || verdict == Verdict::failure || verdict == Verdict::fatal) return ProbeSample::failure;
    return verdict == Verdict::success ? ProbeSample::success : ProbeSample::none;
}

ProbeRate with_sample(ProbeRate before, ProbeSample sample) noexcept {
    if (sample == ProbeSample::none) return before;
    ProbeRate after = before;
    after.samples = std::min(before.samples + 1, kRateSamples);
    // Rounded up both ways, so that one failure after any number of successes leaves 90 percent.
    if (sample == ProbeSample::success) {
        after.rate += (kWholeRate - before.rate + after.samples - 1) / after.samples;
    } else {
        after.rate -= before.rate / after.samples;
    }
    return after;
}

std::uint32_t next_round(const ProbeRate& rate, const Probes& probes) noexcept {
    if (!is_adaptive(probes)) return probes.round;
    const std::uint32_t last = std::clamp(rate.round, probes.round, probes.max);
    if (rate.is_good()) return std::min(last * 2, probes.max);
    return rate.is_poor() ? probes.round : last;
}

}  // namespace cb::core
