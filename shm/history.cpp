#include "history.hpp"

#include "changes.hpp"

namespace cb::shm {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;  // an entry is one word; people read them
constexpr std::uint64_t kNumberMask = 0xFFFF;

}  // namespace

void note_history(Slot& slot, std::uint64_t number, const HistoryEntry& entry) noexcept {
    const std::uint64_t bits = (entry.at & core::kTimeMask) << 28U | static_cast<std::uint64_t>(entry.to) << 25U |
                               (std::uint64_t{entry.level} & 31U) << 20U |
                               (static_cast<std::uint64_t>(entry.reason) & 15U) << 16U | (number & kNumberMask);
    slot.history[(number - 1) % kHistory].store(bits, std::memory_order_release);
}

bool is_in_history(const Slot& slot, std::uint64_t number) noexcept {
    if (number == 0) return true;
    const std::uint64_t bits = slot.history[(number - 1) % kHistory].load(std::memory_order_acquire);
    return (bits & kNumberMask) == (number & kNumberMask);
}

std::uint32_t read_history(const Slot& slot, HistoryEntry (&entries)[kHistory]) noexcept {
    return read_history(slot, numbered_word(slot).number, entries);
}

std::uint32_t read_history(const Slot& slot, std::uint64_t last, HistoryEntry (&entries)[kHistory]) noexcept {
    std::uint32_t count = 0;
    for (std::uint64_t number = last > kHistory ? last - kHistory + 1 : 1; number <= last; ++number) {
        const std::uint64_t bits = slot.history[(number - 1) % kHistory].load(kRelaxed);
        if ((bits & kNumberMask) != (number & kNumberMask)) continue;  // not written yet, or overwritten meanwhile
        entries[count++] = {bits >> 28U, static_cast<std::uint32_t>(bits >> 20U & 31U),
                            static_cast<core::State>(bits >> 25U & 7U), static_cast<core::Reason>(bits >> 16U & 15U)};
    }
    return count;
}

}  // namespace cb::shm
