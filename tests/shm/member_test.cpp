// The verbs of one member on one thread: what a result may decide, what is counted, and MaxOpen's answers.
#include "shm/member.hpp"

#include <gtest/gtest.h>

#include "executors.hpp"
#include "shm/recorder.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::Decision;
using core::EventKind;
using core::State;
using shm::Admission;
using shm::PermitKind;
using shm::Refusal;

class Member : public testing::Test {
  protected:
    bool make(const shm::Ending& ending) { return call(slot, rules, one, ending); }
    World world;
    core::Policy rules = policy();
    shm::Slot& slot = world.add("http://a", rules);
    shm::Process one = world.process(1001, &world.recorder);
};

TEST_F(Member, TripsOnConsecutiveFailuresAndReportsWhatLedThere) {
    for (int n = 0; n < 9; ++n)
        ASSERT_TRUE(make(kGood));
    for (int n = 0; n < 5; ++n)
        ASSERT_TRUE(make(kBad)) << n;
    EXPECT_EQ(state_of(slot), State::open);
    EXPECT_EQ(world.board.consecutive.load(), 5U);
    EXPECT_FALSE(make(kGood));
    EXPECT_EQ(wrong_with_reports(world, slot), "");
}

TEST_F(Member, TripsOnItsFailureRateOnlyOnceItHasTheMinimumOfCalls) {
    rules.consecutive_failures = 0;
    for (int n = 0; n < 3; ++n)
        ASSERT_TRUE(make(kBad));
    EXPECT_EQ(state_of(slot), State::closed);
    make(kBad);
    EXPECT_EQ(state_of(slot), State::open);
}

TEST_F(Member, AResultOfAnEarlierGenerationIsLate) {
    Admission early = ask(slot, rules, one);
    make(kFatal);
    shm::operate(slot, rules, one, EventKind::reset);
    shm::finish(slot, rules, one, early.permit, kFatal, {});
    EXPECT_EQ(state_of(slot), State::closed);
    EXPECT_EQ(slot.totals.late.load(), 1U);
    EXPECT_EQ(slot.totals.calls.load(), 2U);
    EXPECT_EQ(shm::sums_now(slot, rules, one).calls, 0U);
}

TEST_F(Member, AResultAfterTwelveHoursDecidesNothing) {
    for (const core::Millis hours : {12U, 13U}) {
        Admission admission = ask(slot, rules, one);
        world.pass(hours * 3'600'000);
        shm::finish(slot, rules, one, admission.permit, kFatal, {});
        EXPECT_EQ(state_of(slot), hours == 12 ? State::open : State::closed) << hours;
        shm::operate(slot, rules, one, EventKind::reset);
    }
}

TEST_F(Member, OfAForcedStateOnlyCounts) {
    shm::operate(slot, rules, one, EventKind::force_closed);
    for (int n = 0; n < 20; ++n)
        EXPECT_TRUE(make(kFatal));
    EXPECT_EQ(state_of(slot), State::forced_closed);
    EXPECT_EQ(slot.totals.calls.load(), 20U);
    EXPECT_EQ(slot.totals.late.load(), 0U);
    shm::operate(slot, rules, one, EventKind::force_open);
    EXPECT_FALSE(make(kGood));
    EXPECT_EQ(shm::admit(slot, rules, one, {}, true, kLease).refusal, Refusal::forced_open);
    EXPECT_TRUE(shm::operate(slot, rules, one, EventKind::automatic));
    EXPECT_EQ(shm::sums_now(slot, rules, one).calls, 0U);
    EXPECT_TRUE(make(kGood));
}

TEST_F(Member, WithoutAPermitFeedsTheTotalsOnly) {
    shm::Permit none;
    for (int n = 0; n < 20; ++n)
        shm::finish(slot, rules, one, none, kFatal, {});
    EXPECT_EQ(slot.totals.calls.load(), 20U);
    EXPECT_EQ(state_of(slot), State::closed);
    EXPECT_EQ(shm::sums_now(slot, rules, one).calls, 0U);
}

TEST_F(Member, CancelledCallsLeaveNoTrace) {
    for (int n = 0; n < 20; ++n) {
        Admission admission = ask(slot, rules, one, world.in_flight(slot, 0));
        shm::cancel(slot, rules, one, admission.permit);
    }
    EXPECT_EQ(slot.totals.calls.load(), 0U);
    EXPECT_EQ(shm::sums_now(slot, rules, one).calls, 0U);
    EXPECT_EQ(shm::validate(world.segment), nullptr);
}

