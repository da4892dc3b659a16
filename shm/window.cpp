#include "window.hpp"

#include <algorithm>
#include <bit>

#include "step.hpp"

namespace cb::shm {
namespace {

using core::Millis;
using core::Sums;

constexpr std::uint32_t kBuckets = 16;
constexpr Millis kMinBucket = 100;
constexpr std::uint32_t kCells = 256;
constexpr std::uint32_t kPerCell = 16;
constexpr std::uint32_t kLaps = 255;

// How far ahead of the writer a tag may be and still count as newer. A tag further ahead is left from before tags
// wrapped, and is overwritten. An old tag within these bounds would keep calls out until the writers' tags have passed
// it. So the bounds are only as wide as a writer can be late: no writer sleeps for 16 windows (16 laps) between reading
// the clock and the CAS.
constexpr std::uint32_t kNewerGenerations = 64;
constexpr std::uint32_t kNewerLaps = 16;

struct Tag {
    std::uint32_t generation;  // 12 bits
    std::uint32_t lap;         // 20 bits

    [[nodiscard]] std::uint64_t bits() const noexcept { return (std::uint64_t{generation} << 20U | lap) << 32U; }
    static Tag of(std::uint64_t bucket) noexcept {
        return {static_cast<std::uint32_t>(bucket >> 52U), static_cast<std::uint32_t>(bucket >> 32U) & 0xFFFFFU};
    }
    [[nodiscard]] bool is_newer_than(const Tag& other) const noexcept {
        const std::uint32_t generations = (generation - other.generation) & 0xFFFU;
        if (generations != 0) return generations < kNewerGenerations;
        const std::uint32_t laps = (lap - other.lap) & 0xFFFFFU;
        return laps != 0 && laps < kNewerLaps;
    }
    friend bool operator==(const Tag&, const Tag&) = default;
};

std::uint64_t counted(std::uint64_t bucket, bool hit) noexcept {
    std::uint32_t calls = static_cast<std::uint32_t>(bucket >> 16U) & 0xFFFFU;
    std::uint32_t hits = static_cast<std::uint32_t>(bucket) & 0xFFFFU;
    if (calls == 0xFFFFU) {  // full: rates stay about right, counts are halved
        calls /= 2;
        hits /= 2;
    }
    return (bucket & ~0xFFFFFFFFULL) | std::uint64_t{calls + 1} << 16U | (hits + (hit ? 1U : 0U));
}

bool record_in_ring(Atomic64* ring, std::uint64_t tick, std::uint32_t generation, bool hit) noexcept {
    const Tag mine{generation & 0xFFFU, static_cast<std::uint32_t>(tick / kBuckets) & 0xFFFFFU};
    Atomic64& bucket = ring[tick % kBuckets];
    // seq_cst: every process reads the sums that decide whether to open after this write.
    std::uint64_t seen = bucket.load(std::memory_order_seq_cst);
    for (;;) {
        const Tag tag = Tag::of(seen);
        // All-zero is untouched (a written bucket has a call in it), not the tag of generation 0, lap 0.
        if (seen != 0 && tag.is_newer_than(mine)) return false;
        const std::uint64_t base = tag == mine ? seen : mine.bits();
        step("window.bucket");
        if (bucket.compare_exchange_weak(seen, counted(base, hit), std::memory_order_seq_cst)) return true;
    }
}

void sum_ring(const Atomic64* ring, std::uint64_t tick, std::uint64_t ticks, std::uint32_t generation,
              std::uint32_t& calls, std::uint32_t& hits) noexcept {
    for (std::uint64_t back = 0; back < ticks && back <= tick; ++back) {
        const std::uint64_t at = tick - back;
        const std::uint64_t bucket = ring[at % kBuckets].load(std::memory_order_seq_cst);
        const Tag wanted{generation & 0xFFFU, static_cast<std::uint32_t>(at / kBuckets) & 0xFFFFFU};
        if (Tag::of(bucket) != wanted) continue;
        calls += static_cast<std::uint32_t>(bucket >> 16U) & 0xFFFFU;
        hits += static_cast<std::uint32_t>(bucket) & 0xFFFFU;
    }
}

// --- count windows ---

struct Head {
    std::uint32_t generation;  // 20 bits
    std::uint64_t cell;        // 44 bits

    [[nodiscard]] std::uint64_t bits() const noexcept {
        return std::uint64_t{generation} << 44U | (cell & ((1ULL << 44U) - 1));
    }
    static Head of(std::uint64_t word) noexcept {
        return {static_cast<std::uint32_t>(word >> 44U), word & ((1ULL << 44U) - 1)};
    }
};

/// generation:20 | lap:8 | fill-1:4 | outcomes:32
struct Cell {
    std::uint32_t generation;
    std::uint32_t lap;
    std::uint32_t fill;  // 1..16
    std::uint32_t outcomes;

