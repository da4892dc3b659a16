#include "stays.hpp"

#include "history.hpp"

namespace cb::shm {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;  // ordered by the looks at the change before and after

core::State counted_state(std::uint64_t word) noexcept {
    return core::is_early(word) ? core::State::open : core::state_of(word);
}

/// False if a change was being noted meanwhile.
bool look(Stays& stays, const Slot& slot, const Clock& clock) noexcept {
    stays.at = numbered_word(slot);
    const bool is_noted = is_in_history(slot, stays.at.number);
    stays.since = slot.since.load(kRelaxed);
    for (std::size_t i = 0; i < core::kStates; ++i)
        stays.ms[i] = slot.totals.state_ms[i].load(kRelaxed);
    // Before the second look at the word: a change that comes later also has a later time.
    stays.now = clock.now();
    const core::Millis present = stays.now > stays.since ? stays.now - stays.since : 0;
    stays.ms[static_cast<std::size_t>(counted_state(stays.at.word))] += present;
    std::atomic_thread_fence(std::memory_order_acquire);  // the loads above come before the second look
    return is_noted && numbered_word(slot).number == stays.at.number;
}

}  // namespace

Stays read_stays(const Slot& slot, const Clock& clock) noexcept {
    constexpr int kLooks = 40;
    constexpr int kLooksAtOnce = 20;
    Stays stays;
    for (int n = 0; n < kLooks && !stays.is_settled; ++n) {
        constexpr timespec kPause = {0, 1'000'000};  // who is noting the change may have lost its processor
        if (n >= kLooksAtOnce) nanosleep(&kPause, nullptr);
        stays.is_settled = look(stays, slot, clock);
    }
    return stays;
}

}  // namespace cb::shm