TEST_F(Member, CountsWhatItsCallsWere) {
    make({static_cast<core::Outcome>(204), core::Verdict::success, true, 0});
    make({static_cast<core::Outcome>(599), core::Verdict::tolerate, false, 0});
    make({static_cast<core::Outcome>(100), core::Verdict::ignore, false, 0});
    make({static_cast<core::Outcome>(600), core::Verdict::success, false, 0});
    make({static_cast<core::Outcome>(999), core::Verdict::success, false, 0});
    make({core::Outcome::connect, core::Verdict::failure, false, 0});
    make({core::Outcome::client, core::Verdict::ignore, false, 0});
    const shm::Totals& totals = slot.totals;
    EXPECT_EQ(totals.calls.load(), 7U);
    const std::uint64_t verdicts[] = {3, 1, 0, 1, 2};
    for (std::size_t n = 0; n < core::kVerdicts; ++n)
        EXPECT_EQ(totals.verdict[false][n].load(), verdicts[n]) << n;
    const std::uint64_t statuses[] = {1, 1, 0, 0, 1, 1, 0, 0, 1};
    for (std::size_t n = 0; n < 9; ++n)
        EXPECT_EQ(totals.status[false][n].load(), statuses[n]) << n;
    EXPECT_EQ(totals.outcome_class[false][0].load(), 1U);
    constexpr auto kClient =
        static_cast<std::size_t>(core::Outcome::client) - static_cast<std::size_t>(core::Outcome::connect);
    EXPECT_EQ(totals.outcome_class[false][kClient].load(), 1U);
    EXPECT_EQ(totals.slow[false].load(), 1U);
}

TEST_F(Member, CountsASlowCallWhateverItsVerdictAndTimesNoneWhereNoneCanBeSlow) {
    make(kGood);
    EXPECT_EQ(shm::sums_now(slot, rules, one).timed_calls, 0U);
    rules.slow_call = {400, 100};
    shm::Ending slow = kNeutral;
    slow.slow = true;
    make(kNeutral);
    make(slow);
    const core::Sums sums = shm::sums_now(slot, rules, one);
    EXPECT_EQ(sums.calls, 2U);
    EXPECT_EQ(sums.timed_calls, 1U);
    EXPECT_EQ(sums.slow_calls, 1U);
    EXPECT_EQ(sums.failures, 0U);
}

TEST_F(Member, CountsACallThatARuleJudgesBySlownessAsNoSlowCallOfTheWindow) {
    rules.slow_call = {400, 1};
    rules.failure_rate = 0;
    rules.minimum_calls = 1;
    rules.consecutive_failures = 0;
    shm::Ending slow = kBad;
    slow.slow = slow.is_slow_judged = true;
    make(slow);
    slow.verdict = core::Verdict::ignore;
    make(slow);
    core::Sums sums = shm::sums_now(slot, rules, one);
    EXPECT_EQ(sums.calls, 1U) << "and an ignored one is no call";
    EXPECT_EQ(sums.failures, 1U);
    EXPECT_EQ(sums.timed_calls, 1U);
    EXPECT_EQ(sums.slow_calls, 0U);
    EXPECT_EQ(state_of(slot), core::State::closed);
    EXPECT_EQ(slot.totals.slow[0].load(), 2U);
    shm::FailedCall calls[shm::kRecordedCalls];
    EXPECT_EQ(shm::read_failed_calls(slot, calls), 2U);
}

TEST_F(Member, CountsNoSlowCallsInItsWindowWhereTheyHaveNoRate) {
    rules.slow_call = {400, 0};
    rules.minimum_calls = 1;
    shm::Ending slow = kGood;
    slow.slow = true;
    make(slow);
    slow.verdict = core::Verdict::ignore;
    make(slow);
    const core::Sums sums = shm::sums_now(slot, rules, one);
    EXPECT_EQ(sums.calls, 1U);
    EXPECT_EQ(sums.timed_calls, 0U);
    EXPECT_EQ(sums.slow_calls, 0U);
    EXPECT_EQ(slot.totals.slow[0].load(), 2U);
}

TEST_F(Member, TripsOnACountOfFailuresInEitherKindOfWindow) {
    rules.failure_rate = 0;
    rules.consecutive_failures = 0;
    rules.minimum_calls = 1;
    rules.failure_count = 3;
    for (const std::uint32_t calls : {0U, 100U}) {
        rules.window.calls = calls;
        shm::configure(slot, rules, one);
        shm::operate(slot, rules, one, core::EventKind::reset);
        for (int n = 0; n < 2; ++n) {
            for (int good = 0; good < 30; ++good)
                make(kGood);
            make(kBad);
        }
        make(kGood);
        EXPECT_EQ(state_of(slot), core::State::closed) << calls;
        make(kBad);
        EXPECT_EQ(state_of(slot), core::State::open) << calls;
    }
}

