#include "word.hpp"

#include <algorithm>

namespace cb::core {
namespace {

constexpr std::uint32_t kRampStartMask = (1U << 26) - 1;

constexpr std::uint64_t field(std::uint64_t value, unsigned bits, unsigned shift) noexcept {
    return (value & ((1ULL << bits) - 1)) << shift;
}

constexpr std::uint32_t taken(std::uint64_t bits, unsigned width, unsigned shift) noexcept {
    return static_cast<std::uint32_t>(bits >> shift) & ((1U << width) - 1);
}

std::uint64_t payload(const Word& word) noexcept {
    switch (word.state) {
        case State::closed:
            return field(word.consecutive, 10, 26) | field(word.tripped ? 1 : 0, 1, 25) |
                   field(word.successes_since_closing, 25, 0);
        case State::open:
            return field(word.open_until, 36, 0);
        case State::half_open:
            return field(word.slots, 16, 20) | field(word.round, 6, 14) | field(word.successes, 6, 8) |
                   field(word.failures, 4, 4) | field(word.neutral, 4, 0);
        case State::recovering:
            return field(word.ramp_start, 26, 10) | field(word.consecutive, 10, 0);
        case State::forced_open:
        case State::forced_closed:
            break;
    }
    return 0;
}

}  // namespace

std::uint64_t pack(const Word& word) noexcept {
    const bool is_early = word.state == State::half_open && word.early;
    return field(is_early ? kEarlyCode : static_cast<std::uint64_t>(word.state), 3, 61) | field(word.level, 5, 56) |
           field(word.generation, kGenerationBits, 36) | payload(word);
}

Word unpack(std::uint64_t bits) noexcept {
    Word word;
    word.state = state_of(bits);
    word.level = static_cast<std::uint8_t>(taken(bits, 5, 56));
    word.generation = generation_of(bits);
    switch (word.state) {
        case State::closed:
            word.consecutive = taken(bits, 10, 26);
            word.tripped = taken(bits, 1, 25) != 0;
            word.successes_since_closing = taken(bits, 25, 0);
            break;
        case State::open:
            word.open_until = bits & kTimeMask;
            break;
        case State::half_open:
            word.slots = static_cast<std::uint16_t>(taken(bits, 16, 20));
            word.round = static_cast<std::uint8_t>(taken(bits, 6, 14));
            word.successes = static_cast<std::uint8_t>(taken(bits, 6, 8));
            word.failures = static_cast<std::uint8_t>(taken(bits, 4, 4));
            word.neutral = static_cast<std::uint8_t>(taken(bits, 4, 0));
            word.early = is_early(bits);
            break;
        case State::recovering:
            word.ramp_start = taken(bits, 26, 10);
            word.consecutive = taken(bits, 10, 0);
            break;
        case State::forced_open:
        case State::forced_closed:
            break;
    }
    return word;
}

Millis open_remaining(const Word& word, Millis now) noexcept {
    const Millis ahead = (word.open_until - now) & kTimeMask;
    return ahead > kMaxOpenTime ? 0 : ahead;
}

Millis due_for(const Word& word, Millis now) noexcept {
    return open_remaining(word, now) > 0 ? 0 : (now - word.open_until) & kTimeMask;
}

Millis ramp_elapsed(const Word& word, const RampUp& ramp_up, Millis now) noexcept {
    const auto units = static_cast<std::uint32_t>(now / kRampUnit);
    const std::uint32_t since = (units - word.ramp_start) & kRampStartMask;
    // Another process's clock reading may be a little later than ours: up to a minute ahead is "just begun".
    constexpr std::uint32_t kAhead = 60 * kMillisPerSecond / kRampUnit;
    if (since > kRampStartMask - kAhead) return 0;
    return std::min(Millis{since} * kRampUnit, ramp_up.duration);
}

const char* name(State state) noexcept {
    switch (state) {
        case State::closed:
            return "closed";
        case State::open:
            return "open";
        case State::half_open:
            return "half-open";
        case State::recovering:
            return "recovering";
        case State::forced_open:
            return "forced-open";
        case State::forced_closed:
            return "forced-closed";
    }
    return "unknown";
}

}  // namespace cb::core
