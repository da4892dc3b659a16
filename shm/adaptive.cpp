#include "adaptive.hpp"

#include "core/probe_rate.hpp"
#include "step.hpp"

namespace cb::shm {
namespace {

using core::EventKind;
using core::ProbeRate;

constexpr auto kRelaxed = std::memory_order_relaxed;  // the word stands for itself; nothing is read through it

template <class Change>
void change(Atomic64& word, Change change) noexcept {
    std::uint64_t seen = word.load(kRelaxed);
    std::uint64_t next = 0;
    do {
        ProbeRate rate = ProbeRate::of(seen);
        change(rate);
        next = rate.bits();
        if (next == seen) return;
        step("adaptive.cas");
    } while (!word.compare_exchange_weak(seen, next, kRelaxed));
}

}  // namespace

void ask_earlier_probes(const Slot& slot, core::Event& event, const core::Policy& policy) noexcept {
    if (!core::is_adaptive(policy.probes)) return;
    ProbeRate rate = ProbeRate::of(slot.probe_rate.load(kRelaxed));
    if (event.kind == EventKind::admit_probe) {
        event.round = static_cast<std::uint8_t>(core::next_round(rate, policy.probes));
    } else if (event.kind == EventKind::settle_probe) {
        event.longer = core::with_sample(rate, core::sample_of(event.verdict, event.slow)).is_poor();
    } else if (event.kind == EventKind::result) {
        event.longer = rate.is_poor();
    }
}

void note_probe(Slot& slot, const core::Event& event, const core::Step& step, const core::Policy& policy) noexcept {
    if (event.kind == EventKind::reset) slot.probe_rate.store(0, kRelaxed);
    if (!core::is_adaptive(policy.probes)) return;
    if (event.kind == EventKind::settle_probe) {
        const core::ProbeSample sample = core::sample_of(event.verdict, event.slow);
        change(slot.probe_rate, [&](ProbeRate& rate) noexcept { rate = core::with_sample(rate, sample); });
    } else if (event.kind == EventKind::admit_probe &&
               (step.reason == core::Reason::open_time_over || step.reason == core::Reason::no_other_member)) {
        const std::uint32_t round = core::unpack(step.word).round;
        change(slot.probe_rate, [&](ProbeRate& rate) noexcept { rate.round = round; });
    }
}

}  // namespace cb::shm
