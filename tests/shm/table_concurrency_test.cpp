// Many at once at the table: never two slots for one member, never one slot for two.
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "at_once.hpp"
#include "shm/table.hpp"
#include "single_step.hpp"

namespace cb::test {
namespace {

using shm::BindResult;

template <typename Executor>
class TableAtOnce : public AtOnce<Executor> {};
TYPED_TEST_SUITE(TableAtOnce, Executors, ExecutorNames);

TYPED_TEST(TableAtOnce, TheSameMembersGetOneSlotEachWhoeverBindsThem) {
    constexpr std::uint32_t kMembers = 24;
    for (int round = 0; round < 15; ++round) {
        World world(40, 16);
        // Tombstones here and there, so that claimers meet in different places of a chain.
        for (int n = 0; n < 30; ++n)
            world.add("old" + std::to_string(n), policy());
        world.segment.header->epoch.fetch_add(1);
        ASSERT_EQ(shm::free_unused(world.segment, 1), 30U);
        this->run(
            world,
            [&](const Worker& worker) {
                std::vector<std::uint32_t> order(kMembers);
                std::iota(order.begin(), order.end(), 0U);
                Random random(worker.index + 100U * static_cast<unsigned>(round));
                for (std::uint32_t n = kMembers - 1; n > 0; --n)
                    std::swap(order[n], order[random.below(n + 1)]);
                if (round % 2 == 0) std::iota(order.begin(), order.end(), 0U);  // all after the same one
                meet(world.board, worker.workers);
                for (const std::uint32_t member : order) {
                    std::uint32_t index = 0;
                    BindResult result = BindResult::busy;
                    for (int attempt = 0; attempt < 100'000 && result == BindResult::busy; ++attempt) {
                        result = shm::bind(world.segment, identity("m" + std::to_string(member)), world.epoch(),
                                           worker.pid + worker.index, index);
                    }
                    world.board.expect(result == BindResult::bound, "never bound");
                    world.board.counter[worker.index * kMembers + member] = index;
                }
            },
            8);
        std::set<std::uint64_t> used;
        for (std::uint32_t member = 0; member < kMembers; ++member) {
            const std::uint64_t index = world.board.counter[member];
            EXPECT_TRUE(used.insert(index).second) << "one slot for two members";
            for (unsigned worker = 1; worker < 8; ++worker) {
                EXPECT_EQ(world.board.counter[worker * kMembers + member].load(), index) << "two slots for one member";
            }
        }
        std::uint32_t ready = 0;
        for (std::uint32_t i = 0; i < 40; ++i)
            ready += world.segment.is_ready(i) ? 1 : 0;
        EXPECT_EQ(ready, kMembers);
    }
}

// Members added at run time are bound in the new epoch while the parent frees what nobody has bound yet.
TYPED_TEST(TableAtOnce, WhatIsBoundIsNotFreedAndWhatIsFreedIsNotBound) {
    constexpr std::uint32_t kMembers = 12;
    for (int round = 0; round < 25; ++round) {
        World world(kMembers, 16);  // full: a slot that is freed is the only one for whoever comes next
        for (std::uint32_t n = 0; n < kMembers; ++n)
            world.add("m" + std::to_string(n), policy());
        world.segment.header->epoch.fetch_add(1);
        this->run(world, [&](const Worker& worker) {
            meet(world.board, worker.workers);
            if (worker.index == 0) {
                for (int n = 0; n < 50; ++n)
                    shm::free_unused(world.segment, worker.pid);
                return;
            }
            Random random(worker.index + 100U * static_cast<unsigned>(round));
            for (std::uint32_t n = 0; n < kMembers; ++n) {
                const std::uint32_t member = random.below(kMembers * 2);
                std::uint32_t index = 0;
                const BindResult result = shm::bind(world.segment, identity("m" + std::to_string(member)),
                                                    world.epoch(), worker.pid + worker.index, index);
                if (result == BindResult::bound) world.board.counter[worker.index * 64 + member] = index + 1;
            }
        });
        shm::free_unused(world.segment, 1);
        for (std::uint32_t member = 0; member < kMembers * 2; ++member) {
            std::set<std::uint64_t> indexes;
            for (unsigned worker = 1; worker < 4; ++worker) {
                const std::uint64_t index = world.board.counter[worker * 64 + member];
                if (index != 0) indexes.insert(index - 1);
            }
            ASSERT_LE(indexes.size(), 1U) << "two slots for one member";
            if (indexes.empty()) continue;
            const auto index = static_cast<std::uint32_t>(*indexes.begin());
            EXPECT_TRUE(world.segment.is_ready(index)) << "freed although bound";
            EXPECT_STREQ(world.segment.slots[index].identity.name, ("m" + std::to_string(member)).c_str());
        }
    }
}

TEST(TableWhileItChanges, IdentitiesAreReadWholeOrNotAtAll) {
    if (!SingleStep::is_possible()) GTEST_SKIP() << "this system does not let a process trace its child";
    const World world(1);
    // Of the n-th member and the next one each letter differs.
    const auto member = [](unsigned n) {
        const char letter = static_cast<char>('a' + n % 26);
        return identity(std::string(300, letter), "balancer://" + std::string(80, letter));
    };
    shm::Atomic64& whole = world.board.counter[0];
    shm::Atomic64& torn = world.board.counter[1];
    shm::Atomic64& none = world.board.counter[2];
    SingleStep child([&] {
        while (world.board.stop == 0) {
            shm::Identity seen;
            const bool is_there = shm::read_identity(world.segment, 0, seen);
            const bool is_whole = seen.balancer[90] == seen.name[0] && seen.name[0] == seen.name[299];
            ++(is_there ? is_whole ? whole : torn : none);
        }
    });
    // The slot gets its next member while the child is anywhere in its look.
    for (unsigned n = 0; n < 50; ++n) {
        (void)world.bound(member(n), 1);
        for (unsigned steps = 0; steps < (n == 0 ? 30'000 : 500 + n); ++steps)
            ASSERT_TRUE(child.step());
        world.restart();
        ASSERT_EQ(shm::free_unused(world.segment, 1), 1U);
    }
    world.board.stop = 1;
    child.run_on();
    EXPECT_GT(whole, 0U);
    EXPECT_GT(none, 0U);
    EXPECT_EQ(torn, 0U);
}

TYPED_TEST(TableAtOnce, ChildrenThatRegisterAtOnceGetAColumnEach) {
    World world(1, 64);
    this->run(
        world,
        [&](const Worker& worker) {
            meet(world.board, worker.workers);
            for (std::uint32_t n = 0; n < 7; ++n) {
                bool is_stale = false;
                const std::uint32_t pid = 100'000 + worker.index * 8 + n;
                const std::uint32_t column = shm::register_child(world.segment, pid, world.epoch(), is_stale);
                world.board.expect(column != shm::kNoColumn && !is_stale, "no column");
                world.board.expect(world.segment.header->columns_used > column, "a column beyond columns_used");
                world.board.counter[column].fetch_add(1);
            }
        },
        8);
    for (std::uint32_t column = 0; column < 64; ++column)
        EXPECT_LE(world.board.counter[column].load(), 1U);
    std::uint64_t registered = 0;
    for (std::uint32_t column = 0; column < 64; ++column)
        registered += world.board.counter[column];
    EXPECT_EQ(registered, 56U);
}

}  // namespace
}  // namespace cb::test
