// The segment as one table of member slots, and the children that use it.
//
// Purpose: finds or claims a member's slot by identity, registers children, takes back what a dead child held, and
// frees the slots of members that are no longer configured.
// Thread safety: bind() and register_child() from any process, lock-free. child_exited() and free_unused() are for the
// parent alone.
// Invariants: two members never share a slot (the full identity is compared), and one member never has two. Only the
// parent frees slots, and only after every child forked before the removal has exited. Taking over a freed slot
// advances its generation, so that a late result for the earlier member decides nothing.
#ifndef CIRCUITBREAKER_SHM_TABLE_HPP
#define CIRCUITBREAKER_SHM_TABLE_HPP

#include <cstddef>
#include <cstdint>

#include "identity.hpp"
#include "member.hpp"

namespace cb::shm {

/// Where the segment's parts lie in this process. A value; copy it freely.
struct Segment {
    Header* header = nullptr;
    ChildWord* children = nullptr;  // [columns]
    Atomic64* directory = nullptr;  // [capacity] state:2 | pid:22 | hash:40
    Slot* slots = nullptr;          // [capacity]
    Atomic32* cells = nullptr;      // [capacity][columns]

    [[nodiscard]] bool is_valid() const noexcept { return header != nullptr; }
    [[nodiscard]] Atomic32* row(std::uint32_t index) const noexcept {
        return cells + std::size_t{index} * header->columns;
    }
    [[nodiscard]] std::uint32_t index_of(const Slot& slot) const noexcept {
        return static_cast<std::uint32_t>(&slot - slots);
    }
    [[nodiscard]] bool is_ready(std::uint32_t index) const noexcept;
    [[nodiscard]] Clock clock() const noexcept { return Clock{header->start_ns}; }
};

/// Bytes that a segment needs; 0 if it would not fit into the address space.
[[nodiscard]] std::size_t segment_size(std::uint32_t capacity, std::uint32_t columns) noexcept;
/// Makes a segment of zeroed memory (64-byte aligned, segment_size() bytes).
Segment format(void* base, std::uint32_t capacity, std::uint32_t columns, std::uint64_t start_ns) noexcept;
/// The segment in memory of `size` bytes; not valid if it isn't a segment of this build.
[[nodiscard]] Segment attach(void* base, std::size_t size) noexcept;

enum class BindResult : std::uint8_t {
    bound,
    busy,  ///< another process is claiming it, or died doing so: ask again later
    full,
};

/// Finds or claims the slot of `identity` for a process forked in `epoch`.
BindResult bind(const Segment& segment, const Identity& identity, std::uint64_t epoch, std::uint32_t pid,
                std::uint32_t& index) noexcept;

/// Copies the identity of the member in that slot. False if there is none, or it has just gone: the parent frees slots
/// while others read them, and then what stands there becomes the next member's.
[[nodiscard]] bool read_identity(const Segment& segment, std::uint32_t index, Identity& identity) noexcept;

/// Finds the slot of `identity` without claiming one.
[[nodiscard]] bool find(const Segment& segment, const Identity& identity, std::uint32_t& index) noexcept;

inline constexpr std::uint32_t kNoColumn = 0xFFFFFFFFU;

/// Registers a child. Returns its column of the cells, or kNoColumn if none is left. `is_stale` is set if slots bound
/// in `epoch` may have been freed already: such a child must run without breakers.
std::uint32_t register_child(const Segment& segment, std::uint32_t pid, std::uint64_t epoch, bool& is_stale) noexcept;

/// For the parent, after a child has ended in any way: takes back its leases, intents, calls in flight and half-made
/// claims.
void child_exited(const Segment& segment, const Process& parent, std::uint32_t dead_pid) noexcept;

/// For the parent, at a restart (once the epoch has advanced and all configured members are bound) and from time to
/// time afterwards: frees the slots that neither this epoch nor any living child has bound. Returns their number.
std::uint32_t free_unused(const Segment& segment, std::uint32_t parent_pid) noexcept;

/// For tests and the parent's own checks, while no process is at work: an inconsistency of the segment, which must
/// never be. nullptr: there is none.
[[nodiscard]] const char* validate(const Segment& segment) noexcept;

}  // namespace cb::shm

#endif
