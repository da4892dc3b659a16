// How a probe has ended, as it is told: once, by whoever has ended it, with the counts of its round.
#include "shm/probe_end.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "executors.hpp"
#include "shm/lease.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::Outcome;
using core::Verdict;
using shm::EndedBy;
using shm::ProbeEnd;
using shm::ProbeResult;

/// A breaker that is due for a round of five probes, of which two may fail.
struct ProbeEnds : testing::Test {
    ProbeEnds() {
        rules.probes = {5, 3, 2, 5, 5};
        EXPECT_TRUE(call(slot, rules, one, kFatal));
        world.pass(1000);
    }
    [[nodiscard]] shm::Permit taken() {
        const shm::Admission admission = ask(slot, rules, one);
        EXPECT_EQ(admission.permit.kind, shm::PermitKind::probe);
        return admission.permit;
    }
    std::optional<ProbeEnd> end(shm::Permit& permit, const shm::Ending& ending) {
        return shm::finish(slot, rules, one, permit, ending, {});
    }
    std::optional<ProbeEnd> probe(const shm::Ending& ending) {
        shm::Permit permit = taken();
        return end(permit, ending);
    }
    [[nodiscard]] std::uint64_t results() const {
        std::uint64_t sum = 0;
        for (const shm::Atomic64& result : slot.totals.probe_result)
            sum += result.load();
        return sum;
    }
    static void expect_round(const std::optional<ProbeEnd>& end, const shm::Round& round, ProbeResult result) {
        ASSERT_TRUE(end);
        EXPECT_EQ(end->round.size, round.size);
        EXPECT_EQ(end->round.succeeded, round.succeeded);
        EXPECT_EQ(end->round.failed, round.failed);
        EXPECT_EQ(end->round.neutral, round.neutral);
        EXPECT_EQ(end->result, result);
    }

    World world;
    core::Policy rules = policy();
    shm::Slot& slot = world.add("http://a", rules);
    shm::Process one = world.process(1001, &world.recorder);
    shm::Process two = world.process(1002, &world.recorder);
};

TEST_F(ProbeEnds, HaveTheCallAndTheCountsOfTheRoundWithThisProbe) {
    shm::Ending bad{Outcome{503}, Verdict::failure, false, 0};
    bad.latency = 12;
    bad.method = 2;
    const std::optional<ProbeEnd> first = probe(bad);
    expect_round(first, {5, 0, 1, 0}, ProbeResult::failure);
    EXPECT_EQ(first->by, EndedBy::call);
    EXPECT_EQ(first->outcome, Outcome{503});
    EXPECT_EQ(first->verdict, Verdict::failure);
    EXPECT_FALSE(first->slow);
    EXPECT_EQ(first->latency, 12U);
    EXPECT_EQ(first->method, 2U);
    expect_round(probe(kGood), {5, 1, 1, 0}, ProbeResult::success);
    expect_round(probe({Outcome{404}, Verdict::ignore, false, 0}), {5, 1, 1, 1}, ProbeResult::neutral);
    expect_round(probe(kNeutral), {5, 1, 1, 1}, ProbeResult::neutral);  // the client's doing is not counted
    const std::optional<ProbeEnd> slow = probe({Outcome{200}, Verdict::success, true, 0});
    expect_round(slow, {5, 1, 2, 1}, ProbeResult::failure);
    EXPECT_TRUE(slow->slow);
    EXPECT_EQ(state_of(slot), core::State::half_open);
    expect_round(probe(kBad), {5, 1, 3, 1}, ProbeResult::failure);
    EXPECT_EQ(state_of(slot), core::State::open) << "the last one's counts are those that have opened it";
    EXPECT_EQ(world.board.probes.load(), 0U) << "all were returned to their calls";
    EXPECT_EQ(results(), 6U);
}

TEST_F(ProbeEnds, OfTheLastSuccessHaveAllOfThem) {
    for (std::uint32_t n = 1; n <= 5; ++n)
        expect_round(probe(kGood), {5, n, 0, 0}, ProbeResult::success);
    EXPECT_EQ(state_of(slot), core::State::closed);
}

TEST_F(ProbeEnds, OfARoundThatIsOverCountNowhere) {
    shm::Permit late = taken();
    expect_round(probe(kFatal), {5, 0, 1, 0}, ProbeResult::failure);
    expect_round(end(late, kGood), {}, ProbeResult::success);
}

