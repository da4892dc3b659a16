#include "notice.hpp"

namespace cb::shm {

void announce_probe(Slot& slot, const core::Policy& policy, const Process& process, core::Millis lookahead) noexcept {
    if (policy.open_time.notice == 0) return;
    const std::uint64_t bits = slot.word.load(std::memory_order_acquire);
    if (core::state_of(bits) != core::State::open) return;
    const core::Millis left = core::open_remaining(core::unpack(bits), process.clock.now());
    if (left > policy.open_time.notice + lookahead) return;
    const std::uint64_t mine = std::uint64_t{core::generation_of(bits)} + 1;
    // Relaxed: the exchange alone decides who tells.
    std::uint64_t noticed = slot.noticed.load(std::memory_order_relaxed);
    if (noticed == mine || !slot.noticed.compare_exchange_strong(noticed, mine, std::memory_order_relaxed)) return;
    if (process.observer != nullptr) process.observer->on_probe_soon(slot, left);
}

}  // namespace cb::shm
