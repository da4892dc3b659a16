// The table of member slots: who gets which, and how slots and columns come back.
#include "shm/table.hpp"

#include <gtest/gtest.h>

#include <set>

#include "executors.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::State;
using shm::BindResult;
using shm::Identity;

constexpr std::uint32_t kChild = 1001;

/// The slot's index; fails the test if there is none.
std::uint32_t bound(const World& world, const Identity& identity, std::uint32_t pid = kChild) {
    std::uint32_t index = 0xFFFFU;
    EXPECT_EQ(shm::bind(world.segment, identity, world.epoch(), pid, index), BindResult::bound);
    return index;
}

/// What the parent does at a restart, save the binding of what is configured.
void restart(World& world) {
    world.segment.header->epoch.fetch_add(1);
}

std::uint32_t register_child(const World& world, std::uint32_t pid, std::uint64_t epoch) {
    bool is_stale = true;
    const std::uint32_t column = shm::register_child(world.segment, pid, epoch, is_stale);
    EXPECT_FALSE(is_stale);
    return column;
}

TEST(Bind, FindsTheSameSlotAgainInEveryProcessAndEpoch) {
    World world;
    const std::uint32_t index = bound(world, identity("http://a"));
    EXPECT_EQ(bound(world, identity("http://a")), index);
    EXPECT_EQ(bound(world, identity("http://a"), 1002), index);
    restart(world);
    EXPECT_EQ(bound(world, identity("http://a"), 1003), index);
    EXPECT_EQ(world.segment.slots[index].epoch.load(), 2U);
}

TEST(Bind, KeepsMembersApartThatDifferInOneThingOnly) {
    const Identity members[] = {
        identity("http://a", "balancer://a", "", 1),      identity("http://a", "balancer://ab", "", 1),
        identity("http://ab", "balancer://a", "", 1),     identity("http://a", "balancer://a", "/run/1.sock", 1),
        identity("http://a", "balancer://a", "/run/2.sock", 1), identity("http://a", "balancer://a", "", 2),
        identity("http://a", "", "", 1),                  identity("", "http://a", "", 1),
    };
    for (const std::uint32_t capacity : {8U, 9U, 64U}) {  // with 8 every chain runs into the others
        World world(capacity);
        std::set<std::uint32_t> slots;
        for (const Identity& member : members) slots.insert(bound(world, member));
        EXPECT_EQ(slots.size(), 8U);
        for (const Identity& member : members) EXPECT_TRUE(slots.contains(bound(world, member)));
    }
}

TEST(Bind, KeepsMembersApartWhoseHashesAreEqual) {
    const Identity one = identity("http://h647808");
    const Identity other = identity("http://h1991618");
    constexpr std::uint64_t kOfTheDirectory = (1ULL << 40U) - 1;
    ASSERT_EQ(shm::hash_bytes(&one, sizeof one, 0) & kOfTheDirectory,
              shm::hash_bytes(&other, sizeof other, 0) & kOfTheDirectory);
    World world(2);
    EXPECT_NE(bound(world, one), bound(world, other));
    EXPECT_EQ(bound(world, one), bound(world, one));
    EXPECT_NE(bound(world, one), bound(world, other));
}