    [[nodiscard]] std::uint64_t bits() const noexcept {
        return std::uint64_t{generation} << 44U | std::uint64_t{lap} << 36U | std::uint64_t{fill - 1} << 32U | outcomes;
    }
    static Cell of(std::uint64_t word) noexcept {
        return {static_cast<std::uint32_t>(word >> 44U), static_cast<std::uint32_t>(word >> 36U) & 0xFFU,
                (static_cast<std::uint32_t>(word >> 32U) & 0xFU) + 1, static_cast<std::uint32_t>(word)};
    }
};

/// 1..255, so that no written cell is an all-zero word, which stands for an untouched one.
constexpr std::uint32_t lap_of(std::uint64_t cell) noexcept {
    return static_cast<std::uint32_t>(cell / kCells % kLaps) + 1;
}

constexpr bool is_newer_lap(std::uint32_t theirs, std::uint32_t mine) noexcept {
    const std::uint32_t ahead = (theirs + kLaps - mine) % kLaps;
    return ahead != 0 && ahead < kLaps / 2;
}

bool is_newer_generation(std::uint32_t theirs, std::uint32_t mine) noexcept {
    const std::uint32_t ahead = (theirs - mine) & core::kGenerationMask;
    return ahead != 0 && ahead < kNewerGenerations;
}

bool record_outcome(Atomic64 (&area)[kWindowWords], std::uint32_t generation, Sample sample) noexcept {
    const std::uint32_t outcome = (sample.failure ? 1U : 0U) | (sample.slow ? 2U : 0U);
    for (;;) {
        std::uint64_t head_word = area[0].load(std::memory_order_seq_cst);
        const Head head = Head::of(head_word);
        if (head.generation != generation) {
            // All-zero is untouched, not the head of generation 0.
            if (head_word != 0 && is_newer_generation(head.generation, generation)) return false;
            step("window.head");
            // A new generation begins with a fresh cell. Whoever loses reads again.
            area[0].compare_exchange_strong(head_word, Head{generation, head.cell + 1}.bits(),
                                            std::memory_order_seq_cst);
            continue;
        }
        Atomic64& place = area[1 + head.cell % kCells];
        std::uint64_t seen = place.load(std::memory_order_seq_cst);
        const Cell cell = Cell::of(seen);
        const bool is_written = seen != 0;
        Cell next{generation, lap_of(head.cell), 1, outcome};
        if (is_written && cell.generation == generation && cell.lap == next.lap) {
            if (cell.fill == kPerCell) {
                step("window.full");
                area[0].compare_exchange_strong(head_word, Head{generation, head.cell + 1}.bits(),
                                                std::memory_order_seq_cst);
                continue;
            }
            next.fill = cell.fill + 1;
            next.outcomes = cell.outcomes | outcome << (2 * cell.fill);
        } else if (is_written && (is_newer_generation(cell.generation, generation) ||
                                  (cell.generation == generation && is_newer_lap(cell.lap, next.lap)))) {
            // Newer than the head we read: somebody has been round since, unless the head still stands (a relic).
            if (area[0].load(std::memory_order_seq_cst) != head_word) continue;
        }
        step("window.cell");
        if (place.compare_exchange_strong(seen, next.bits(), std::memory_order_seq_cst)) return true;
    }
}

Sums sum_outcomes(const Atomic64 (&area)[kWindowWords], std::uint32_t wanted, std::uint32_t generation) noexcept {
    Sums sums;
    const Head head = Head::of(area[0].load(std::memory_order_seq_cst));
    if (head.generation != generation) return sums;
    for (std::uint64_t back = 0; back < kCells && back <= head.cell && sums.calls < wanted; ++back) {
        const std::uint64_t at = head.cell - back;
        const std::uint64_t word = area[1 + at % kCells].load(std::memory_order_seq_cst);
        const Cell cell = Cell::of(word);
        const bool is_ours = word != 0 && cell.generation == generation && cell.lap == lap_of(at);
        if (!is_ours) {
            if (back == 0) continue;  // the newest cell may not have been begun yet
            break;
        }
        const std::uint32_t take = std::min(cell.fill, wanted - sums.calls);
        // The newest outcomes are the highest: drop the older ones of a cell that is only partly within the window.
        const std::uint64_t kept = std::uint64_t{cell.outcomes} >> (2 * (cell.fill - take));
        sums.calls += take;
        sums.failures += static_cast<std::uint32_t>(std::popcount(kept & 0x55555555U));
        sums.slow_calls += static_cast<std::uint32_t>(std::popcount(kept & 0xAAAAAAAAU));
    }
    sums.timed_calls = sums.calls;
    return sums;
}

}  // namespace

std::uint64_t shape_of(const core::Window& window) noexcept {
    return window.calls > 0 ? 1ULL << 63U | window.calls : 1ULL << 62U | window.span;
}

Millis bucket_width(const core::Window& window) noexcept {
    return std::max(kMinBucket, (window.span + kBuckets - 1) / kBuckets);
}

bool record(Atomic64 (&area)[kWindowWords], const core::Window& window, std::uint32_t generation, Millis now,
            Sample sample) noexcept {
    if (window.calls > 0) return record_outcome(area, generation, sample);
    const std::uint64_t tick = now / bucket_width(window);
    const bool is_counted = record_in_ring(&area[1], tick, generation, sample.failure);
    if (is_counted && sample.timed) record_in_ring(&area[1 + kBuckets], tick, generation, sample.slow);
    return is_counted;
}

Sums sum(const Atomic64 (&area)[kWindowWords], const core::Window& window, std::uint32_t generation,
         Millis now) noexcept {
    if (window.calls > 0) return sum_outcomes(area, window.calls, generation);
    Sums sums;
    const Millis width = bucket_width(window);
    const std::uint64_t tick = now / width;
    const std::uint64_t ticks = std::min<std::uint64_t>(kBuckets, (window.span + width - 1) / width);
    sum_ring(&area[1], tick, ticks, generation, sums.calls, sums.failures);
    sum_ring(&area[1 + kBuckets], tick, ticks, generation, sums.timed_calls, sums.slow_calls);
    return sums;
}

}  // namespace cb::shm
