// A probe whose deadline has passed although its call goes on: it decides nothing any more, but counts against
// `concurrent` until the call has ended, its process is dead, or the linger has passed.
#include <gtest/gtest.h>

#include "executors.hpp"
#include "shm/lease.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::Decision;
using core::State;
using shm::Permit;
using shm::PermitKind;
using shm::Phase;
using shm::ProbeResult;
using shm::Refusal;

constexpr std::uint32_t kHolder = 1001;
constexpr std::uint32_t kOther = 1002;

/// A breaker in half-open that has one probe at a time, and a client that stalls in its upload.
class Overdue : public testing::TestWithParam<Phase> {
  protected:
    Overdue() : slot(world.add("http://a", rules)) {
        rules.probes = {8, 1, 6, 8, 8};
        rules.linger = 5'000;
        EXPECT_TRUE(call(slot, rules, holder, kFatal));
        world.pass(1000);
        permit = ask(slot, rules, holder).permit;
        EXPECT_EQ(permit.kind, PermitKind::probe);
        shm::mark(slot, permit, Phase::sent);
        shm::mark(slot, permit, GetParam());
    }
    void pass_the_deadline() {
        world.pass(kLease + shm::Lease::kUnit);
        EXPECT_TRUE(shm::expire_probes(slot, rules, other));
    }
    void pass_the_linger() { world.pass(rules.linger + shm::Lease::kUnit); }
    [[nodiscard]] Permit take() { return ask(slot, rules, other).permit; }
    [[nodiscard]] bool is_taken() { return take().kind == PermitKind::none; }
    /// The slot can be had, by one.
    void expect_free() {
        Permit next = take();
        EXPECT_EQ(next.kind, PermitKind::probe);
        EXPECT_TRUE(is_taken());
        shm::cancel(slot, rules, other, next);
        EXPECT_EQ(shm::validate(world.segment), nullptr);
    }
    [[nodiscard]] std::uint64_t ended(ProbeResult result) const {
        return slot.totals.probe_result[static_cast<std::size_t>(result)].load();
    }
    [[nodiscard]] bool was_sent() const { return GetParam() == Phase::sent; }

    World world;
    core::Policy rules = policy();
    shm::Slot& slot;
    shm::Process holder = world.process(kHolder, &world.recorder);
    shm::Process other = world.process(kOther, &world.recorder);
    Permit permit;
};

INSTANTIATE_TEST_SUITE_P(AProbe, Overdue, testing::Values(Phase::not_sent, Phase::sent), [](const auto& param) {
    return param.param == Phase::sent ? "ThatWasSent" : "ThatWasNotSent";
});

TEST_P(Overdue, HasSaidAllItHasToSay) {
    pass_the_deadline();
    EXPECT_EQ(word_of(slot).slots, 0U);
    EXPECT_EQ(word_of(slot).failures, was_sent() ? 1U : 0U);
    EXPECT_EQ(word_of(slot).neutral, was_sent() ? 0U : 1U);
    EXPECT_EQ(ended(was_sent() ? ProbeResult::lost : ProbeResult::neutral), 1U);
    EXPECT_EQ(slot.totals.probes_lost.load(), was_sent() ? 1U : 0U);
    EXPECT_EQ(world.board.lost.load(), was_sent() ? 1U : 0U);
}

TEST_P(Overdue, KeepsItsSlotWhileItsCallGoesOn) {
    pass_the_deadline();
    EXPECT_EQ(shm::peek(slot, rules, other), Decision::probe) << "the word has room, the leases don't";
    for (int n = 0; n < 10; ++n) {
        EXPECT_EQ(shm::admit(slot, rules, other, {}, true, kLease).refusal, Refusal::half_open);
        world.pass(490);
    }
    const shm::LeaseCounts counts = shm::count_leases(slot);
    EXPECT_EQ(counts.taken, 1U);
    EXPECT_EQ(counts.in_flight, 1U);
    EXPECT_EQ(counts.overdue, 1U);
}

