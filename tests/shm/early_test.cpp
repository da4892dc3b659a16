// Probes before the open time is over, where nothing else can serve: what the control word has no room for.
#include <gtest/gtest.h>

#include "at_once.hpp"
#include "shm/early.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::EventKind;
using core::State;
using shm::Admission;
using shm::PermitKind;
using shm::Refusal;

class Early : public testing::Test {
  protected:
    Early() {
        rules.open_time.min = 300;
        rules.probes = {2, 2, 0, 2, 2};
        trip();
    }
    void trip() { call(slot, rules, one, kFatal); }
    /// A request that finds no other member.
    Admission last_resort() { return shm::admit(slot, rules, one, {}, true, kLease, nullptr, true); }
    [[nodiscard]] core::Millis left() const { return core::open_remaining(word_of(slot), world.board.now); }

    World world;
    core::Policy rules = policy();  // open for 1000 ms
    shm::Slot& slot = world.add("a", rules);
    shm::Process one = world.process(1001, &world.recorder);
};

TEST_F(Early, ComesNotBeforeTheMinimumHasPassedSinceItOpened) {
    for (const core::Millis passed : {0U, 150U, 149U}) {
        world.pass(passed);
        EXPECT_FALSE(shm::may_probe_early(slot, rules, one));
        EXPECT_EQ(last_resort().refusal, Refusal::open) << passed;
    }
    world.pass(1);
    EXPECT_TRUE(shm::may_probe_early(slot, rules, one));
    EXPECT_EQ(ask(slot, rules, one).refusal, Refusal::open) << "others find a member";
    EXPECT_EQ(last_resort().permit.kind, PermitKind::probe);
    EXPECT_EQ(state_of(slot), State::half_open);
    EXPECT_EQ(world.board.early_begun.load(), 1U);
}

TEST_F(Early, ComesNotBeforeTheMinimumToAProcessWhoseClockReadingIsEarlierThanTheOpening) {
    world.board.now -= 1;
    EXPECT_EQ(last_resort().refusal, Refusal::open);
    EXPECT_EQ(shm::time_to_probe(slot, rules, one, true), 300U);
}

TEST_F(Early, IsHeldByTheCapOverAllProcesses) {
    world.pass(300);
    Admission first = last_resort();
    Admission second = last_resort();
    EXPECT_EQ(second.permit.kind, PermitKind::probe);
    EXPECT_EQ(last_resort().refusal, Refusal::half_open);
    shm::finish(slot, rules, one, first.permit, kBad, {});
    world.pass(300);
    Admission third = last_resort();
    EXPECT_EQ(third.permit.kind, PermitKind::probe);
    EXPECT_EQ(last_resort().refusal, Refusal::half_open) << "the second one is still at the member";
    shm::cancel(slot, rules, one, second.permit);
    shm::cancel(slot, rules, one, third.permit);
}

TEST_F(Early, LeavesEndAndLevelAsTheyWereWhenItFailsAndWaitsForTheMinimumAgain) {
    world.pass(300);
    for (const core::Millis left_then : {700U, 400U, 100U}) {
        ASSERT_EQ(left(), left_then);
        Admission probe = last_resort();
        ASSERT_EQ(probe.permit.kind, PermitKind::probe) << left_then;
        shm::finish(slot, rules, one, probe.permit, kBad, {});
        EXPECT_EQ(state_of(slot), State::open);
        EXPECT_EQ(left(), left_then);
        EXPECT_EQ(word_of(slot).level, 0);
        EXPECT_EQ(last_resort().refusal, Refusal::open);
        world.pass(299);
        EXPECT_EQ(last_resort().refusal, left_then == 100 ? Refusal::none : Refusal::open);
        world.pass(1);
    }
    EXPECT_EQ(world.board.early_begun.load(), 3U);
    EXPECT_EQ(world.board.early_failed.load(), 3U);
    EXPECT_EQ(world.board.early_repeated.load(), 2U);
    EXPECT_EQ(slot.totals.early.load(), 3U);
}

TEST_F(Early, IsNoChangeOfStateForPeopleUntilItSucceeds) {
    const std::uint64_t changes = shm::numbered_word(slot).number;
    const std::uint64_t since = slot.since.load();
    world.pass(300);
    Admission probe = last_resort();
    EXPECT_EQ(shm::numbered_word(slot).number, changes);
    shm::finish(slot, rules, one, probe.permit, kBad, {});
    EXPECT_EQ(shm::numbered_word(slot).number, changes);
    EXPECT_EQ(slot.since.load(), since);
    world.pass(300);
    Admission first = last_resort();
    Admission second = last_resort();
    shm::finish(slot, rules, one, first.permit, kGood, {});
    shm::finish(slot, rules, one, second.permit, kGood, {});
    EXPECT_EQ(state_of(slot), State::closed);
    EXPECT_EQ(shm::numbered_word(slot).number, changes + 1);
    EXPECT_EQ(wrong_with_reports(world, slot), "");
    constexpr auto kOpen = static_cast<std::size_t>(State::open);
    EXPECT_EQ(slot.totals.transition[kOpen][static_cast<std::size_t>(State::closed)].load(), 1U);
    EXPECT_EQ(slot.totals.state_ms[kOpen].load(), 600U);
}

