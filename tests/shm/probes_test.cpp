// Probe slots as leases: who gets one, how it comes back, and what it says when it comes back late.
#include <gtest/gtest.h>

#include <vector>

#include "shm/lease.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::Decision;
using core::State;
using shm::Admission;
using shm::Ending;
using shm::PermitKind;
using shm::Phase;
using shm::Refusal;

/// A breaker whose open time is over, and two children that may ask.
class Probes : public testing::Test {
  protected:
    Probes() : slot(world.add("http://a", rules)) {
        rules.probes = {5, 3, 2, 5, 5};
        trip();
        world.pass(1000);
    }
    void trip() { ASSERT_TRUE(call(slot, rules, one, kFatal)); }
    [[nodiscard]] Admission probe(core::Millis lease = kLease) {
        Admission admission = ask(slot, rules, one, {}, lease);
        if (admission.refusal == Refusal::none) {
            EXPECT_EQ(admission.permit.kind, PermitKind::probe);
        }
        return admission;
    }
    [[nodiscard]] shm::Permit taken() { return probe().permit; }
    void end(shm::Permit& permit, const Ending& ending) { shm::finish(slot, rules, one, permit, ending, {}); }
    [[nodiscard]] shm::LeaseState lease(std::uint32_t i) const { return shm::Lease::of(slot.lease[i].load()).state; }

    World world;
    core::Policy rules = policy();
    shm::Slot& slot;
    shm::Process one = world.process(1001, &world.recorder);
    shm::Process two = world.process(1002, &world.recorder);
};

TEST_F(Probes, TheFirstOneHalfOpensTheBreaker) {
    EXPECT_EQ(shm::peek(slot, rules, one), Decision::probe);
    EXPECT_EQ(state_of(slot), State::open) << "looking changes nothing";
    shm::Permit permit = taken();
    EXPECT_EQ(state_of(slot), State::half_open);
    EXPECT_EQ(word_of(slot).slots, 1U);
    EXPECT_EQ(lease(0), shm::LeaseState::active);
    end(permit, kGood);
    EXPECT_EQ(word_of(slot).slots, 0U);
    EXPECT_EQ(word_of(slot).successes, 1U);
    EXPECT_EQ(lease(0), shm::LeaseState::free);
    EXPECT_EQ(slot.totals.probes.load(), 1U);
}

TEST_F(Probes, AreAtMostConcurrentAtOnce) {
    std::vector<shm::Permit> held;
    for (int n = 0; n < 3; ++n)
        held.push_back(taken());
    EXPECT_EQ(shm::peek(slot, rules, two), Decision::refuse);
    EXPECT_EQ(shm::admit(slot, rules, two, {}, true, kLease).refusal, Refusal::half_open);
    end(held[1], kGood);
    held[1] = taken();
    EXPECT_EQ(held[1].slot, 1U);
    EXPECT_EQ(probe().refusal, Refusal::open);
}

TEST_F(Probes, AreAtMostARound) {
    for (int n = 0; n < 3; ++n) {
        shm::Permit permit = taken();
        end(permit, kGood);
    }
    shm::Permit fourth = taken();
    shm::Permit fifth = taken();
    EXPECT_EQ(shm::peek(slot, rules, two), Decision::refuse) << "three succeeded, two are out: the round is full";
    end(fourth, kNeutral);
    shm::Permit sixth = taken();
    end(fifth, kGood);
    end(sixth, kGood);
    EXPECT_EQ(state_of(slot), State::closed);
}

TEST_F(Probes, ThatFailAreReplacedAsLongAsTheyAreTolerated) {
    for (int n = 0; n < 2; ++n) {
        shm::Permit permit = taken();
        end(permit, kBad);
        EXPECT_EQ(state_of(slot), State::half_open);
        EXPECT_EQ(word_of(slot).failures, n + 1);
    }
    shm::Permit permit = taken();
    end(permit, kBad);
    EXPECT_EQ(state_of(slot), State::open);
    EXPECT_EQ(word_of(slot).level, 1U);
}

TEST_F(Probes, AreRefusedToARequestThatMayNotBeOneAndTheSlotStaysFree) {
    EXPECT_EQ(shm::admit(slot, rules, one, {}, false, kLease).refusal, Refusal::open);
    EXPECT_EQ(state_of(slot), State::open);
    EXPECT_EQ(lease(0), shm::LeaseState::free);
    shm::Permit permit = taken();
    EXPECT_EQ(shm::admit(slot, rules, one, {}, false, kLease).refusal, Refusal::half_open);
    EXPECT_EQ(word_of(slot).slots, 1U);
    end(permit, kGood);
}

