// A probe's deadline: once it has passed, the phase alone decides. The rule is the same whoever applies it, and it is
// applied once.
#include <gtest/gtest.h>

#include "shm/lease.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::Decision;
using core::State;
using shm::Phase;

/// Who finds that the deadline has passed.
enum class Finder { looker, holder, taker };

/// A breaker in half-open with one probe out, whose lease ends at 11,000.
class Deadline : public testing::TestWithParam<Finder> {
  protected:
    Deadline() : slot(world.add("http://a", rules)) {
        world.board.now = 0;
        rules.probes = {4, 1, 3, 4, 4};
        EXPECT_TRUE(call(slot, rules, one, kFatal));
        world.board.now = 1000;
        permit = ask(slot, rules, one, {}, 10'000).permit;
        EXPECT_EQ(permit.kind, shm::PermitKind::probe);
    }
    /// The moment comes, and somebody finds out.
    void find_out(const shm::Ending& holders_own = kGood) {
        world.board.now = kDeadline + shm::Lease::kUnit;
        switch (GetParam()) {
            case Finder::looker: {
                const bool is_let_in = shm::peek(slot, rules, two) == Decision::probe;
                EXPECT_EQ(is_let_in, state_of(slot) == State::half_open);
                break;
            }
            case Finder::taker:
                EXPECT_TRUE(shm::expire_probes(slot, rules, two));
                break;
            case Finder::holder:
                shm::finish(slot, rules, one, permit, holders_own, {});
                break;
        }
    }
    [[nodiscard]] core::Word word() const { return word_of(slot); }

    static constexpr core::Millis kDeadline = 11'000;
    World world;
    core::Policy rules = policy();
    shm::Slot& slot;
    shm::Process one = world.process(1001, &world.recorder);
    shm::Process two = world.process(1002, &world.recorder);
    shm::Permit permit;
};

TEST_P(Deadline, MakesAProbeThatWasNotSentNeutral) {
    find_out();
    EXPECT_EQ(word().slots, 0U);
    EXPECT_EQ(word().neutral, 1U);
    EXPECT_EQ(word().successes, 0U);
    EXPECT_EQ(world.board.lost.load(), 0U);
    EXPECT_EQ(slot.totals.probes_lost.load(), 0U);
}

TEST_P(Deadline, MakesAProbeThatWasSentAFailureAndReportsItLostOnce) {
    shm::mark(slot, permit, Phase::sent);
    find_out();
    EXPECT_EQ(word().slots, 0U);
    EXPECT_EQ(word().failures, 1U);
    EXPECT_EQ(word().successes, 0U);
    EXPECT_EQ(world.board.lost.load(), 1U);
    EXPECT_EQ(slot.totals.probes_lost.load(), 1U);
}

TEST_P(Deadline, GoesByTheProvisionalVerdictOnceThereIsOne) {
    for (const core::Verdict verdict : {core::Verdict::success, core::Verdict::failure, core::Verdict::tolerate,
                                        core::Verdict::ignore, core::Verdict::fatal}) {
        shm::mark(slot, permit, Phase::sent);
        shm::mark(slot, permit, shm::provisional(verdict));
        const core::Word before = word();
        // What the holder says then is another thing each time: it is too late for that.
        find_out(verdict == core::Verdict::success ? kFatal : kGood);
        const bool is_neutral = verdict == core::Verdict::tolerate || verdict == core::Verdict::ignore;
        if (verdict == core::Verdict::fatal) {
            EXPECT_EQ(word().state, State::open);
            break;
        }
        EXPECT_EQ(word().successes, before.successes + (verdict == core::Verdict::success ? 1 : 0));
        EXPECT_EQ(word().failures, before.failures + (verdict == core::Verdict::failure ? 1 : 0));
        EXPECT_EQ(word().neutral, before.neutral + (is_neutral ? 1 : 0));
        world.board.now = 1000;
        permit = ask(slot, rules, one, {}, 10'000).permit;
        ASSERT_EQ(permit.kind, shm::PermitKind::probe);
    }
    EXPECT_EQ(world.board.lost.load(), 0U);
}

TEST_P(Deadline, IsAppliedOnceWhoeverComesAfterwards) {
    shm::mark(slot, permit, Phase::sent);
    shm::Permit copy = permit;
    find_out();
    const std::uint64_t after = slot.word;
    shm::finish(slot, rules, one, copy, kGood, {});
    shm::cancel(slot, rules, one, permit);
    EXPECT_FALSE(shm::expire_probes(slot, rules, two));
    EXPECT_EQ(slot.word.load(), after);
    EXPECT_EQ(world.board.lost.load(), 1U);
    EXPECT_EQ(shm::validate(world.segment), nullptr);
}

// That includes a stream or a tunnel of a member that has answered: it never holds a slot for long.
TEST_P(Deadline, GivesTheSlotOfAnAnsweredProbeToTheNextAndTheLateHolderCannotTouchThat) {
    shm::mark(slot, permit, Phase::sent);
    shm::mark(slot, permit, shm::provisional(core::Verdict::failure));
    shm::Permit late = permit;
    find_out();
    shm::Permit next = ask(slot, rules, two).permit;
    ASSERT_EQ(next.kind, shm::PermitKind::probe);
    shm::mark(slot, late, Phase::fatal);
    shm::finish(slot, rules, one, late, kFatal, {});
    EXPECT_EQ(word().state, State::half_open);
    EXPECT_EQ(word().slots, 1U);
    shm::finish(slot, rules, two, next, kGood, {});
    EXPECT_EQ(word().successes, 1U);
    EXPECT_EQ(word().failures, 1U);
}

INSTANTIATE_TEST_SUITE_P(FoundBy, Deadline, testing::Values(Finder::looker, Finder::holder, Finder::taker),
                         [](const auto& param) {
                             return param.param == Finder::looker   ? "AnotherThatLooks"
                                    : param.param == Finder::holder ? "ItsHolder"
                                                                    : "AnotherThatTakes";
                         });

using BeforeDeadline = Deadline;
INSTANTIATE_TEST_SUITE_P(Nobody, BeforeDeadline, testing::Values(Finder::looker));

TEST_P(BeforeDeadline, NobodyTakesTheLeaseAwayAndTheHoldersOwnVerdictCounts) {
    shm::mark(slot, permit, Phase::sent);
    shm::mark(slot, permit, Phase::success);
    world.board.now = kDeadline - 1;
    EXPECT_EQ(shm::peek(slot, rules, two), Decision::refuse);
    EXPECT_FALSE(shm::expire_probes(slot, rules, two));
    shm::finish(slot, rules, one, permit, kBad, {});
    EXPECT_EQ(word().failures, 1U);
}

// The headers come after the deadline, and nobody has looked in between: the phase at the deadline was `sent`. mark()
// has no clock; whoever calls it does not do so after the deadline (call.cpp).
TEST_P(BeforeDeadline, AHolderThatHearsFromTheBackendAfterItCannotMakeASuccessOfIt) {
    shm::mark(slot, permit, Phase::sent);
    world.board.now = kDeadline + shm::Lease::kUnit;
    if (!shm::Lease::of(permit.lease).is_past(world.board.now)) shm::mark(slot, permit, Phase::success);
    shm::finish(slot, rules, one, permit, kGood, {});
    EXPECT_EQ(word().failures, 1U);
    EXPECT_EQ(word().successes, 0U);
    EXPECT_EQ(world.board.lost.load(), 1U);
}

TEST_P(BeforeDeadline, AnAbandonedProbeIsEndedByARequestThatFindsNoneFreeAndItsSlotIsHadAfterTheLinger) {
    shm::mark(slot, permit, Phase::sent);
    // The breaker has moved on and may be probed again, but its one lease is still with the lost probe of before.
    shm::operate(slot, rules, two, core::EventKind::reset);
    ASSERT_TRUE(call(slot, rules, two, kFatal));
    world.pass(2000);
    EXPECT_EQ(shm::peek(slot, rules, two), Decision::probe);
    EXPECT_EQ(shm::admit(slot, rules, two, {}, true, kLease).refusal, shm::Refusal::open);
    world.board.now = kDeadline + shm::Lease::kUnit;
    EXPECT_EQ(shm::admit(slot, rules, two, {}, true, kLease).refusal, shm::Refusal::open);
    EXPECT_EQ(world.board.lost.load(), 1U);
    world.pass(rules.linger + shm::Lease::kUnit);
    shm::Permit next = ask(slot, rules, two).permit;
    EXPECT_EQ(next.kind, shm::PermitKind::probe);
    EXPECT_EQ(world.board.lost.load(), 1U);
    EXPECT_EQ(word().failures, 0U) << "of another round";
}

TEST_P(BeforeDeadline, ALostProbeBeyondWhatIsToleratedOpensTheBreakerByItself) {
    rules.probes.tolerate = 0;
    shm::mark(slot, permit, Phase::sent);
    world.board.now = kDeadline + shm::Lease::kUnit;
    EXPECT_EQ(shm::peek(slot, rules, two), Decision::refuse);
    EXPECT_EQ(word().state, State::open);
    EXPECT_EQ(word().level, 1U);
}

// Once its headers are in, a response has until it has settled; somebody else finds that out while its holder waits.
TEST_P(Deadline, ComesForwardWithTheHeadersButNeverGoesBack) {
    shm::mark(slot, permit, Phase::sent, kDeadline + 5'000);
    EXPECT_EQ(shm::Lease::of(permit.lease).deadline, shm::Lease::deadline_after(kDeadline, 0));
    shm::mark(slot, permit, Phase::sent);
    EXPECT_EQ(shm::Lease::of(permit.lease).deadline, shm::Lease::deadline_after(kDeadline, 0));
    shm::mark(slot, permit, Phase::success, 4'000);
    world.board.now = 3'999;
    EXPECT_FALSE(shm::expire_probes(slot, rules, two));
    EXPECT_EQ(slot.lease[permit.slot].load(), permit.lease);
    world.board.now = 4'000 + shm::Lease::kUnit;
    if (GetParam() == Finder::holder) {
        shm::finish(slot, rules, one, permit, kBad, {});
    } else {
        EXPECT_TRUE(shm::expire_probes(slot, rules, two));
    }
    EXPECT_EQ(word().successes, 1U);
    EXPECT_EQ(word().slots, 0U);
    EXPECT_EQ(world.board.lost.load(), 0U);
}

TEST(LeaseWord, ComesForwardAlsoWhereItsDeadlineWraps) {
    const core::Millis wrap = (core::Millis{1} << 22U) * shm::Lease::kUnit;
    for (core::Millis now = wrap - 20'000; now < wrap + 20'000; now += 61) {
        shm::Lease lease{shm::LeaseState::active, Phase::sent, 1, 1, shm::Lease::deadline_after(now, 10'000)};
        lease.shorten(now + 12'000);
        EXPECT_FALSE(lease.is_past(now + 9'999)) << now;
        lease.shorten(now + 300);
        EXPECT_FALSE(lease.is_past(now + 299)) << now;
        EXPECT_TRUE(lease.is_past(now + 364)) << now;
    }
}

TEST(LeaseWord, KeepsItsFields) {
    for (const auto state :
         {shm::LeaseState::free, shm::LeaseState::reserved, shm::LeaseState::active, shm::LeaseState::settling}) {
        for (std::uint8_t phase = 0; phase < 8; ++phase) {
            const shm::Lease lease{state, static_cast<Phase>(phase), 0x7FFF, shm::kPidMask, shm::Lease::kDeadlineMask};
            const shm::Lease again = shm::Lease::of(lease.bits());
            EXPECT_EQ(again.state, lease.state);
            EXPECT_EQ(again.phase, lease.phase);
            EXPECT_EQ(again.sequence, lease.sequence);
            EXPECT_EQ(again.pid, lease.pid);
            EXPECT_EQ(again.deadline, lease.deadline);
        }
    }
}

TEST(LeaseWord, IsNeverPastBeforeItsTimeAndAtMostAUnitLater) {
    for (const core::Millis now : {core::Millis{0}, core::Millis{63}, core::Millis{64}, 100 * core::kDay + 7}) {
        for (const core::Millis span :
             {core::Millis{1}, core::Millis{64}, core::Millis{21'000}, core::Millis{129'600'000}}) {
            const shm::Lease lease{shm::LeaseState::active, Phase::sent, 1, 1, shm::Lease::deadline_after(now, span)};
            EXPECT_FALSE(lease.is_past(now));
            EXPECT_FALSE(lease.is_past(now + span - 1)) << now << " + " << span;
            EXPECT_TRUE(lease.is_past(now + span + shm::Lease::kUnit)) << now << " + " << span;
            EXPECT_TRUE(lease.is_past(now + span + 36 * 3'600'000)) << "after a day and a half without a look";
        }
    }
}

// The deadline's field goes round every 74 hours; a probe taken just before must not live for days.
TEST(LeaseWord, GoesOnWhereItsDeadlineWraps) {
    const core::Millis wrap = (core::Millis{1} << 22U) * shm::Lease::kUnit;
    for (core::Millis now = wrap - 20'000; now < wrap + 20'000; now += 61) {
        const shm::Lease lease{shm::LeaseState::active, Phase::sent, 1, 1, shm::Lease::deadline_after(now, 10'000)};
        EXPECT_FALSE(lease.is_past(now + 9'999)) << now;
        EXPECT_TRUE(lease.is_past(now + 10'064)) << now;
    }
}

}  // namespace
}  // namespace cb::test
