#include "probe_end.hpp"

#include "core/probe_rate.hpp"

namespace cb::shm {

const char* name(ProbeResult result) noexcept {
    constexpr const char* kNames[kProbeResults] = {"success", "failure", "neutral", "lost"};
    return kNames[static_cast<std::size_t>(result)];
}

ProbeResult result_of(const core::Event& event) noexcept {
    switch (core::sample_of(event.verdict, event.slow)) {
        case core::ProbeSample::success:
            return ProbeResult::success;
        case core::ProbeSample::failure:
            return ProbeResult::failure;
        default:
            return ProbeResult::neutral;
    }
}

Round round_of(const core::Word& before, const core::Event& event) noexcept {
    Round round{before.round, before.successes, before.failures, before.neutral};
    if (event.kind != core::EventKind::settle_probe) return round;
    switch (result_of(event)) {
        case ProbeResult::success:
            ++round.succeeded;
            break;
        case ProbeResult::failure:
            ++round.failed;
            break;
        default:
            if (!event.by_client) ++round.neutral;
    }
    return round;
}

}  // namespace cb::shm
