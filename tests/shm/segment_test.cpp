// The segment on APR's shared memory: made once, found again, replaced when another build made it.
#include "shm/segment.hpp"

#include <apr_general.h>
#include <apr_shm.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "executors.hpp"
#include "world.hpp"

namespace {
int keys_not_copied = 0;
}

/// In the place of APR's own: the key of this one is not copied, so it would be gone with our code at a restart.
extern "C" apr_status_t apr_pool_userdata_setn(const void* data, const char* key, apr_status_t (*cleanup)(void*),
                                               apr_pool_t* pool) {
    ++keys_not_copied;
    return apr_pool_userdata_set(data, key, cleanup, pool);
}

namespace cb::test {
namespace {

using shm::Opened;
using shm::Origin;

constexpr const char* kKey = "mod_circuitbreaker.segment";

class SharedSegment : public testing::Test {
  protected:
    static void SetUpTestSuite() { apr_initialize(); }
    static void TearDownTestSuite() { apr_terminate(); }
    SharedSegment() { apr_pool_create(&process_pool, nullptr); }
    ~SharedSegment() override { apr_pool_destroy(process_pool); }

    Opened open(std::uint32_t capacity = 10, std::uint32_t columns = 5) {
        return shm::open_segment(process_pool, capacity, columns);
    }
    apr_pool_t* process_pool = nullptr;
};

TEST_F(SharedSegment, IsNotThereBeforeItIsMade) {
    EXPECT_FALSE(shm::existing_segment(process_pool).is_valid());
    EXPECT_FALSE(shm::existing_segment(process_pool).is_valid()) << "looking makes nothing";
}

TEST_F(SharedSegment, IsMadeOnceAndFoundAgain) {
    const Opened first = open();
    ASSERT_EQ(first.origin, Origin::created);
    EXPECT_EQ(first.segment.header->capacity, 10U);
    EXPECT_EQ(first.segment.header->columns, 5U);
    EXPECT_GE(first.size, shm::segment_size(10, 5));
    first.segment.slots[9].word = 42;
    for (int restart = 0; restart < 25; ++restart) {
        const Opened again = open();
        EXPECT_EQ(again.origin, Origin::found);
        EXPECT_EQ(again.segment.header, first.segment.header);
        EXPECT_EQ(again.segment.slots[9].word.load(), 42U);
        EXPECT_EQ(again.size, first.size);
    }
    EXPECT_EQ(shm::existing_segment(process_pool).header, first.segment.header);
}

TEST_F(SharedSegment, BeginsAsZeroesAndWithItsOwnClock) {
    const Opened made = open();
    const std::uint64_t now = shm::monotonic_ns();
    EXPECT_LE(made.segment.header->start_ns, now);
    EXPECT_LT(now - made.segment.header->start_ns, 60'000'000'000U);
    EXPECT_EQ(made.segment.header->epoch.load(), 0U);
    const auto* const bytes = reinterpret_cast<const unsigned char*>(made.segment.children);
    const auto* const end = reinterpret_cast<const unsigned char*>(made.segment.row(9) + 5);
    EXPECT_EQ(std::count(bytes, end, 0), end - bytes);
    EXPECT_EQ(shm::validate(made.segment), nullptr);
}

TEST_F(SharedSegment, IsAlignedThoughAprsMemoryIsNot) {
    for (std::uint32_t capacity = 1; capacity < 40; ++capacity) {
        apr_pool_t* pool = nullptr;
        apr_pool_create(&pool, nullptr);
        const Opened made = shm::open_segment(pool, capacity, capacity * 3);
        ASSERT_EQ(made.origin, Origin::created);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(made.segment.header) % shm::kLine, 0U);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(made.segment.slots) % alignof(shm::Slot), 0U);
        void* shared = nullptr;
        apr_pool_userdata_get(&shared, kKey, pool);
        auto* const memory = static_cast<apr_shm_t*>(shared);
        ASSERT_NE(memory, nullptr);
        const auto* const base = static_cast<const unsigned char*>(apr_shm_baseaddr_get(memory));
        const auto* const end = reinterpret_cast<const unsigned char*>(made.segment.row(capacity - 1) + capacity * 3);
        EXPECT_GE(reinterpret_cast<const unsigned char*>(made.segment.header), base);
        EXPECT_LE(end, base + apr_shm_size_get(memory)) << "written beyond what APR gave";
        made.segment.row(capacity - 1)[capacity * 3 - 1] = 1;
        apr_pool_destroy(pool);
    }
}

TEST_F(SharedSegment, OutlivesOtherPoolsAndOurCode) {
    apr_pool_t* pconf = nullptr;
    apr_pool_create(&pconf, process_pool);
    const Opened made = open();
    made.segment.slots[0].word = 7;
    for (int restart = 0; restart < 5; ++restart) {
        apr_pool_clear(pconf);
        EXPECT_EQ(open().segment.slots[0].word.load(), 7U);
    }
    EXPECT_EQ(keys_not_copied, 0);
}

TEST_F(SharedSegment, OfAnotherCapacityIsStillTheSame) {
    const Opened small = open(4, 2);
    const Opened wanted_more = open(400, 20);
    EXPECT_EQ(wanted_more.origin, Origin::found);
    EXPECT_EQ(wanted_more.segment.header, small.segment.header);
    EXPECT_EQ(wanted_more.segment.header->capacity, 4U);
}

TEST_F(SharedSegment, ThatDoesNotFitIsReplacedOnceAndLeftToThoseWhoUseIt) {
    const auto spoil = [](shm::Header& header, int what) {
        if (what == 0) header.magic ^= 1;
        if (what == 1) ++header.version;
        if (what == 2) header.slot_size += 64;
        if (what == 3) header.header_size += 64;
        if (what == 4) header.capacity = 1'000'000;
    };
    for (int what = 0; what < 5; ++what) {
        apr_pool_t* pool = nullptr;
        apr_pool_create(&pool, nullptr);
        const Opened old = shm::open_segment(pool, 4, 2);
        old.segment.slots[3].word = 42;
        spoil(*old.segment.header, what);
        EXPECT_FALSE(shm::existing_segment(pool).is_valid()) << what;
        const Opened next = shm::open_segment(pool, 6, 2);
        ASSERT_EQ(next.origin, Origin::replaced) << what;
        EXPECT_NE(next.segment.header, old.segment.header);
        EXPECT_EQ(next.segment.header->capacity, 6U);
        EXPECT_EQ(next.segment.slots[3].word.load(), 0U);
        EXPECT_EQ(old.segment.slots[3].word.load(), 42U) << "old children still work on it";
        EXPECT_EQ(shm::open_segment(pool, 6, 2).origin, Origin::found);
        apr_pool_destroy(pool);
    }
}

TEST_F(SharedSegment, ThatCannotBeHadSaysWhy) {
    const Opened impossible = open(0x7FFFFFFFU, 0x10000U);  // 2^49 bytes of cells alone
    EXPECT_EQ(impossible.origin, Origin::failed);
    EXPECT_NE(impossible.status, APR_SUCCESS);
    EXPECT_FALSE(impossible.segment.is_valid());
    EXPECT_EQ(open().origin, Origin::created) << "a failure is not remembered";
}

TEST_F(SharedSegment, IsOneForAllChildren) {
    const Opened made = open();
    const pid_t child = fork_child([&] {
        made.segment.slots[2].word = 99;
        std::uint32_t index = 0;
        (void)shm::bind(made.segment, identity("a"), 1, 1001, index);
    });
    EXPECT_EQ(wait_for(child), 0);
    EXPECT_EQ(made.segment.slots[2].word.load(), 99U);
    std::uint32_t index = 0;
    EXPECT_EQ(shm::bind(made.segment, identity("a"), 1, 1002, index), shm::BindResult::bound);
    std::uint32_t ready = 0;
    for (std::uint32_t i = 0; i < 10; ++i)
        ready += made.segment.is_ready(i) ? 1 : 0;
    EXPECT_EQ(ready, 1U);
}

// A restart maps nothing and leaks nothing.
TEST_F(SharedSegment, CostsNoMemoryAtARestart) {
    const auto mappings = [] {
        std::ifstream maps("/proc/self/maps");
        std::string line;
        int lines = 0;
        while (std::getline(maps, line))
            lines += line.find("/dev/zero") != std::string::npos ? 1 : 0;
        return lines;
    };
    open();
    const int before = mappings();
    EXPECT_GE(before, 1) << "the anonymous shared memory should be visible";
    for (int restart = 0; restart < 100; ++restart)
        open();
    EXPECT_EQ(mappings(), before);
}

}  // namespace
}  // namespace cb::test