TEST(Bind, RefusesTextThatDoesNotFitRatherThanMergingTwoMembers) {
    Identity made;
    const auto fits = [&made](std::size_t balancer, std::size_t name, std::size_t path) {
        return shm::make_identity(made, 1, std::string(balancer, 'b').c_str(), std::string(name, 'n').c_str(),
                                  std::string(path, 'p').c_str());
    };
    EXPECT_TRUE(fits(95, 383, 95));
    EXPECT_FALSE(fits(96, 1, 1));
    EXPECT_FALSE(fits(1, 384, 1));
    EXPECT_FALSE(fits(1, 1, 96));
    EXPECT_FALSE(fits(1, 100'000, 1));
    EXPECT_TRUE(fits(0, 0, 0));
}

TEST(Bind, SaysWhenTheSegmentIsFullAndStillFindsWhatIsThere) {
    World world(3);
    for (const char* name : {"a", "b", "c"}) bound(world, identity(name));
    std::uint32_t index = 0;
    EXPECT_EQ(shm::bind(world.segment, identity("d"), 1, kChild, index), BindResult::full);
    bound(world, identity("a"));
    restart(world);
    bound(world, identity("a"));
    EXPECT_EQ(shm::free_unused(world.segment, 1), 2U);
    bound(world, identity("d"));
    bound(world, identity("e"));
    EXPECT_EQ(shm::bind(world.segment, identity("f"), 2, kChild, index), BindResult::full);
}

TEST(Bind, IsBusyWhileAnotherClaimsTheSameAndTheParentFreesADeadOnesClaim) {
    World world;
    std::uint32_t index = 0;
    BindResult meanwhile{};
    {
        Between between("bind.claimed", [&] { meanwhile = shm::bind(world.segment, identity("a"), 1, 1002, index); });
        bound(world, identity("a"), 1001);
        ASSERT_TRUE(between.has_happened());
    }
    EXPECT_EQ(meanwhile, BindResult::busy);
    EXPECT_EQ(bound(world, identity("a"), 1002), bound(world, identity("a"), 1001));
}

TEST(Find, FindsWhatIsBoundAndClaimsNothing) {
    World world(3);
    std::uint32_t index = 77;
    EXPECT_FALSE(shm::find(world.segment, identity("a"), index));
    const std::uint32_t of_a = bound(world, identity("a"));
    const std::uint32_t of_b = bound(world, identity("b"));
    EXPECT_TRUE(shm::find(world.segment, identity("a"), index));
    EXPECT_EQ(index, of_a);
    EXPECT_TRUE(shm::find(world.segment, identity("b"), index));
    EXPECT_EQ(index, of_b);
    EXPECT_FALSE(shm::find(world.segment, identity("a", "balancer://bb"), index));
    restart(world);
    EXPECT_TRUE(shm::find(world.segment, identity("a"), index));
    EXPECT_EQ(shm::free_unused(world.segment, 1), 2U) << "to be found is not to be used";
    EXPECT_FALSE(shm::find(world.segment, identity("a"), index));
}

TEST(Find, DoesNotFindAHalfMadeClaim) {
    World world;
    std::uint32_t index = 0;
    bool is_found = true;
    const Between between("bind.written", [&] { is_found = shm::find(world.segment, identity("a"), index); });
    bound(world, identity("a"));
    EXPECT_FALSE(is_found);
}

TEST(Bind, OfAMemberWhoseSlotIsFreedAndTakenByAnotherInThatMomentNeverMergesTheTwo) {
    World world(1);  // one place only, so that the other member gets the same
    bound(world, identity("a"));
    restart(world);
    BindResult other{};
    std::uint32_t others = 0xFFFFU;
    std::uint32_t mine = 0xFFFFU;
    Between between("bind.found", [&] {
        ASSERT_EQ(shm::free_unused(world.segment, 1), 1U);
        other = shm::bind(world.segment, identity("b"), world.epoch(), 1002, others);
    });
    const BindResult result = shm::bind(world.segment, identity("a"), world.epoch(), 1001, mine);
    ASSERT_TRUE(between.has_happened());
    EXPECT_EQ(other, BindResult::bound);
    EXPECT_NE(result, BindResult::bound) << "the slot is b's now";
}

TEST(Bind, OfAMemberThatIsBeingFreedKeepsItsSlotOrGetsNone) {
    for (const char* place : {"bind.found", "bind.epoch"}) {
        World world;
        const std::uint32_t index = bound(world, identity("a"));
        restart(world);
        std::uint32_t freed = 0;
        Between between(place, [&] { freed = shm::free_unused(world.segment, 1); });
        std::uint32_t mine = 0xFFFFU;
        const BindResult result = shm::bind(world.segment, identity("a"), world.epoch(), kChild, mine);
        ASSERT_TRUE(between.has_happened());
        EXPECT_EQ(result == BindResult::bound, freed == 0) << place;
        if (freed == 0) {
            EXPECT_EQ(mine, index);
            EXPECT_TRUE(world.segment.is_ready(index));
        }
    }
}

// --- a slot's next life ---

/// Frees the slot of "a" and gives it to "b"; `first_epoch` is the one in which "a" was bound.
class NextLife : public testing::TestWithParam<std::uint64_t> {
  protected:
    NextLife() {
        world.segment.header->epoch = GetParam();
        rules.consecutive_failures = 1;
    }
    shm::Slot& next_life() {
        restart(world);
        EXPECT_EQ(shm::free_unused(world.segment, 1), 1U);
        EXPECT_FALSE(world.segment.is_ready(0));
        return world.add("b", rules);
    }
    World world{1};
    core::Policy rules = policy();
};

TEST_P(NextLife, HasNoHistoryAndAnAdvancedGeneration) {
    shm::Slot& slot = world.add("a", rules);
    call(slot, rules, world.parent(), kBad);
    ASSERT_EQ(state_of(slot), State::open);
    const std::uint32_t before = word_of(slot).generation;
    shm::Slot& next = next_life();
    ASSERT_EQ(&next, &slot);
    EXPECT_EQ(state_of(next), State::closed);
    EXPECT_GT(word_of(next).generation, before);
    EXPECT_EQ(word_of(next).level, 0U);
    EXPECT_EQ(next.reports.load(), word_of(next).generation) << "no gap to log";
    EXPECT_EQ(shm::sums_now(next, rules, world.parent()).calls, 0U);
    const auto* const totals = reinterpret_cast<const shm::Atomic64*>(&next.totals);
    for (std::size_t n = 0; n < sizeof next.totals / sizeof *totals; ++n) EXPECT_EQ(totals[n].load(), 0U) << n;
}

TEST_P(NextLife, IsNotDecidedByALateResultOfTheLifeBefore) {
    for (const bool was_used : {false, true}) {
        shm::Slot& slot = world.add("a", rules);
        if (was_used) call(slot, rules, world.parent(), kGood);
        shm::Admission late = ask(slot, rules, world.process(kChild));
        shm::Slot& next = next_life();
        shm::finish(slot, rules, world.process(kChild), late.permit, kFatal, {});
        EXPECT_EQ(state_of(next), State::closed) << was_used;
        EXPECT_EQ(shm::sums_now(next, rules, world.parent()).calls, 0U);
        EXPECT_EQ(next.totals.late.load(), 1U);
        restart(world);
        EXPECT_EQ(shm::free_unused(world.segment, 1), 1U);
    }
}

TEST_P(NextLife, CountsNothingThatStandsInTheWindowOfTheLifeBefore) {
    core::Policy of_time = untrippable();
    core::Policy of_calls = untrippable();
    of_calls.window = {0, 4080};
    world.board.now = (4096 + 16 + 15) * 10'000;  // as in AChangedShape: buckets that have the bits of new cells
    shm::Slot& slot = world.add("a", of_time);
    for (int n = 0; n < 16; ++n) {
        for (int i = 0; i < 1000; ++i) call(slot, of_time, world.parent(), kBad);
        world.pass(625);
    }
    restart(world);
    ASSERT_EQ(shm::free_unused(world.segment, 1), 1U);
    shm::Slot& next = world.add("b", of_calls);
    call(next, of_calls, world.parent(), kGood);
    EXPECT_EQ(shm::sums_now(next, of_calls, world.parent()).calls, 1U);
    EXPECT_EQ(shm::sums_now(next, of_calls, world.parent()).failures, 0U);
}

INSTANTIATE_TEST_SUITE_P(FirstBoundIn, NextLife, testing::Values(0U, 1U, 5U),
                         [](const auto& param) { return "Epoch" + std::to_string(param.param); });

// --- children and what the parent may free ---

TEST(FreeUnused, FreesWhatNobodyBoundSinceTheRestartAndNothingElse) {
    World world;
    const std::uint32_t kept = bound(world, identity("kept"));
    const std::uint32_t gone = bound(world, identity("gone"));
    EXPECT_EQ(shm::free_unused(world.segment, 1), 0U) << "all are of this epoch";
    restart(world);
    bound(world, identity("kept"));
    EXPECT_EQ(shm::free_unused(world.segment, 1), 1U);
    EXPECT_TRUE(world.segment.is_ready(kept));
    EXPECT_FALSE(world.segment.is_ready(gone));
    EXPECT_EQ(shm::free_unused(world.segment, 1), 0U);
}

TEST(FreeUnused, WaitsForEveryChildOfAnEarlierEpoch) {
    World world;
    bound(world, identity("gone"));
    register_child(world, 1001, 1);
    register_child(world, 1002, 1);
    restart(world);
    register_child(world, 1003, 2);
    EXPECT_EQ(shm::free_unused(world.segment, 1), 0U);
    world.child_exited(1001, policy());
    EXPECT_EQ(shm::free_unused(world.segment, 1), 0U);
    world.child_exited(1002, policy());
    EXPECT_EQ(shm::free_unused(world.segment, 1), 1U) << "a child of this epoch does not matter";
}

TEST(FreeUnused, FreesWhatEvenTheOldestChildCannotUse) {
    World world;
    bound(world, identity("older"));
    restart(world);
    bound(world, identity("old"));
    register_child(world, 1001, 2);
    restart(world);
    EXPECT_EQ(shm::free_unused(world.segment, 1), 1U) << "gone before that child was forked";
    EXPECT_EQ(bound(world, identity("old")), bound(world, identity("old")));
    restart(world);
    EXPECT_EQ(shm::free_unused(world.segment, 1), 0U) << "the child of epoch 2 may use it";
    world.child_exited(1001, policy());
    EXPECT_EQ(shm::free_unused(world.segment, 1), 1U);
}

TEST(FreeUnused, SparesAMemberThatAnOldChildAddedAtRunTimeAsLongAsThatChildLives) {
    World world;
    register_child(world, 1001, 1);
    restart(world);
    std::uint32_t index = 0;
    ASSERT_EQ(shm::bind(world.segment, identity("late"), 1, 1001, index), BindResult::bound);
    EXPECT_EQ(shm::free_unused(world.segment, 1), 0U);
    world.child_exited(1001, policy());
    EXPECT_EQ(shm::free_unused(world.segment, 1), 1U);
}

TEST(FreeUnused, DoesNotTakeAnOldChildsBindForOneOfTheNewEpoch) {
    World world;
    bound(world, identity("a"));
    restart(world);
    const std::uint32_t index = bound(world, identity("a"));
    std::uint32_t again = 0;
    ASSERT_EQ(shm::bind(world.segment, identity("a"), 1, 1001, again), BindResult::bound);
    EXPECT_EQ(world.segment.slots[index].epoch.load(), 2U) << "an older bind does not lower it";
}

TEST(RegisterChild, TellsAChildThatWasForkedBeforeSlotsWereFreed) {
    World world;
    bound(world, identity("gone"));
    restart(world);
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
    for (const std::uint32_t pid : {1001U, 1002U, 1003U}) columns.insert(register_child(world, pid, 1));
    EXPECT_EQ(columns, (std::set<std::uint32_t>{0, 1, 2}));
    EXPECT_EQ(world.segment.header->columns_used.load(), 3U);
    bool is_stale = false;
    EXPECT_EQ(shm::register_child(world.segment, 1004, 1, is_stale), shm::kNoColumn);
    world.child_exited(1002, policy());
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
    world.child_exited(1001, policy());
    EXPECT_EQ(permits[0].cell->load(), 0U);
    EXPECT_EQ(permits[1].cell->load(), 1U);
    world.child_exited(1002, policy());
    EXPECT_EQ(shm::validate(world.segment), nullptr);
}

TEST(ChildExited, OfAPidThatNeverRegisteredChangesNothing) {
    World world;
    shm::Slot& slot = world.add("a", policy());
    register_child(world, 1001, 1);
    world.child_exited(4711, policy());
    EXPECT_EQ(register_child(world, 1002, 1), 1U);
    EXPECT_EQ(state_of(slot), State::closed);
}

// --- recognising a segment ---

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
