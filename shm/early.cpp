#include "early.hpp"

#include "step.hpp"

namespace cb::shm {
namespace {

// seq_cst throughout: both words are weighed against the control word, and tests/model/early.pml knows one total order.
constexpr auto kOrder = std::memory_order_seq_cst;

// Slot.interrupted: generation of the early round:20 | 0:8 | end of the open time:36.
// Slot.opened: generation of the open state:20 | ms:44.
constexpr std::uint32_t kGenerationShift = 64 - core::kGenerationBits;
constexpr std::uint64_t kOpenedMask = (std::uint64_t{1} << kGenerationShift) - 1;

std::uint64_t tagged(std::uint64_t word, std::uint64_t value) noexcept {
    return std::uint64_t{core::generation_of(word)} << kGenerationShift | value;
}

bool is_tagged(std::uint64_t value, std::uint64_t word) noexcept {
    return value >> kGenerationShift == core::generation_of(word);
}

}  // namespace

Seen look(const Slot& slot) noexcept {
    Seen seen{};
    seen.interrupted = slot.interrupted.load(kOrder);
    step("early.look");
    seen.word = slot.word.load(kOrder);
    return seen;
}

core::Millis time_to_minimum(Slot& slot, std::uint64_t word, const core::Policy& policy, core::Millis now) noexcept {
    const core::Millis minimum = policy.open_time.min;
    std::uint64_t opened = slot.opened.load(kOrder);
    if (!is_tagged(opened, word)) {
        slot.opened.compare_exchange_strong(opened, tagged(word, now & kOpenedMask), kOrder);
        return minimum;
    }
    const core::Millis at = opened & kOpenedMask;
    const core::Millis open_for = now > at ? now - at : 0;  // another process's clock reading may be later than ours
    return open_for < minimum ? minimum - open_for : 0;
}

bool is_early_allowed(Slot& slot, std::uint64_t word, const core::Policy& policy, core::Millis now) noexcept {
    if (core::state_of(word) == core::State::half_open) return true;
    return core::state_of(word) == core::State::open && time_to_minimum(slot, word, policy, now) == 0;
}

void note_opened(Slot& slot, std::uint64_t word, core::Millis now) noexcept {
    slot.opened.store(tagged(word, now & kOpenedMask), kOrder);
}

bool keep_end(Slot& slot, const Seen& seen, std::uint64_t next) noexcept {
    if (!core::is_early(next) || core::generation_of(next) == core::generation_of(seen.word)) return true;
    // A window of another shape gives an early round another generation: the end stays.
    const bool is_begin = !core::is_early(seen.word);
    const core::Millis end = is_begin ? core::unpack(seen.word).open_until : seen.interrupted & core::kTimeMask;
    const std::uint64_t wanted = tagged(next, end);
    if (seen.interrupted == wanted) return true;
    std::uint64_t expected = seen.interrupted;
    step("early.keep");
    return slot.interrupted.compare_exchange_strong(expected, wanted, kOrder);
}

core::Millis kept_end(const Slot& slot) noexcept {
    return slot.interrupted.load(kOrder) & core::kTimeMask;
}

bool was_probed_early(std::uint64_t interrupted, std::uint64_t word) noexcept {
    core::Word before;
    before.generation = (core::generation_of(word) - 1U) & core::kGenerationMask;
    return core::state_of(word) == core::State::open && interrupted != 0 && is_tagged(interrupted, core::pack(before));
}

}  // namespace cb::shm
