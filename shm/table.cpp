#include "table.hpp"

#include <new>

#include "changes.hpp"
#include "step.hpp"

namespace cb::shm {
namespace {

enum class Claim : std::uint8_t { empty, claiming, ready, tombstone };

constexpr std::uint64_t kHashMask = (1ULL << 40U) - 1;

std::uint64_t entry(Claim claim, std::uint32_t pid, std::uint64_t hash) noexcept {
    return std::uint64_t{static_cast<std::uint8_t>(claim)} << 62U | std::uint64_t{pid & kPidMask} << 40U |
           (hash & kHashMask);
}
Claim claim_of(std::uint64_t entry) noexcept {
    return static_cast<Claim>(entry >> 62U);
}
std::uint32_t pid_of(std::uint64_t entry) noexcept {
    return static_cast<std::uint32_t>(entry >> 40U) & kPidMask;
}
std::uint64_t hash_of(std::uint64_t entry) noexcept {
    return entry & kHashMask;
}

std::uint64_t child_word(std::uint32_t pid, std::uint64_t epoch) noexcept {
    return epoch << kPidBits | (pid & kPidMask);
}

struct Search {
    enum class Found : std::uint8_t { mine, claimed_by_other, nothing } found = Found::nothing;
    std::uint32_t index = 0;  // of mine
    bool has_place = false;   // nothing: somewhere to claim
    std::uint32_t place = 0;
    std::uint64_t place_entry = 0;
};

/// Walks the identity's chain; `skip` is an index to leave out (one's own claim), or capacity.
Search search(const Segment& segment, const Identity& identity, std::uint64_t hash, std::uint32_t skip) noexcept {
    Search result;
    const std::uint32_t capacity = segment.header->capacity;
    for (std::uint32_t n = 0; n < capacity; ++n) {
        const auto i = static_cast<std::uint32_t>((hash + n) % capacity);
        if (i == skip) continue;
        // seq_cst: of two who claim the same identity in two places, at least one sees the other (see bind).
        const std::uint64_t seen = segment.directory[i].load(std::memory_order_seq_cst);
        const Claim claim = claim_of(seen);
        if (claim == Claim::empty || claim == Claim::tombstone) {
            if (!result.has_place) {
                result.has_place = true;
                result.place = i;
                result.place_entry = seen;
            }
            if (claim == Claim::empty) break;
        } else if (hash_of(seen) == (hash & kHashMask)) {
            if (claim == Claim::claiming) {
                result.found = Search::Found::claimed_by_other;
                return result;
            }
            if (same(segment.slots[i].identity, identity)) {
                result.found = Search::Found::mine;
                result.index = i;
                return result;
            }
        }
    }
    return result;
}

/// A slot's first life, or its next one: history gone, generation advanced.
void renew(Slot& slot, bool is_first, const Identity& identity, std::uint64_t epoch, core::Millis now) noexcept {
    if (!is_first) {
        core::Word word;
        word.generation = (core::generation_of(slot.word.load(std::memory_order_relaxed)) + 1) & core::kGenerationMask;
        slot.word.store(core::pack(word), std::memory_order_relaxed);
        renew_numbers(slot, core::pack(word));
        slot.reports.store(0, std::memory_order_relaxed);
        for (Atomic64* counter = &slot.totals.calls; counter != reinterpret_cast<Atomic64*>(&slot.totals + 1);
             ++counter) {
            counter->store(0, std::memory_order_relaxed);
        }
        for (Atomic64& word_of_window : slot.window) {  // another kind of window could read it (see configure)
            word_of_window.store(0, std::memory_order_relaxed);
        }
        slot.shape.store(0, std::memory_order_relaxed);
        slot.suppressed.store(0, std::memory_order_relaxed);
        slot.ramp_asked.store(0, std::memory_order_relaxed);
        slot.flags.store(0, std::memory_order_relaxed);
        // Probe rate, flapping, retries, history, histograms and recorder: all that an operator would take for this
        // one's.
        for (Atomic64* kept = &slot.probe_rate; kept != reinterpret_cast<Atomic64*>(&slot.recorder + 1); ++kept)
            kept->store(0, std::memory_order_relaxed);
    }
    slot.since.store(now, std::memory_order_relaxed);
    slot.epoch.store(epoch, std::memory_order_relaxed);
    assign(slot.identity, identity);
}

void raise(Atomic64& value, std::uint64_t to) noexcept {
    std::uint64_t seen = value.load(std::memory_order_seq_cst);
    while (seen < to && !value.compare_exchange_weak(seen, to, std::memory_order_seq_cst)) {
    }
}

}  // namespace

bool Segment::is_ready(std::uint32_t index) const noexcept {
    return claim_of(directory[index].load(std::memory_order_acquire)) == Claim::ready;
}

BindResult bind(const Segment& segment, const Identity& identity, std::uint64_t epoch, std::uint32_t pid,
                std::uint32_t& index) noexcept {
    const std::uint64_t hash = hash_bytes(&identity, sizeof identity, 0);
    for (int attempt = 0; attempt < 8; ++attempt) {
        const Search seen = search(segment, identity, hash, segment.header->capacity);
        if (seen.found == Search::Found::claimed_by_other) return BindResult::busy;
        if (seen.found == Search::Found::mine) {
            step("bind.found");
            // First the epoch, then another look (both seq_cst): free_unused() does it the other way round.
            raise(segment.slots[seen.index].epoch, epoch);
            step("bind.epoch");
            // The identity again: since we searched, the slot may have been freed and be another member's by now. From
            // here on it can't be freed, so what we see stays.
            if (!segment.is_ready(seen.index) || !same(segment.slots[seen.index].identity, identity)) {
                return BindResult::busy;
            }
            index = seen.index;
            return BindResult::bound;
        }
        if (!seen.has_place) return BindResult::full;
        std::uint64_t expected = seen.place_entry;
        step("bind.begin");
        if (!segment.directory[seen.place].compare_exchange_strong(expected, entry(Claim::claiming, pid, hash),
                                                                   std::memory_order_seq_cst)) {
            continue;
        }
        step("bind.claimed");
        // Somebody may have claimed the same identity in another place (a tombstone that we saw, or did not see yet).
        // Whoever sees the other steps back; if both do, both come again.
        if (search(segment, identity, hash, seen.place).found != Search::Found::nothing) {
            segment.directory[seen.place].store(entry(Claim::tombstone, 0, 0), std::memory_order_seq_cst);
            return BindResult::busy;
        }
        renew(segment.slots[seen.place], claim_of(seen.place_entry) == Claim::empty, identity, epoch,
              segment.clock().now());
        step("bind.written");
        // Release: who sees `ready` sees the identity.
        segment.directory[seen.place].store(entry(Claim::ready, 0, hash), std::memory_order_seq_cst);
        index = seen.place;
        return BindResult::bound;
    }
    return BindResult::busy;
}

bool read_identity(const Segment& segment, std::uint32_t index, Identity& identity) noexcept {
    const std::uint64_t before = segment.directory[index].load(std::memory_order_acquire);
    if (claim_of(before) != Claim::ready) return false;
    copy(identity, segment.slots[index].identity);
    std::atomic_thread_fence(std::memory_order_acquire);  // the copy comes before the second look
    return segment.directory[index].load(std::memory_order_relaxed) == before;
}

bool find(const Segment& segment, const Identity& identity, std::uint32_t& index) noexcept {
    const std::uint64_t hash = hash_bytes(&identity, sizeof identity, 0);
    const Search seen = search(segment, identity, hash, segment.header->capacity);
    index = seen.index;
    return seen.found == Search::Found::mine;
}

std::uint32_t register_child(const Segment& segment, std::uint32_t pid, std::uint64_t epoch, bool& is_stale) noexcept {
    std::uint32_t column = kNoColumn;
    for (std::uint32_t i = 0; i < segment.header->columns; ++i) {
        std::uint64_t expected = 0;
        if (segment.children[i].compare_exchange_strong(expected, child_word(pid, epoch), std::memory_order_seq_cst)) {
            step("register.claimed");
            raise(segment.header->columns_used, i + 1);
            column = i;
            break;
        }
    }
    // First we register, then we look; free_unused() first says what it frees, then looks for children (seq_cst all).
    // Without a column nobody would wait for this child before a slot that it has bound is freed.
    is_stale = column == kNoColumn || segment.header->freed_epoch.load(std::memory_order_seq_cst) > epoch;
    return column;
}

void child_exited(const Segment& segment, const Process& parent, std::uint32_t dead_pid) noexcept {
    std::uint32_t column = kNoColumn;
    // All columns, not only columns_used: the child may have died between taking one and raising that.
    for (std::uint32_t i = 0; i < segment.header->columns; ++i) {
        const std::uint64_t word = segment.children[i].load(std::memory_order_seq_cst);
        if (word != 0 && (word & kPidMask) == dead_pid) column = i;
    }
    for (std::uint32_t i = 0; i < segment.header->capacity; ++i) {
        std::uint64_t seen = segment.directory[i].load(std::memory_order_seq_cst);
        if (claim_of(seen) == Claim::claiming && pid_of(seen) == dead_pid) {
            segment.directory[i].compare_exchange_strong(seen, entry(Claim::tombstone, 0, 0),
                                                         std::memory_order_seq_cst);
        }
        if (claim_of(seen) != Claim::ready) continue;
        reap(segment.slots[i], noted_policy(segment.slots[i]), parent, dead_pid);
        if (column != kNoColumn) segment.row(i)[column].store(0, std::memory_order_seq_cst);
    }
    // Last: from here on another child may have the column.
    if (column != kNoColumn) segment.children[column].store(0, std::memory_order_seq_cst);
}

std::uint32_t free_unused(const Segment& segment, std::uint32_t parent_pid) noexcept {
    const std::uint64_t epoch = segment.header->epoch.load(std::memory_order_seq_cst);
    segment.header->freed_epoch.store(epoch, std::memory_order_seq_cst);  // before the look: see register_child
    // Whoever uses a slot has bound it, which made its epoch at least their own: one that is older than the oldest
    // child is nobody's.
    std::uint64_t oldest = epoch;
    for (std::uint32_t i = 0; i < segment.header->columns; ++i) {
        const std::uint64_t word = segment.children[i].load(std::memory_order_seq_cst);
        if (word != 0 && word >> kPidBits < oldest) oldest = word >> kPidBits;
    }
    std::uint32_t freed = 0;
    for (std::uint32_t i = 0; i < segment.header->capacity; ++i) {
        std::uint64_t seen = segment.directory[i].load(std::memory_order_seq_cst);
        if (claim_of(seen) != Claim::ready) continue;
        Slot& slot = segment.slots[i];
        if (slot.epoch.load(std::memory_order_seq_cst) >= oldest) continue;
        const std::uint64_t claimed = entry(Claim::claiming, parent_pid, hash_of(seen));
        const std::uint64_t ready = seen;
        step("free.begin");
        if (!segment.directory[i].compare_exchange_strong(seen, claimed, std::memory_order_seq_cst)) continue;
        if (slot.epoch.load(std::memory_order_seq_cst) >= oldest) {  // bound in between: see bind
            segment.directory[i].store(ready, std::memory_order_seq_cst);
            continue;
        }
        segment.directory[i].store(entry(Claim::tombstone, 0, 0), std::memory_order_seq_cst);
        ++freed;
    }
    return freed;
}

const char* validate(const Segment& segment) noexcept {
    for (std::uint32_t i = 0; i < segment.header->capacity; ++i) {
        const Claim claim = claim_of(segment.directory[i].load());
        if (claim == Claim::claiming) return "a half-made claim";
        if (claim != Claim::ready) continue;
        const Slot& slot = segment.slots[i];
        for (const Atomic64& lease : slot.lease) {
            if (Lease::of(lease.load()).state != LeaseState::free) return "a lease that is not free";
        }
        const core::Word word = core::unpack(slot.word.load());
        if (word.slots != 0) return "a probe slot that is taken";
        if (slot.intent.load() != 0) return "an intent to trip";
        for (std::uint32_t c = 0; c < segment.header->columns; ++c) {
            if (segment.row(i)[c].load() != 0) return "a call in flight";
        }
    }
    return nullptr;
}

}  // namespace cb::shm