TEST_F(ProbeEnds, OfACancelledOneAreNeutralAndOfAnOrdinaryCallThereAreNone) {
    shm::Permit permit = taken();
    const std::optional<ProbeEnd> cancelled = shm::cancel(slot, rules, one, permit);
    expect_round(cancelled, {5, 0, 0, 1}, ProbeResult::neutral);
    EXPECT_EQ(cancelled->outcome, Outcome::none);
    EXPECT_FALSE(shm::cancel(slot, rules, one, permit));
    shm::operate(slot, rules, one, core::EventKind::reset);
    shm::Permit ordinary = ask(slot, rules, one).permit;
    EXPECT_FALSE(end(ordinary, kGood));
    shm::Permit unused = ask(slot, rules, one).permit;
    EXPECT_FALSE(shm::cancel(slot, rules, one, unused));
}

TEST_F(ProbeEnds, PastTheDeadlineAreToldByWhoFindsThemAndNotByTheirCallAgain) {
    shm::Permit permit = taken();
    shm::mark(slot, permit, shm::Phase::sent);
    world.pass(kLease + shm::Lease::kUnit);
    EXPECT_TRUE(shm::expire_probes(slot, rules, two));
    EXPECT_EQ(world.board.probes.load(), 1U);
    const ProbeEnd told = world.board.probe;
    expect_round(told, {5, 0, 1, 0}, ProbeResult::lost);
    EXPECT_EQ(told.by, EndedBy::deadline);
    EXPECT_EQ(told.outcome, Outcome::none);
    EXPECT_EQ(told.verdict, Verdict::failure);
    EXPECT_FALSE(end(permit, kGood));
    EXPECT_EQ(world.board.probes.load(), 1U);
    EXPECT_EQ(world.board.lost.load(), 1U);
    EXPECT_EQ(results(), 1U);
}

TEST_F(ProbeEnds, PastTheDeadlineThatNobodyFindsAreReturnedToTheirCallWithItsOutcome) {
    shm::Permit permit = taken();
    shm::mark(slot, permit, shm::Phase::sent);
    world.pass(kLease + shm::Lease::kUnit);
    shm::Ending good = kGood;
    good.latency = 5000;
    const std::optional<ProbeEnd> told = end(permit, good);
    expect_round(told, {5, 0, 1, 0}, ProbeResult::lost);
    EXPECT_EQ(told->by, EndedBy::deadline);
    EXPECT_EQ(told->outcome, Outcome{200});
    EXPECT_EQ(told->verdict, Verdict::failure) << "by which it was judged";
    EXPECT_EQ(told->latency, 5000U);
    EXPECT_EQ(world.board.probes.load(), 0U);
    EXPECT_EQ(world.board.lost.load(), 1U);
}

TEST_F(ProbeEnds, OfADeadProcessAreToldByTheParent) {
    (void)taken();
    (void)taken();
    shm::reap(slot, rules, world.parent(&world.recorder), 1001);
    EXPECT_EQ(world.board.probes.load(), 2U);
    expect_round(world.board.probe, {5, 0, 0, 2}, ProbeResult::neutral);
    EXPECT_EQ(world.board.probe.by, EndedBy::death);
    EXPECT_EQ(world.board.probe.verdict, Verdict::ignore);
    EXPECT_EQ(results(), 2U);
}

TEST_F(ProbeEnds, AreNotToldOfALeaseThatADeadChildTookForNoProbe) {
    const pid_t child = fork_child([&] {
        die_at("take.reserved", 1);
        one.pid = static_cast<std::uint32_t>(::getpid());
        (void)ask(slot, rules, one);
    });
    ASSERT_EQ(wait_for(child), -SIGKILL);
    world.child_exited(static_cast<std::uint32_t>(child));
    EXPECT_EQ(results(), 0U);
    EXPECT_EQ(world.board.probes.load(), 0U);
    EXPECT_EQ(shm::count_leases(slot).taken, 0U);
}

TEST_F(ProbeEnds, OfAHolderThatLivesAreCountedAtMostOnceIfWhoEndsThemDies) {
    for (const char* const place : {"settle.claimed", "settle.applied", "settle.released"}) {
        SCOPED_TRACE(place);
        const std::uint64_t before = results();
        shm::Permit permit = taken();
        shm::mark(slot, permit, shm::Phase::sent);
        world.pass(2 * kLease);
        const pid_t child = fork_child([&] {
            die_at(place, 1);
            two.pid = static_cast<std::uint32_t>(::getpid());
            (void)shm::expire_probes(slot, rules, two);
        });
        ASSERT_EQ(wait_for(child), -SIGKILL);
        world.child_exited(static_cast<std::uint32_t>(child));
        EXPECT_LE(results() - before, 1U);
        EXPECT_FALSE(end(permit, kGood)) << "the call itself is told no more";
        EXPECT_LE(results() - before, 1U);
    }
}

}  // namespace
}  // namespace cb::test
