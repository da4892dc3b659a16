#include "changes.hpp"

#include "step.hpp"

namespace cb::shm {
namespace {

// the control word's state field:3 | generation:20 | number:41
constexpr std::uint32_t kStateShift = 61;
constexpr std::uint32_t kNumberBits = 41;
constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << kNumberBits) - 1;

// seq_cst throughout: this word is weighed against the control word, and tests/model/changes.pml knows one total order.
constexpr auto kOrder = std::memory_order_seq_cst;

std::uint64_t packed(std::uint64_t word, std::uint64_t number) noexcept {
    return word >> kStateShift << kStateShift | std::uint64_t{core::generation_of(word)} << kNumberBits |
           (number & kNumberMask);
}

std::uint64_t number_of(std::uint64_t noted) noexcept {
    return noted & kNumberMask;
}

/// A control word of the state and the generation that the noted change led to.
std::uint64_t word_of(std::uint64_t noted) noexcept {
    core::Word word;
    word.generation = static_cast<std::uint32_t>(noted >> kNumberBits) & core::kGenerationMask;
    return noted >> kStateShift << kStateShift | core::pack(word);  // (a closed one's state field is 0)
}

/// The number that belongs to `word`, which is the next one after the noted one.
std::uint64_t next_number(std::uint64_t noted, std::uint64_t word) noexcept {
    return number_of(noted) + (core::is_change(word_of(noted), word) ? 1U : 0U);
}

}  // namespace

NumberedWord numbered_word(const Slot& slot) noexcept {
    for (;;) {
        const std::uint64_t noted = slot.changes.load(kOrder);
        const std::uint64_t word = slot.word.load(kOrder);
        if (!is_another(word_of(noted), word)) return {word, number_of(noted)};
        // As long as this stays, the control word can't go further than one change ahead: that is what we have read.
        if (slot.changes.load(kOrder) == noted) return {word, next_number(noted, word)};
    }
}

bool settle_number(Slot& slot, std::uint64_t seen, std::uint64_t& number) noexcept {
    for (;;) {
        std::uint64_t noted = slot.changes.load(kOrder);
        step("changes.read");
        if (!is_another(word_of(noted), seen)) {
            number = number_of(noted);
            return true;
        }
        // Read after `noted`: if that still stands at the CAS, `seen` is the next one. If not, the CAS fails.
        if (is_another(slot.word.load(kOrder), seen)) return false;
        slot.changes.compare_exchange_strong(noted, packed(seen, next_number(noted, seen)), kOrder);
    }
}

std::uint64_t take_number(Slot& slot, std::uint64_t seen, std::uint64_t number, std::uint64_t word) noexcept {
    step("changes.won");
    std::uint64_t noted = packed(seen, number);
    const std::uint64_t mine = next_number(noted, word);
    // Fails when somebody else has brought it up already.
    slot.changes.compare_exchange_strong(noted, packed(word, mine), kOrder);
    return mine;
}

void renew_numbers(Slot& slot, std::uint64_t word) noexcept {
    // Relaxed: published with the rest of the slot.
    slot.changes.store(packed(word, 0), std::memory_order_relaxed);
}

}  // namespace cb::shm
