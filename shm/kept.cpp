#include "kept.hpp"

#include "core/kept_calls.hpp"

namespace cb::shm {

void note_kept_call(Slot& slot, bool is_stale, const core::Policy& policy, const Process& process) noexcept {
    constexpr auto kRelaxed = std::memory_order_relaxed;  // the word stands for itself; nothing is read through it
    std::uint64_t seen = slot.kept_calls.load(kRelaxed);
    if (seen == 0 && !is_stale) return;  // as nearly always
    core::KeptCalls before;
    core::KeptCalls after;
    do {
        before = core::KeptCalls::of(seen);
        after = core::with_kept_call(before, is_stale, policy.window, process.clock.now());
    } while (!slot.kept_calls.compare_exchange_weak(seen, after.bits(), kRelaxed));
    const bool is_news = after.is_said && !before.is_said;
    if (is_news && process.observer != nullptr) process.observer->on_stale(slot, after);
}

}  // namespace cb::shm
