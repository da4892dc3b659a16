// CircuitBreakerMaxOpen: an opening that would leave too many members of a balancer open is not carried out (checked by
// tests/model/max_open.pml).
#include "control.hpp"
#include "step.hpp"

namespace cb::shm {
namespace {

bool counts_as_open(const Slot& slot) noexcept {
    // The intent is read before the state: whoever has released it has changed the state first, so one of the two
    // shows.
    if (slot.intent.load(std::memory_order_seq_cst) != 0) return true;
    step("max_open.between");
    const core::State state = core::state_of(slot.word.load(std::memory_order_seq_cst));
    return state == core::State::open || state == core::State::half_open || state == core::State::forced_open;
}

bool is_within_limit(const Slot& slot, const core::Policy& policy, Peers peers) noexcept {
    std::uint32_t open = 0;
    bool is_among = false;
    for (std::uint32_t i = 0; i < peers.count; ++i) {
        if (peers.slots[i] == &slot) is_among = true;
        if (peers.slots[i] != nullptr && counts_as_open(*peers.slots[i])) ++open;
    }
    if (!is_among) return true;  // mod_proxy could not use it anyway
    return std::uint64_t{open} * 100 <= std::uint64_t{policy.max_open} * peers.count;
}

}  // namespace

core::Step trip_within_max_open(Slot& slot, core::Event event, const core::Policy& policy, const Process& process,
                                Peers peers) noexcept {
    // pid:22 | sequence:42. The sequence makes each claim another word, so that a release can't hit somebody else's.
    const std::uint64_t mine = (monotonic_ns() << kPidBits) | process.pid;
    std::uint64_t expected = 0;
    step("max_open.begin");
    if (!slot.intent.compare_exchange_strong(expected, mine, std::memory_order_seq_cst)) {
        event.max_open = core::MaxOpen::denied;  // another call is just deciding the same: this one only counts
        return apply(slot, event, policy, process);
    }
    step("max_open.claimed");
    event.max_open = is_within_limit(slot, policy, peers) ? core::MaxOpen::granted : core::MaxOpen::denied;
    const core::Step decided = apply(slot, event, policy, process);
    step("max_open.applied");
    expected = mine;
    slot.intent.compare_exchange_strong(expected, 0, std::memory_order_seq_cst);
    if (decided.decision == core::Decision::suppressed) {
        slot.totals.suppressed.fetch_add(1, std::memory_order_relaxed);
        const std::uint64_t generation = std::uint64_t{event.generation} + 1;
        const bool is_first = slot.suppressed.exchange(generation, std::memory_order_relaxed) != generation;
        if (is_first && process.observer != nullptr) {
            const core::Sums sums = sums_now(slot, policy, process);
            process.observer->on_suppressed(slot, decided.reason, sums);
        }
    }
    return decided;
}

}  // namespace cb::shm
