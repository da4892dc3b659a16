#include "newcomers.hpp"

namespace cb::shm {
namespace {

// Each bit stands for itself, and nothing is published by it.
constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr std::uint64_t kBits = std::uint64_t{kNewcomerWords} * 64;

std::uint64_t first(std::uint64_t hash) noexcept {
    return hash % kBits;
}

std::uint64_t second(std::uint64_t hash) noexcept {
    return (hash >> 16U) % kBits;
}

void set(Slot& slot, std::uint64_t bit) noexcept {
    slot.newcomers[bit / 64].fetch_or(std::uint64_t{1} << bit % 64, kRelaxed);
}

bool has(const Slot& slot, std::uint64_t bit) noexcept {
    return (slot.newcomers[bit / 64].load(kRelaxed) >> bit % 64 & 1U) != 0;
}

}  // namespace

void note_newcomer(Slot& slot, std::uint64_t hash) noexcept {
    set(slot, first(hash));
    set(slot, second(hash));
}

bool is_newcomer(const Slot& slot, std::uint64_t hash) noexcept {
    return has(slot, first(hash)) && has(slot, second(hash));
}

void forget_newcomers(Slot& slot) noexcept {
    for (Atomic64& word : slot.newcomers)
        word.store(0, kRelaxed);
}

}  // namespace cb::shm