TEST_P(Overdue, LeavesTheOtherSlotsAlone) {
    rules.probes.concurrent = 2;
    pass_the_deadline();
    Permit second = take();
    EXPECT_EQ(second.slot, 1U);
    EXPECT_TRUE(is_taken());
    EXPECT_EQ(shm::count_leases(slot).in_flight, 2U);
    EXPECT_EQ(shm::count_leases(slot).overdue, 1U);
    shm::finish(slot, rules, other, second, kGood, {});
    EXPECT_EQ(word_of(slot).successes, 1U);
    EXPECT_EQ(shm::count_leases(slot).in_flight, 1U);
}

TEST_P(Overdue, KeepsItsSlotOverRounds) {
    pass_the_deadline();
    shm::operate(slot, rules, other, core::EventKind::reset);
    ASSERT_TRUE(call(slot, rules, other, kFatal));
    world.pass(2000);
    EXPECT_EQ(shm::admit(slot, rules, other, {}, true, kLease).refusal, Refusal::open);
    shm::finish(slot, rules, holder, permit, kGood, {});
    EXPECT_EQ(state_of(slot), State::open) << "it decides nothing there";
    expect_free();
}

TEST_P(Overdue, IsFreeWhenItsCallHasEndedAndDecidesNothingMore) {
    pass_the_deadline();
    const std::uint64_t word = slot.word;
    Permit copy = permit;
    shm::finish(slot, rules, holder, permit, kFatal, {});
    EXPECT_EQ(slot.word.load(), word);
    EXPECT_EQ(ended(ProbeResult::failure) + ended(ProbeResult::neutral) + ended(ProbeResult::lost), 1U);
    EXPECT_EQ(world.board.lost.load(), was_sent() ? 1U : 0U);
    Permit next = take();
    ASSERT_EQ(next.kind, PermitKind::probe);
    shm::cancel(slot, rules, holder, copy);  // twice is harmless
    EXPECT_EQ(word_of(slot).slots, 1U) << "the next holder's";
    EXPECT_TRUE(is_taken());
    shm::finish(slot, rules, other, next, kGood, {});
    EXPECT_EQ(word_of(slot).successes, 1U);
}

TEST_P(Overdue, IsFreeWhenItIsCancelled) {
    pass_the_deadline();
    const std::uint64_t word = slot.word;
    shm::cancel(slot, rules, holder, permit);
    EXPECT_EQ(slot.word.load(), word);
    expect_free();
}

TEST_P(Overdue, IsNotFreedByTheHolderOfAnother) {
    pass_the_deadline();
    Permit of_another = permit;
    shm::finish(slot, rules, holder, permit, kGood, {});
    // The same child's next probe gets overdue in the same slot; then the first one's second give-back comes.
    permit = ask(slot, rules, holder).permit;
    ASSERT_EQ(permit.slot, of_another.slot);
    pass_the_deadline();
    shm::cancel(slot, rules, holder, of_another);
    EXPECT_TRUE(is_taken());
    shm::cancel(slot, rules, holder, permit);
    expect_free();
}

TEST_P(Overdue, IsFreeWhenItsHolderIsDead) {
    pass_the_deadline();
    const std::uint64_t neutral = ended(ProbeResult::neutral);
    world.child_exited(kOther);
    EXPECT_TRUE(is_taken()) << "whoever ended it may be dead";
    world.child_exited(kHolder);
    EXPECT_EQ(ended(ProbeResult::neutral), neutral) << "it has ended already";
    EXPECT_EQ(remains_of(world.segment, kHolder, shm::kNoColumn), "");
    expect_free();
}

TEST_P(Overdue, IsFreeWhenTheLingerHasPassedAndTheHolderWhoComesThenDoesNothing) {
    pass_the_deadline();
    world.pass(rules.linger - 1);
    EXPECT_TRUE(is_taken());
    world.pass(1 + shm::Lease::kUnit);
    Permit next = take();
    ASSERT_EQ(next.kind, PermitKind::probe);
    EXPECT_EQ(shm::count_leases(slot).overdue, 0U);
    shm::mark(slot, permit, Phase::fatal);
    shm::finish(slot, rules, holder, permit, kFatal, {});
    EXPECT_TRUE(is_taken());
    shm::finish(slot, rules, other, next, kGood, {});
    EXPECT_EQ(word_of(slot).successes, 1U);
    EXPECT_EQ(state_of(slot), State::half_open);
    EXPECT_EQ(slot.totals.probes_lost.load(), was_sent() ? 1U : 0U);
    expect_free();
}

