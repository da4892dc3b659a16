// Children and what the parent may free: registration, columns, and slots that nobody can use any more.
#include <gtest/gtest.h>

#include <set>

#include "shm/table.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::State;
using shm::BindResult;

std::uint32_t register_child(const World& world, std::uint32_t pid, std::uint64_t epoch) {
    bool is_stale = true;
    const std::uint32_t column = shm::register_child(world.segment, pid, epoch, is_stale);
    EXPECT_FALSE(is_stale);
    return column;
}

TEST(FreeUnused, FreesWhatNobodyBoundSinceTheRestartAndNothingElse) {
    World world;
    const std::uint32_t kept = world.bound(identity("kept"));
    const std::uint32_t gone = world.bound(identity("gone"));
    EXPECT_EQ(shm::free_unused(world.segment, 1), 0U) << "all are of this epoch";
    world.restart();
    world.bound(identity("kept"));
    EXPECT_EQ(shm::free_unused(world.segment, 1), 1U);
    EXPECT_TRUE(world.segment.is_ready(kept));
    EXPECT_FALSE(world.segment.is_ready(gone));
    EXPECT_EQ(shm::free_unused(world.segment, 1), 0U);
}

TEST(FreeUnused, WaitsForEveryChildOfAnEarlierEpoch) {
    World world;
    world.bound(identity("gone"));
    register_child(world, 1001, 1);
    register_child(world, 1002, 1);
    world.restart();
    register_child(world, 1003, 2);
    EXPECT_EQ(shm::free_unused(world.segment, 1), 0U);
    world.child_exited(1001);
    EXPECT_EQ(shm::free_unused(world.segment, 1), 0U);
    world.child_exited(1002);
    EXPECT_EQ(shm::free_unused(world.segment, 1), 1U) << "a child of this epoch does not matter";
}

TEST(FreeUnused, FreesWhatEvenTheOldestChildCannotUse) {
    World world;
    world.bound(identity("older"));
    world.restart();
    world.bound(identity("old"));
    register_child(world, 1001, 2);
    world.restart();
    EXPECT_EQ(shm::free_unused(world.segment, 1), 1U) << "gone before that child was forked";
    EXPECT_EQ(world.bound(identity("old")), world.bound(identity("old")));
    world.restart();
    EXPECT_EQ(shm::free_unused(world.segment, 1), 0U) << "the child of epoch 2 may use it";
    world.child_exited(1001);
    EXPECT_EQ(shm::free_unused(world.segment, 1), 1U);
}

TEST(FreeUnused, SparesAMemberThatAnOldChildAddedAtRunTimeAsLongAsThatChildLives) {
    World world;
    register_child(world, 1001, 1);
    world.restart();
    std::uint32_t index = 0;
    ASSERT_EQ(shm::bind(world.segment, identity("late"), 1, 1001, index), BindResult::bound);
    EXPECT_EQ(shm::free_unused(world.segment, 1), 0U);
    world.child_exited(1001);
    EXPECT_EQ(shm::free_unused(world.segment, 1), 1U);
}

TEST(FreeUnused, DoesNotTakeAnOldChildsBindForOneOfTheNewEpoch) {
    World world;
    world.bound(identity("a"));
    world.restart();
    const std::uint32_t index = world.bound(identity("a"));
    std::uint32_t again = 0;
    ASSERT_EQ(shm::bind(world.segment, identity("a"), 1, 1001, again), BindResult::bound);
    EXPECT_EQ(world.segment.slots[index].epoch.load(), 2U) << "an older bind does not lower it";
}

TEST(RegisterChild, TellsAChildThatWasForkedBeforeSlotsWereFreed) {
    World world;
    world.bound(identity("gone"));
    world.restart();
    EXPECT_EQ(shm::free_unused(world.segment, 1), 1U);
    bool is_stale = false;
    (void)shm::register_child(world.segment, 1001, 1, is_stale);
    EXPECT_TRUE(is_stale) << "forked in epoch 1, came late";
    (void)shm::register_child(world.segment, 1002, 2, is_stale);
    EXPECT_FALSE(is_stale);
}

TEST(RegisterChild, GivesEveryChildItsOwnColumnUntilNoneIsLeft) {
    World world(2, 3);
    std::set<std::uint32_t> columns;
    for (const std::uint32_t pid : {1001U, 1002U, 1003U})
        columns.insert(register_child(world, pid, 1));
    EXPECT_EQ(columns, (std::set<std::uint32_t>{0, 1, 2}));
    EXPECT_EQ(world.segment.header->columns_used.load(), 3U);
    bool is_stale = false;
    EXPECT_EQ(shm::register_child(world.segment, 1004, 1, is_stale), shm::kNoColumn);
    world.child_exited(1002);
    EXPECT_EQ(register_child(world, 1005, 1), 1U);
}

// The parent cannot see such a child, so it would not wait for it before it frees a slot.
TEST(RegisterChild, LetsAChildThatGotNoColumnRunWithoutBreakers) {
    World world(2, 1);
    register_child(world, 1001, 1);
    bool is_stale = false;
    EXPECT_EQ(shm::register_child(world.segment, 1002, 1, is_stale), shm::kNoColumn);
    EXPECT_TRUE(is_stale);
}

TEST(ChildExited, ClearsItsCallsInFlightAndNobodyElses) {
    World world(4, 4);
    shm::Slot& slot = world.add("a", policy());
    const std::uint32_t dead = register_child(world, 1001, 1);
    const std::uint32_t alive = register_child(world, 1002, 1);
    const shm::Permit permits[] = {
        shm::admit(slot, policy(), world.process(1001), world.in_flight(slot, dead), true, kLease).permit,
        shm::admit(slot, policy(), world.process(1002), world.in_flight(slot, alive), true, kLease).permit,
    };
    world.child_exited(1001);
    EXPECT_EQ(permits[0].cell->load(), 0U);
    EXPECT_EQ(permits[1].cell->load(), 1U);
    world.child_exited(1002);
    EXPECT_EQ(shm::validate(world.segment), nullptr);
}

TEST(ChildExited, OfAPidThatNeverRegisteredChangesNothing) {
    World world;
    shm::Slot& slot = world.add("a", policy());
    register_child(world, 1001, 1);
    world.child_exited(4711);
    EXPECT_EQ(register_child(world, 1002, 1), 1U);
    EXPECT_EQ(state_of(slot), State::closed);
}

TEST(ChildExited, GoesByThePolicyThatWasNotedInTheSlotLast) {
    World world;
    core::Policy rules = policy();
    rules.probes.round = rules.probes.concurrent = rules.probes.successes = core::kMaxNeutral;
    shm::Slot& slot = world.add("a", rules);
    rules.open_time.base = rules.open_time.max = 77'777;
    shm::configure(slot, rules, world.parent());
    EXPECT_EQ(shm::noted_policy(slot).open_time.base, 77'777U);
    EXPECT_EQ(shm::noted_policy(slot).minimum_calls, rules.minimum_calls);
    const shm::Process child = world.process(1001);
    EXPECT_TRUE(call(slot, rules, child, kFatal));
    world.pass(77'777);
    for (std::uint32_t i = 0; i < core::kMaxNeutral; ++i)
        EXPECT_EQ(ask(slot, rules, child).permit.kind, shm::PermitKind::probe);
    world.child_exited(1001);
    EXPECT_EQ(state_of(slot), State::open) << "so many probes have proved nothing";
    EXPECT_EQ(core::open_remaining(word_of(slot), world.board.now), 77'777U);
}

}  // namespace
}  // namespace cb::test