TEST_F(Early, IsNoFlapping) {
    for (int n = 0; n < 40; ++n) {
        world.pass(300);
        Admission probe = last_resort();
        if (probe.permit.kind == PermitKind::probe) shm::finish(slot, rules, one, probe.permit, kBad, {});
        if (n % 3 == 0) shm::operate(slot, rules, one, EventKind::reset), trip();
    }
    EXPECT_GT(slot.totals.early.load(), 10U);
    EXPECT_EQ(world.board.flapping.load(), 0U);
}

TEST_F(Early, OfADeadProcessIsNeutralAndTheRoundGoesOn) {
    world.pass(300);
    ASSERT_EQ(last_resort().permit.kind, PermitKind::probe);
    world.child_exited(1001);
    EXPECT_TRUE(word_of(slot).early);
    Admission probe = ask(slot, rules, one);
    ASSERT_EQ(probe.permit.kind, PermitKind::probe);
    shm::finish(slot, rules, one, probe.permit, kBad, {});
    EXPECT_EQ(left(), 700U);
}

TEST_F(Early, KeepsItsEndWhenTheWindowGetsAnotherShape) {
    world.pass(300);
    Admission probe = last_resort();
    core::Policy other = rules;
    other.window = {0, 16};
    shm::configure(slot, other, one);
    EXPECT_TRUE(word_of(slot).early);
    shm::finish(slot, rules, one, probe.permit, kBad, {});
    EXPECT_EQ(state_of(slot), State::open);
    EXPECT_EQ(left(), 700U);
}

TEST_F(Early, WaitsForTheMinimumFromTheFirstLookWhereNobodyHasNotedWhenItOpened) {
    world.pass(5);
    slot.opened = 0;  // who opened it was killed before
    world.pass(400);
    EXPECT_EQ(last_resort().refusal, Refusal::open);
    world.pass(299);
    EXPECT_EQ(last_resort().refusal, Refusal::open);
    world.pass(1);
    EXPECT_EQ(last_resort().permit.kind, PermitKind::probe);
}

TEST_F(Early, OvertakenByAnEarlierEndOfTheOpenTimeIsAnOrdinaryRound) {
    world.pass(300);
    ASSERT_TRUE(shm::end_open_time(slot, rules, one, slot.word));
    Admission probe = last_resort();
    ASSERT_EQ(probe.permit.kind, PermitKind::probe);
    EXPECT_FALSE(word_of(slot).early);
    shm::finish(slot, rules, one, probe.permit, kBad, {});
    EXPECT_EQ(word_of(slot).level, 1);
}

TEST_F(Early, TellsHowLongARequestHasToWaitForIt) {
    EXPECT_EQ(shm::time_to_probe(slot, rules, one, false), 1000U);
    EXPECT_EQ(shm::time_to_probe(slot, rules, one, true), 300U);
    world.pass(100);
    EXPECT_EQ(shm::time_to_probe(slot, rules, one, true), 200U);
    world.pass(300);
    EXPECT_EQ(shm::time_to_probe(slot, rules, one, true), 0U);
    EXPECT_EQ(shm::time_to_probe(slot, rules, one, false), 600U);
    Admission probe = last_resort();
    EXPECT_EQ(shm::time_to_probe(slot, rules, one, true), 0U) << "half-open";
    shm::finish(slot, rules, one, probe.permit, kBad, {});
    EXPECT_EQ(shm::time_to_probe(slot, rules, one, true), 300U);
    rules.open_time.min = 5000;
    EXPECT_EQ(shm::time_to_probe(slot, rules, one, true), 600U) << "its open time is over before";
}

template <typename Executor>
class EarlyAtOnce : public AtOnce<Executor> {};
TYPED_TEST_SUITE(EarlyAtOnce, Executors, ExecutorNames);

/// Nothing but early probes that fail: the open time must end when it was to, at the level it had.
TYPED_TEST(EarlyAtOnce, LeaveEndAndLevelAsTheyWere) {
    World world;
    core::Policy rules = policy();
    rules.open_time = {3'600'000, 3'600'000, 2000, 0, false, 1};
    rules.probes = {3, 3, 1, 2, 3};
    shm::Slot& slot = world.add("a", rules);
    call(slot, rules, world.parent(), kFatal);
    const core::Word before = word_of(slot);
    this->run(world, [&](const Worker& worker) {
        Random random(worker.index + 3);
        const shm::Process process = world.process(worker.pid);
        for (int n = 0; n < 4'000; ++n) {
            world.pass(random.below(3));
            Admission mine = shm::admit(slot, rules, process, {}, true, kLease * 1000, nullptr, true);
            if (mine.permit.kind == PermitKind::probe) shm::finish(slot, rules, process, mine.permit, kBad, {});
            const core::Word word = word_of(slot);
            world.board.expect(word.level == 0, "another level");
            world.board.expect(word.state != State::open || word.open_until == before.open_until, "another end");
        }
    });
    EXPECT_GT(slot.totals.early.load(), 500U) << "the load was too tame to prove anything";
    EXPECT_EQ(world.board.wrong.load(), nullptr) << world.board.wrong.load();
}

}  // namespace
}  // namespace cb::test
