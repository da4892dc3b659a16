// Recognising a segment: what attach() takes for one of this build, and how it is laid out.
#include <gtest/gtest.h>

#include "shm/table.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::State;

class Attach : public testing::Test {
  protected:
    SharedMemory memory{shm::segment_size(4, 2)};
    shm::Segment segment = shm::format(memory.data(), 4, 2, 123);
};

TEST_F(Attach, FindsWhatWasFormattedWhateverItsCapacity) {
    for (const std::uint32_t capacity : {1U, 4U, 100U}) {
        for (const std::uint32_t columns : {1U, 7U, 64U}) {
            const SharedMemory other(shm::segment_size(capacity, columns));
            const shm::Segment made = shm::format(other.data(), capacity, columns, 5);
            const shm::Segment found = shm::attach(other.data(), other.size());
            ASSERT_TRUE(found.is_valid());
            EXPECT_EQ(found.slots, made.slots);
            EXPECT_EQ(found.cells, made.cells);
            EXPECT_EQ(found.header->capacity, capacity);
            EXPECT_EQ(found.header->start_ns, 5U);
        }
    }
}

TEST_F(Attach, RefusesWhatIsOfAnotherBuild) {
    shm::Header& header = *segment.header;
    const auto is_refused_with = [&](auto& field) {
        const auto before = field;
        field = before + 1;
        const bool is_refused = !shm::attach(memory.data(), memory.size()).is_valid();
        field = before;
        return is_refused;
    };
    EXPECT_TRUE(is_refused_with(header.magic));
    EXPECT_TRUE(is_refused_with(header.version));
    EXPECT_TRUE(is_refused_with(header.header_size));
    EXPECT_TRUE(is_refused_with(header.slot_size));
    EXPECT_TRUE(shm::attach(memory.data(), memory.size()).is_valid());
}

TEST_F(Attach, RefusesMemoryThatIsTooSmallForWhatItsHeaderSays) {
    for (const std::size_t size : {std::size_t{0}, sizeof(shm::Header) - 1, sizeof(shm::Header), memory.size() - 1}) {
        EXPECT_FALSE(shm::attach(memory.data(), size).is_valid()) << size;
    }
    for (const std::uint32_t absurd : {0U, 5U, 0x7FFFFFFFU, 0xFFFFFFFFU}) {
        segment.header->capacity = absurd;
        EXPECT_FALSE(shm::attach(memory.data(), memory.size()).is_valid()) << absurd;
    }
    segment.header->capacity = 4;
    for (const std::uint32_t absurd : {0U, 0x7FFFFFFFU, 0xFFFFFFFFU}) {
        segment.header->columns = absurd;
        EXPECT_FALSE(shm::attach(memory.data(), memory.size()).is_valid()) << absurd;
    }
}

TEST_F(Attach, RefusesZeroedMemory) {
    const SharedMemory zero(memory.size());
    EXPECT_FALSE(shm::attach(zero.data(), zero.size()).is_valid());
}

TEST_F(Attach, LaysEverythingAtItsAlignmentAndInsideTheMemory) {
    for (const std::uint32_t capacity : {1U, 3U, 8U, 65U}) {
        for (const std::uint32_t columns : {1U, 5U, 9U, 17U}) {
            const SharedMemory other(shm::segment_size(capacity, columns));
            const shm::Segment made = shm::format(other.data(), capacity, columns, 5);
            const auto at = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
            for (const void* part : {static_cast<void*>(made.children), static_cast<void*>(made.directory),
                                     static_cast<void*>(made.slots), static_cast<void*>(made.cells)}) {
                EXPECT_EQ(at(part) % shm::kLine, 0U);
            }
            EXPECT_GE(at(made.directory), at(made.children + columns));
            EXPECT_GE(at(made.slots), at(made.directory + capacity));
            EXPECT_GE(at(made.cells), at(made.slots + capacity));
            EXPECT_LE(at(made.row(capacity - 1) + columns), at(other.data()) + other.size());
        }
    }
}

TEST_F(Attach, TakesAnAllZeroSlotForAClosedBreaker) {
    EXPECT_EQ(state_of(segment.slots[3]), State::closed);
    EXPECT_TRUE(core::is_quiet(segment.slots[3].word));
    EXPECT_EQ(shm::validate(segment), nullptr);
}

}  // namespace
}  // namespace cb::test