TEST_F(Probes, GivenBackTwiceCountOnce) {
    shm::Permit permit = taken();
    shm::Permit copy = permit;  // as a cleanup on the request pool might hold it
    end(permit, kGood);
    EXPECT_EQ(permit.kind, PermitKind::none);
    shm::cancel(slot, rules, one, permit);
    shm::cancel(slot, rules, one, copy);
    EXPECT_EQ(word_of(slot).successes, 1U);
    EXPECT_EQ(word_of(slot).neutral, 0U);
    EXPECT_EQ(shm::validate(world.segment), nullptr);
}

TEST_F(Probes, GivenBackTwiceLeaveTheNextHolderAlone) {
    shm::Permit permit = taken();
    shm::Permit copy = permit;
    end(permit, kGood);
    shm::Permit next = taken();
    ASSERT_EQ(next.slot, copy.slot);
    shm::mark(slot, copy, Phase::fatal);
    shm::cancel(slot, rules, one, copy);
    EXPECT_EQ(word_of(slot).slots, 1U) << "the next holder's";
    EXPECT_EQ(word_of(slot).neutral, 0U);
    end(next, kGood);
    EXPECT_EQ(word_of(slot).successes, 2U);
}

TEST_F(Probes, CancelledAreNeutralAndNotACall) {
    shm::Permit permit = taken();
    shm::cancel(slot, rules, one, permit);
    EXPECT_EQ(word_of(slot).neutral, 1U);
    EXPECT_EQ(word_of(slot).slots, 0U);
    EXPECT_EQ(slot.totals.calls.load(), 1U) << "the fatal one that tripped";
    EXPECT_EQ(state_of(slot), State::half_open);
}

TEST_F(Probes, ThatProveNothingOpenTheBreakerAgainAtTheFifteenthAndTheSameLevel) {
    for (int n = 1; n <= 15; ++n) {
        ASSERT_EQ(state_of(slot) == State::half_open, n > 1);
        shm::Permit permit = taken();
        EXPECT_EQ(word_of(slot).neutral, n - 1);
        const Ending neutral[] = {{static_cast<core::Outcome>(404), core::Verdict::ignore, false, 0},
                                  {core::Outcome::timeout, core::Verdict::tolerate, false, 0}};
        if (n % 3 == 0) {
            shm::cancel(slot, rules, one, permit);
        } else {
            end(permit, neutral[n % 2]);
        }
    }
    EXPECT_EQ(state_of(slot), State::open);
    EXPECT_EQ(word_of(slot).level, 0U);
    EXPECT_EQ(word_of(slot).open_until, world.board.now + 1000);
}

TEST_F(Probes, ThatClientsGiveUpAreNotCounted) {
    for (const core::Outcome outcome : {core::Outcome::client, core::Outcome::upload}) {
        for (int n = 1; n <= 20; ++n) {
            shm::Permit permit = taken();
            end(permit, {outcome, core::Verdict::ignore, false, 0});
            ASSERT_EQ(state_of(slot), State::half_open);
            ASSERT_EQ(word_of(slot).neutral, 0U);
        }
    }
}

TEST_F(Probes, ThatAreSlowOrFatalFail) {
    shm::Permit slow = taken();
    end(slow, {static_cast<core::Outcome>(200), core::Verdict::success, true});
    EXPECT_EQ(word_of(slot).failures, 1U);
    shm::Permit fatal = taken();
    end(fatal, kFatal);
    EXPECT_EQ(state_of(slot), State::open) << "whatever is tolerated";
}

TEST_F(Probes, ThatARuleJudgesBySlownessCountAsItSays) {
    const auto slow = [](core::Verdict verdict) {
        return shm::Ending{
            .outcome = static_cast<core::Outcome>(200), .verdict = verdict, .slow = true, .is_slow_judged = true};
    };
    shm::Permit well = taken();
    end(well, slow(core::Verdict::success));
    EXPECT_EQ(word_of(slot).successes, 1U);
    shm::Permit nothing = taken();
    end(nothing, slow(core::Verdict::tolerate));
    EXPECT_EQ(word_of(slot).neutral, 1U);
    EXPECT_EQ(word_of(slot).failures, 0U);
    shm::Permit failed = taken();
    end(failed, slow(core::Verdict::failure));
    EXPECT_EQ(word_of(slot).failures, 1U);
    EXPECT_EQ(slot.totals.slow[1].load(), 3U) << "slow they were";
    EXPECT_EQ(slot.totals.probe_result[static_cast<unsigned>(shm::ProbeResult::success)].load(), 1U);
}

