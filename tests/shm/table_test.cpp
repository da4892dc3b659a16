// The table of member slots: who gets which, and how slots and columns come back.
#include "shm/table.hpp"

#include <gtest/gtest.h>

#include <set>

#include "executors.hpp"
#include "shm/recorder.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::State;
using shm::BindResult;
using shm::Identity;

constexpr std::uint32_t kChild = 1001;

TEST(Bind, FindsTheSameSlotAgainInEveryProcessAndEpoch) {
    World world;
    const std::uint32_t index = world.bound(identity("http://a"));
    EXPECT_EQ(world.bound(identity("http://a")), index);
    EXPECT_EQ(world.bound(identity("http://a"), 1002), index);
    world.restart();
    EXPECT_EQ(world.bound(identity("http://a"), 1003), index);
    EXPECT_EQ(world.segment.slots[index].epoch.load(), 2U);
}

TEST(Bind, KeepsMembersApartThatDifferInOneThingOnly) {
    const Identity members[] = {
        identity("http://a", "balancer://a", "", 1),
        identity("http://a", "balancer://ab", "", 1),
        identity("http://ab", "balancer://a", "", 1),
        identity("http://a", "balancer://a", "/run/1.sock", 1),
        identity("http://a", "balancer://a", "/run/2.sock", 1),
        identity("http://a", "balancer://a", "", 2),
        identity("http://a", "", "", 1),
        identity("", "http://a", "", 1),
    };
    for (const std::uint32_t capacity : {8U, 9U, 64U}) {  // with 8 every chain runs into the others
        World world(capacity);
        std::set<std::uint32_t> slots;
        for (const Identity& member : members)
            slots.insert(world.bound(member));
        EXPECT_EQ(slots.size(), 8U);
        for (const Identity& member : members)
            EXPECT_TRUE(slots.contains(world.bound(member)));
    }
}

TEST(Bind, KeepsMembersApartWhoseHashesAreEqual) {
    const Identity one = identity("http://h647808");
    const Identity other = identity("http://h1991618");
    constexpr std::uint64_t kOfTheDirectory = (1ULL << 40U) - 1;
    ASSERT_EQ(shm::hash_bytes(&one, sizeof one, 0) & kOfTheDirectory,
              shm::hash_bytes(&other, sizeof other, 0) & kOfTheDirectory);
    World world(2);
    EXPECT_NE(world.bound(one), world.bound(other));
    EXPECT_EQ(world.bound(one), world.bound(one));
    EXPECT_NE(world.bound(one), world.bound(other));
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
    for (const char* name : {"a", "b", "c"})
        world.bound(identity(name));
    std::uint32_t index = 0;
    EXPECT_EQ(shm::bind(world.segment, identity("d"), 1, kChild, index), BindResult::full);
    world.bound(identity("a"));
    world.restart();
    world.bound(identity("a"));
    EXPECT_EQ(shm::free_unused(world.segment, 1), 2U);
    world.bound(identity("d"));
    world.bound(identity("e"));
    EXPECT_EQ(shm::bind(world.segment, identity("f"), 2, kChild, index), BindResult::full);
}

TEST(Bind, IsBusyWhileAnotherClaimsTheSameAndTheParentFreesADeadOnesClaim) {
    World world;
    std::uint32_t index = 0;
    BindResult meanwhile{};
    {
        Between between("bind.claimed", [&] { meanwhile = shm::bind(world.segment, identity("a"), 1, 1002, index); });
        world.bound(identity("a"), 1001);
        ASSERT_TRUE(between.has_happened());
    }
    EXPECT_EQ(meanwhile, BindResult::busy);
    EXPECT_EQ(world.bound(identity("a"), 1002), world.bound(identity("a"), 1001));
}

TEST(Find, FindsWhatIsBoundAndClaimsNothing) {
    World world(3);
    std::uint32_t index = 77;
    EXPECT_FALSE(shm::find(world.segment, identity("a"), index));
    const std::uint32_t of_a = world.bound(identity("a"));
    const std::uint32_t of_b = world.bound(identity("b"));
    EXPECT_TRUE(shm::find(world.segment, identity("a"), index));
    EXPECT_EQ(index, of_a);
    EXPECT_TRUE(shm::find(world.segment, identity("b"), index));
    EXPECT_EQ(index, of_b);
    EXPECT_FALSE(shm::find(world.segment, identity("a", "balancer://bb"), index));
    world.restart();
    EXPECT_TRUE(shm::find(world.segment, identity("a"), index));
    EXPECT_EQ(shm::free_unused(world.segment, 1), 2U) << "to be found is not to be used";
    EXPECT_FALSE(shm::find(world.segment, identity("a"), index));
}

TEST(Find, DoesNotFindAHalfMadeClaim) {
    World world;
    std::uint32_t index = 0;
    bool is_found = true;
    const Between between("bind.written", [&] { is_found = shm::find(world.segment, identity("a"), index); });
    world.bound(identity("a"));
    EXPECT_FALSE(is_found);
}

