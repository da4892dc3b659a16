// Making and recognising a segment in a piece of memory.
#include <new>

#include "table.hpp"

namespace cb::shm {
namespace {

constexpr std::size_t rounded(std::size_t size) noexcept {
    return (size + kLine - 1) / kLine * kLine;
}

Segment laid_out(void* base, std::uint32_t capacity, std::uint32_t columns) noexcept {
    auto* bytes = static_cast<unsigned char*>(base);
    Segment segment;
    segment.header = reinterpret_cast<Header*>(bytes);
    bytes += sizeof(Header);
    segment.children = reinterpret_cast<ChildWord*>(bytes);
    bytes += rounded(std::size_t{columns} * sizeof(ChildWord));
    segment.directory = reinterpret_cast<Atomic64*>(bytes);
    bytes += rounded(std::size_t{capacity} * sizeof(Atomic64));
    segment.slots = reinterpret_cast<Slot*>(bytes);
    bytes += std::size_t{capacity} * sizeof(Slot);
    segment.cells = reinterpret_cast<Atomic32*>(bytes);
    return segment;
}

}  // namespace

std::size_t segment_size(std::uint32_t capacity, std::uint32_t columns) noexcept {
    // 32-bit factors times small records: no overflow in 64 bits.
    return sizeof(Header) + rounded(std::size_t{columns} * sizeof(ChildWord)) +
           rounded(std::size_t{capacity} * sizeof(Atomic64)) + std::size_t{capacity} * sizeof(Slot) +
           rounded(std::size_t{capacity} * columns * sizeof(Atomic32));
}

Segment format(void* base, std::uint32_t capacity, std::uint32_t columns, std::uint64_t start_ns) noexcept {
    Segment segment = laid_out(base, capacity, columns);
    Header& header = *segment.header;
    header.version = kLayoutVersion;
    header.header_size = sizeof(Header);
    header.slot_size = sizeof(Slot);
    header.capacity = capacity;
    header.columns = columns;
    header.start_ns = start_ns;
    header.magic = kMagic;
    return segment;
}

Segment attach(void* base, std::size_t size) noexcept {
    if (size < sizeof(Header)) return {};
    const Header& header = *static_cast<const Header*>(base);
    const bool is_ours = header.magic == kMagic && header.version == kLayoutVersion &&
                         header.header_size == sizeof(Header) && header.slot_size == sizeof(Slot) &&
                         header.capacity > 0 && header.columns > 0 &&
                         segment_size(header.capacity, header.columns) <= size;
    return is_ours ? laid_out(base, header.capacity, header.columns) : Segment{};
}

}  // namespace cb::shm
