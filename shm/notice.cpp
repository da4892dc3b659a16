#include "notice.hpp"

#include "changes.hpp"

namespace cb::shm {

void announce_probe(Slot& slot, const core::Policy& policy, const Process& process, core::Millis lookahead) noexcept {
    if (policy.open_time.notice == 0) return;
    const NumberedWord opened = numbered_word(slot);
    if (core::state_of(opened.word) != core::State::open) return;
    const core::Millis left = core::open_remaining(core::unpack(opened.word), process.clock.now());
    if (left > policy.open_time.notice + lookahead) return;
    const std::uint64_t mine = opened.number;  // an early round that fails leaves it as it is
    // Relaxed: the exchange alone decides who tells.
    std::uint64_t noticed = slot.noticed.load(std::memory_order_relaxed);
    if (noticed == mine || !slot.noticed.compare_exchange_strong(noticed, mine, std::memory_order_relaxed)) return;
    if (process.observer != nullptr) process.observer->on_probe_soon(slot, left);
}

}  // namespace cb::shm