TEST(Bind, OfAMemberWhoseSlotIsFreedAndTakenByAnotherInThatMomentNeverMergesTheTwo) {
    World world(1);  // one place only, so that the other member gets the same
    world.bound(identity("a"));
    world.restart();
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
        const std::uint32_t index = world.bound(identity("a"));
        world.restart();
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

TEST(Bind, OfAMemberInTheInstantInWhichItIsFreedKeepsIt) {
    World world;
    const std::uint32_t index = world.bound(identity("a"));
    world.restart();
    std::uint32_t mine = 0xFFFFU;
    const Between between("free.begin", [&] { mine = world.bound(identity("a")); });
    EXPECT_EQ(shm::free_unused(world.segment, 1), 0U) << "it was bound between the look and the claim";
    ASSERT_TRUE(between.has_happened());
    EXPECT_EQ(mine, index);
    EXPECT_TRUE(world.segment.is_ready(index));
}

/// Two places. In the first of `late`'s chain stands another member, so `late` belongs into the second.
class Chain : public testing::Test {
  protected:
    Chain() {
        const std::uint32_t first = world.bound(identity("early"));
        for (int n = 0;; ++n) {
            late = identity("late" + std::to_string(n));
            if (shm::hash_bytes(&late, sizeof late, 0) % 2 == first) return;
        }
    }
    World world{2};
    Identity late;
};

TEST_F(Chain, IsWalkedBeyondATombstone) {
    const std::uint32_t index = world.bound(late);
    world.restart();
    world.bound(late);
    ASSERT_EQ(shm::free_unused(world.segment, 1), 1U) << "the early one";
    std::uint32_t found = 0xFFFFU;
    EXPECT_TRUE(shm::find(world.segment, late, found));
    EXPECT_EQ(found, index);
    EXPECT_EQ(world.bound(late), index);
}

TEST_F(Chain, IsLookedAtAgainByAClaimerSoThatOneMemberNeverHasTwoSlots) {
    for (const char* place : {"bind.begin", "bind.claimed"}) {
        World two(world);
        two.restart();
        // A claimer has seen no tombstone and is about to take the second place; the first one becomes free, and
        // another claimer of the same member sees that.
        std::uint32_t others = 0xFFFFU;
        BindResult other{};
        const Between between(place, [&] {
            ASSERT_EQ(shm::free_unused(two.segment, 1), 1U);
            other = shm::bind(two.segment, late, two.epoch(), 1002, others);
        });
        std::uint32_t mine = 0xFFFFU;
        const BindResult result = shm::bind(two.segment, late, two.epoch(), 1001, mine);
        ASSERT_TRUE(between.has_happened());
        EXPECT_FALSE(result == BindResult::bound && other == BindResult::bound && mine != others) << place;
        EXPECT_EQ(two.bound(late, 1001), two.bound(late, 1002)) << place;
        EXPECT_EQ((two.segment.is_ready(0) ? 1 : 0) + (two.segment.is_ready(1) ? 1 : 0), 1) << place;
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
        world.restart();
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
    shm::note_failed_call(slot, 1, {.outcome = core::Outcome::timeout, .latency = 2, .path = "/path"}, true);
    shm::note_duration(slot.call_duration, 1);
    shm::note_duration(slot.probe_duration, 60'000);
    slot.flapping = slot.probe_rate = slot.retries[3] = 1;
    slot.flags = shm::kOwnsIgnoreErrors;
    shm::Slot& next = next_life();
    ASSERT_EQ(&next, &slot);
    EXPECT_EQ(state_of(next), State::closed);
    EXPECT_GT(word_of(next).generation, before);
    EXPECT_EQ(word_of(next).level, 0U);
    EXPECT_EQ(shm::numbered_word(next).number, 0U) << "its own first change is number 1";
    EXPECT_EQ(next.reports.load(), 0U) << "no gap to log";
    EXPECT_EQ(next.flags.load(), 0U);
    EXPECT_EQ(shm::sums_now(next, rules, world.parent()).calls, 0U);
    const auto* const totals = reinterpret_cast<const shm::Atomic64*>(&next.totals);
    for (std::size_t n = 0; n < sizeof next.totals / sizeof *totals; ++n)
        EXPECT_EQ(totals[n].load(), 0U) << n;
    const auto* const records = &next.probe_rate;
    for (std::size_t n = 0; &records[n] != reinterpret_cast<const shm::Atomic64*>(&next.recorder + 1); ++n)
        EXPECT_EQ(records[n].load(), 0U) << "of another member's history, durations and failing calls: " << n;
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
        world.restart();
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
        for (int i = 0; i < 1000; ++i)
            call(slot, of_time, world.parent(), kBad);
        world.pass(625);
    }
    world.restart();
    ASSERT_EQ(shm::free_unused(world.segment, 1), 1U);
    shm::Slot& next = world.add("b", of_calls);
    call(next, of_calls, world.parent(), kGood);
    EXPECT_EQ(shm::sums_now(next, of_calls, world.parent()).calls, 1U);
    EXPECT_EQ(shm::sums_now(next, of_calls, world.parent()).failures, 0U);
}

INSTANTIATE_TEST_SUITE_P(FirstBoundIn, NextLife, testing::Values(0U, 1U, 5U),
                         [](const auto& param) { return "Epoch" + std::to_string(param.param); });

}  // namespace
}  // namespace cb::test