TEST_F(Member, CountsADurationInTheFirstBucketWhoseBoundIsNotBelowIt) {
    for (const core::Millis duration : {5U, 6U, 30'000U, 30'001U})
        shm::note_duration(slot.call_duration, duration);
    for (const std::size_t bucket : {0U, 1U, 11U, 12U})
        EXPECT_EQ(slot.call_duration.bucket[bucket].load(), 1U) << bucket;
}

TEST_F(Member, KeepsTheOutcomeOfAFailedCallHoweverLongItTook) {
    shm::Ending failed = kBad;
    failed.latency = 3'600'000;
    make(failed);
    shm::FailedCall calls[shm::kRecordedCalls];
    ASSERT_EQ(shm::read_failed_calls(slot, calls), 1U);
    EXPECT_EQ(calls[0].outcome, core::Outcome::reset);
    EXPECT_EQ(calls[0].latency, 262'143U) << "the longest that it can hold";
    failed.is_timed = true;
    failed.latency = 7;
    failed.until_end = 1200;
    make(failed);
    ASSERT_EQ(shm::read_failed_calls(slot, calls), 2U);
    EXPECT_EQ(calls[1].latency, 1200U);
    EXPECT_EQ(slot.call_duration.sum_ms.load(), 7U) << "to the first byte";
}

TEST_F(Member, KeepsOfAFailedCallWhetherItWasSlowOrAProbe) {
    rules.slow_call = {400, 100};
    shm::Ending slow = kGood;
    slow.slow = true;
    slow.method = 255;
    make(slow);
    make(kFatal);
    world.pass(core::open_remaining(word_of(slot), world.board.now.load()));
    make(kBad);
    shm::FailedCall calls[shm::kRecordedCalls];
    ASSERT_EQ(shm::read_failed_calls(slot, calls), 3U);
    EXPECT_TRUE(calls[0].is_slow && !calls[0].is_probe);
    EXPECT_EQ(calls[0].method, 255U);
    EXPECT_TRUE(!calls[1].is_slow && !calls[1].is_probe);
    EXPECT_TRUE(!calls[2].is_slow && calls[2].is_probe);
}

TEST_F(Member, CountsAResponseThatHasBrokenOffSinceItWasJudgedInTheTotalsOnly) {
    make(kGood);
    const std::uint64_t word = slot.word.load();
    shm::count_broken_off(slot, false);
    constexpr auto kTruncated =
        static_cast<std::size_t>(core::Outcome::truncated) - static_cast<std::size_t>(core::Outcome::connect);
    EXPECT_EQ(slot.totals.outcome_class[false][kTruncated].load(), 1U);
    shm::count_broken_off(slot, true);
    EXPECT_EQ(slot.totals.outcome_class[true][kTruncated].load(), 1U);
    EXPECT_EQ(slot.totals.outcome_class[false][kTruncated].load(), 1U);
    EXPECT_EQ(slot.totals.calls.load(), 1U);
    EXPECT_EQ(slot.word.load(), word);
    EXPECT_EQ(shm::sums_now(slot, rules, one).failures, 0U);
}

TEST_F(Member, KeepsTheTimeSpentInEachState) {
    world.pass(5'000);
    make(kFatal);
    world.pass(1'000);
    for (int n = 0; n < 3; ++n)
        make(kGood);
    const auto spent = [this](State state) { return slot.totals.state_ms[static_cast<std::size_t>(state)].load(); };
    EXPECT_EQ(spent(State::closed), 5'000U);
    EXPECT_EQ(spent(State::open), 1'000U);
    EXPECT_EQ(slot.since.load(), world.board.now.load());
    EXPECT_EQ(slot.totals.transition[0][1].load(), 1U);
    EXPECT_EQ(slot.totals.transition[1][2].load(), 1U);
    EXPECT_EQ(slot.totals.transition[2][0].load(), 1U);
}

TEST_F(Member, LetsItsRampsShareThroughEvenly) {
    rules.ramp_up = {10'000, 20};
    make(kFatal);
    world.pass(1'000);
    for (int n = 0; n < 3; ++n)
        make(kGood);
    ASSERT_EQ(state_of(slot), State::recovering);
    int passed = 0;
    for (int n = 0; n < 1'000; ++n)
        passed += shm::peek(slot, rules, one) == Decision::pass ? 1 : 0;
    EXPECT_NEAR(passed, 200, 5);
    world.pass(5'000);
    passed = 0;
    for (int n = 0; n < 1'000; ++n)
        passed += shm::peek(slot, rules, one) == Decision::pass ? 1 : 0;
    EXPECT_NEAR(passed, 600, 10);
}

TEST_F(Member, MayBeProbedAtOnceAfterAPassingHealthCheck) {
    make(kFatal);
    EXPECT_FALSE(make(kGood));
    const std::uint64_t seen = slot.word;
    EXPECT_TRUE(shm::end_open_time(slot, rules, one, seen));
    EXPECT_EQ(shm::peek(slot, rules, one), Decision::probe);
}

// --- MaxConcurrent ---

TEST_F(Member, CountsCallsInFlightAlsoWhileThereIsNoLimit) {
    Admission before = ask(slot, rules, one, world.in_flight(slot, 0));
    rules.max_concurrent = 1;
    EXPECT_EQ(shm::admit(slot, rules, one, world.in_flight(slot, 1), true, kLease).refusal, Refusal::max_concurrent);
    shm::finish(slot, rules, one, before.permit, kGood, {});
    Admission after = shm::admit(slot, rules, one, world.in_flight(slot, 1), true, kLease);
    EXPECT_EQ(after.refusal, Refusal::none);
    shm::finish(slot, rules, one, after.permit, kGood, {});
    EXPECT_EQ(shm::validate(world.segment), nullptr);
}

TEST_F(Member, GivesItsPlaceBackWhenTheBreakerRefuses) {
    make(kFatal);
    for (int n = 0; n < 5; ++n) {
        EXPECT_EQ(shm::admit(slot, rules, one, world.in_flight(slot, 0), true, kLease).refusal, Refusal::open);
    }
    EXPECT_EQ(shm::validate(world.segment), nullptr);
}

// --- MaxOpen ---

class MaxOpen : public testing::Test {
  protected:
    MaxOpen() {
        rules.max_open = 50;
        for (const char* name : {"a", "b", "c", "d"})
            slots.push_back(&world.add(name, rules));
    }
    void trip(std::size_t n) { call(*slots[n], rules, one, kFatal, {slots.data(), 4}); }
    World world;
    core::Policy rules = policy();
    std::vector<shm::Slot*> slots;
    shm::Process one = world.process(1001, &world.recorder);
};

TEST_F(MaxOpen, CountsOpenHalfOpenAndForcedOpenMembers) {
    trip(0);
    world.pass(1'000);
    Admission probe = ask(*slots[0], rules, one);
    ASSERT_EQ(state_of(*slots[0]), State::half_open);
    shm::operate(*slots[1], rules, one, EventKind::force_open);
    trip(2);
    EXPECT_EQ(state_of(*slots[2]), State::closed);
    shm::operate(*slots[1], rules, one, EventKind::reset);
    trip(2);
    EXPECT_EQ(state_of(*slots[2]), State::open);
    shm::finish(*slots[0], rules, one, probe.permit, kBad, {slots.data(), 4});
    EXPECT_EQ(state_of(*slots[0]), State::open) << "was counted all the time";
}

TEST_F(MaxOpen, ReportsASuppressedTripOncePerGenerationAndCountsEach) {
    trip(0);
    trip(1);
    for (int n = 0; n < 10; ++n)
        trip(2);
    EXPECT_EQ(world.board.suppressed.load(), 1U);
    EXPECT_EQ(slots[2]->totals.suppressed.load(), 10U);
    EXPECT_EQ(slots[2]->intent.load(), 0U);
    shm::operate(*slots[2], rules, one, EventKind::reset);
    trip(2);
    EXPECT_EQ(world.board.suppressed.load(), 2U) << "of another generation";
}

TEST_F(MaxOpen, CountsAMemberWithoutABreakerAmongThoseThatStay) {
    slots[1] = slots[3] = nullptr;
    trip(0);
    trip(2);
    EXPECT_EQ(state_of(*slots[0]), State::open);
    EXPECT_EQ(state_of(*slots[2]), State::open);
}

TEST_F(MaxOpen, DoesNotHoldAMemberThatModProxyCouldNotUseAnyway) {
    trip(0);
    trip(1);
    call(*slots[2], rules, one, kFatal, {slots.data(), 2});
    EXPECT_EQ(state_of(*slots[2]), State::open);
}

TEST_F(MaxOpen, LetsOnlyOneCallDecideAtATimeAndTheOthersCount) {
    const Between between("max_open.claimed", [&] { trip(0); });
    trip(0);
    EXPECT_TRUE(between.has_happened());
    EXPECT_EQ(state_of(*slots[0]), State::open);
    EXPECT_EQ(slots[0]->totals.calls.load(), 2U);
    EXPECT_EQ(slots[0]->intent.load(), 0U);
}

TEST_F(MaxOpen, ReleasesOnlyItsOwnIntent) {
    // The parent takes the first one for dead in the middle of its claim; another claims; the first goes on.
    std::uint64_t others = 0;
    const Between between("max_open.applied", [&] {
        world.child_exited(1001);
        slots[0]->intent = others = (std::uint64_t{77} << shm::kPidBits) | 1002U;
    });
    trip(0);
    EXPECT_EQ(slots[0]->intent.load(), others);
}

}  // namespace
}  // namespace cb::test