TEST_P(Overdue, CountsItsLingerFromTheMomentItWasFound) {
    world.pass(kLease + 3'600'000);
    ASSERT_TRUE(shm::expire_probes(slot, rules, other));
    world.pass(rules.linger - 1);
    EXPECT_TRUE(is_taken());
    world.pass(1 + shm::Lease::kUnit);
    expect_free();
}

TEST_P(Overdue, LingersADayAtMost) {
    rules.linger = 365 * core::kDay;
    pass_the_deadline();
    world.pass(core::kDay - 1);
    EXPECT_TRUE(is_taken());
    world.pass(1 + shm::Lease::kUnit);
    expect_free();
}

TEST_P(Overdue, CannotBeMarkedAnyMore) {
    pass_the_deadline();
    const std::uint64_t lease = slot.lease[permit.slot];
    shm::mark(slot, permit, Phase::success);
    EXPECT_EQ(slot.lease[permit.slot].load(), lease);
    EXPECT_TRUE(shm::is_over(permit, holder));
}

TEST_P(Overdue, IsOverFromItsDeadlineOnWhetherSomebodyHasLookedOrNot) {
    world.pass(kLease - 1);
    EXPECT_FALSE(shm::is_over(permit, holder));
    world.pass(1 + shm::Lease::kUnit);
    EXPECT_TRUE(shm::is_over(permit, holder));
    world.pass(3 * core::kDay);  // the lease word's deadline has come round
    EXPECT_TRUE(shm::is_over(permit, holder));
    shm::finish(slot, rules, holder, permit, kGood, {});
    EXPECT_FALSE(shm::is_over(permit, holder));
    EXPECT_EQ(word_of(slot).successes, 0U);
}

TEST_P(Overdue, IsNotAProbeThatWasAnsweredInTime) {
    shm::mark(slot, permit, Phase::success);
    world.pass(kLease + shm::Lease::kUnit);
    EXPECT_FALSE(shm::is_over(permit, holder)) << "its stream goes on";
    EXPECT_TRUE(shm::expire_probes(slot, rules, other));
    EXPECT_EQ(shm::count_leases(slot).taken, 0U);
    expect_free();
}

TEST_P(Overdue, NeverIsACall) {
    shm::operate(slot, rules, other, core::EventKind::reset);
    Permit call = ask(slot, rules, other).permit;
    ASSERT_EQ(call.kind, PermitKind::call);
    world.pass(2 * core::kDay);
    EXPECT_FALSE(shm::is_over(call, other));
}

TEST_P(Overdue, LeavesWhenAProbeWasAdmittedLast) {
    const std::uint64_t first = slot.probed_at;
    EXPECT_EQ(first, world.board.now.load());
    pass_the_deadline();
    EXPECT_TRUE(is_taken());
    EXPECT_EQ(slot.probed_at.load(), first) << "one that was refused is none";
    EXPECT_FALSE(core::has_waited_in_vain(word_of(slot), rules, slot.probed_at, first + 999));
    EXPECT_TRUE(core::has_waited_in_vain(word_of(slot), rules, slot.probed_at, first + 1000));
    shm::cancel(slot, rules, holder, permit);
    Permit next = take();
    EXPECT_EQ(slot.probed_at.load(), world.board.now.load());
    shm::cancel(slot, rules, other, next);
}

TEST(ProbedAt, IsForgottenWithTheSlotsHistory) {
    World world;
    const core::Policy rules = policy();
    shm::Slot& slot = world.add("a", rules);
    call(slot, rules, world.parent(), kFatal);
    EXPECT_EQ(slot.probed_at.load(), 0U);
    world.pass(1000);
    EXPECT_TRUE(call(slot, rules, world.parent(), kGood));
    EXPECT_EQ(slot.probed_at.load(), world.board.now.load());
    world.restart();
    ASSERT_EQ(shm::free_unused(world.segment, 1), 1U);
    shm::Slot& again = world.add("a", rules);
    ASSERT_EQ(&again, &slot);
    EXPECT_EQ(again.probed_at.load(), 0U);
}

}  // namespace
}  // namespace cb::test