TEST_F(Probes, OfAnEarlierRoundStillOccupyTheirSlots) {
    shm::Permit slow = taken();
    shm::Permit fatal = taken();
    end(fatal, kFatal);
    world.pass(2000);
    shm::Permit second_round[] = {taken(), taken()};
    EXPECT_EQ(word_of(slot).slots, 0b110U) << "the old one's bit is not this round's";
    EXPECT_EQ(shm::peek(slot, rules, two), Decision::probe) << "the word has room, the leases don't";
    EXPECT_NE(probe().refusal, Refusal::none);
    end(slow, kFatal);
    EXPECT_EQ(state_of(slot), State::half_open) << "it decides nothing in this round";
    EXPECT_EQ(word_of(slot).slots, 0b110U);
    shm::Permit third = taken();
    EXPECT_EQ(third.slot, 0U);
    for (shm::Permit* permit : {&second_round[0], &second_round[1], &third})
        end(*permit, kGood);
    EXPECT_EQ(word_of(slot).successes, 3U);
}

TEST_F(Probes, AsManyAsThereAreLeasesMayBeOut) {
    rules.probes = {63, 16, 0, 63, 63};
    std::vector<shm::Permit> held;
    for (int n = 0; n < 16; ++n)
        held.push_back(taken());
    EXPECT_EQ(word_of(slot).slots, 0xFFFFU);
    EXPECT_NE(probe().refusal, Refusal::none);
    for (shm::Permit& permit : held)
        end(permit, kGood);
    EXPECT_EQ(word_of(slot).successes, 16U);
    for (int n = 16; n < 63; ++n) {
        shm::Permit permit = taken();
        end(permit, kGood);
    }
    EXPECT_EQ(state_of(slot), State::closed);
}

TEST_F(Probes, BecomeOrdinaryCallsWhenTheBreakerHasClosedBetweenLookAndPermit) {
    ASSERT_EQ(shm::peek(slot, rules, one), Decision::probe);
    shm::operate(slot, rules, two, core::EventKind::reset);
    Admission admission = shm::admit(slot, rules, one, {}, true, kLease);
    EXPECT_EQ(admission.permit.kind, PermitKind::call);
    EXPECT_EQ(admission.permit.generation, word_of(slot).generation);
    EXPECT_EQ(lease(0), shm::LeaseState::free);
}

TEST_F(Probes, KeepTheirLeaseOverAnOperatorsResetAndThenDecideNothing) {
    shm::Permit permit = taken();
    shm::operate(slot, rules, two, core::EventKind::reset);
    EXPECT_EQ(state_of(slot), State::closed);
    end(permit, kFatal);
    EXPECT_EQ(state_of(slot), State::closed);
    EXPECT_EQ(shm::validate(world.segment), nullptr);
}

TEST_F(Probes, TakeAnotherSequenceNumberEachTime) {
    rules.probes = {63, 1, 0, 63, 63};
    std::uint64_t before = 0;
    for (int n = 0; n < 40'000; ++n) {  // beyond the 15 bits
        if (state_of(slot) != State::half_open) {
            shm::operate(slot, rules, two, core::EventKind::force_open);
            shm::operate(slot, rules, two, core::EventKind::reset);
            trip();
            world.pass(5000);
        }
        shm::Permit permit = taken();
        ASSERT_NE(permit.lease, before);
        before = permit.lease;
        end(permit, kGood);
    }
}

TEST_F(Probes, AreReportedOnceAndTheReportsKeepUpWithTheChanges) {
    for (int n = 0; n < 30; ++n) {
        world.pass(100'000);
        shm::Permit permit = taken();
        end(permit, n % 3 == 0 ? kFatal : kGood);
        EXPECT_EQ(slot.reports.load(), shm::numbered_word(slot).number);
    }
    EXPECT_EQ(wrong_with_reports(world, slot), "");
}

}  // namespace
}  // namespace cb::test
