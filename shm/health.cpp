#include "health.hpp"

#include "outages.hpp"

namespace cb::shm {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;  // one word, compared with nothing else
constexpr std::uint32_t kGenerationShift = 64 - core::kGenerationBits;
constexpr std::uint64_t kPassed = std::uint64_t{1} << (kGenerationShift - 1);
constexpr std::uint32_t kFailuresShift = 32;
constexpr std::uint64_t kFailuresMask = std::uint64_t{0xFF} << kFailuresShift;
constexpr std::uint64_t kEndedMask = (std::uint64_t{1} << kFailuresShift) - 1;

std::uint64_t note_of(std::uint64_t word, const LastCheck& check) noexcept {
    return std::uint64_t{core::generation_of(word)} << kGenerationShift |
           (std::uint64_t{check.failures} << kFailuresShift & kFailuresMask) | (check.ended & kEndedMask);
}

bool is_of(std::uint64_t note, std::uint64_t word) noexcept {
    return note >> kGenerationShift == core::generation_of(word);
}

}  // namespace

bool note_check(Slot& slot, std::uint64_t word, const LastCheck& check, core::Millis now) noexcept {
    std::uint64_t seen = slot.health.load(kRelaxed);
    std::uint64_t next = note_of(word, check);
    if (is_of(seen, word)) {
        if ((seen & kPassed) != 0) return true;
        if (check.ended == 0 || next == seen) return false;
        const bool was_under_way = (seen & kEndedMask) == 0;  // it may have begun before the breaker opened
        const bool has_failed = (seen & kFailuresMask) != (next & kFailuresMask);
        if (check.has_passed && !has_failed && !was_under_way) next |= kPassed;
    }
    // If it fails, another process has seen the same check.
    if (!slot.health.compare_exchange_strong(seen, next, kRelaxed)) return is_of(seen, word) && (seen & kPassed) != 0;
    slot.checked_at.store(now, kRelaxed);
    if ((next & kPassed) == 0) return false;
    note_proof(slot, now);
    return true;
}

core::Millis time_since_check(const Slot& slot, std::uint64_t word, core::Millis now) noexcept {
    if (!is_of(slot.health.load(kRelaxed), word)) return 0;
    const core::Millis at = slot.checked_at.load(kRelaxed);
    return now > at ? now - at : 0;
}

void doubt_checks(Slot& slot) noexcept {
    std::uint64_t seen = slot.health.load(kRelaxed);
    while ((seen & kPassed) == 0 && !slot.health.compare_exchange_weak(seen, seen & ~kEndedMask, kRelaxed)) {
    }
}

bool has_passed_check(const Slot& slot, std::uint64_t word) noexcept {
    const std::uint64_t note = slot.health.load(kRelaxed);
    return is_of(note, word) && (note & kPassed) != 0;
}

}  // namespace cb::shm
