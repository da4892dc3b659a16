// Flapping through the verbs: when it is reported, by whom, and with which figures.
#include "shm/flapping.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "executors.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::EventKind;
using core::State;

/// Open for 1000 ms and not longer at higher levels, so that ten open times are 10 s.
class Flapping : public testing::Test {
  protected:
    Flapping() { rules.open_time.factor_milli = 1000; }
    bool make(const shm::Ending& ending) { return call(slot, rules, one, ending); }
    void trip() {
        ASSERT_TRUE(make(kFatal));
        ASSERT_EQ(state_of(slot), State::open);
    }
    /// The open time passes and all probes succeed.
    void recover() {
        world.pass(core::open_remaining(word_of(slot), world.board.now.load()));
        for (std::uint32_t n = 0; n < rules.probes.successes; ++n)
            ASSERT_TRUE(make(kGood));
        ASSERT_EQ(state_of(slot), State::closed);
    }
    void prove_well() {
        for (std::uint32_t n = 0; n < rules.minimum_calls; ++n)
            ASSERT_TRUE(make(kGood));
        ASSERT_EQ(word_of(slot).level, 0U);
    }
    /// A probe fails as soon as one may be made.
    void fail_a_probe(const shm::Ending& ending = kBad, core::Millis takes = 0) {
        world.pass(core::open_remaining(word_of(slot), world.board.now.load()));
        shm::Admission admission = ask(slot, rules, one);
        ASSERT_EQ(admission.permit.kind, shm::PermitKind::probe);
        world.pass(takes);
        shm::finish(slot, rules, one, admission.permit, ending, {});
        ASSERT_EQ(state_of(slot), State::open);
    }
    [[nodiscard]] std::uint64_t reported() const { return world.board.flapping.load(); }
    [[nodiscard]] const core::Flapping& figures() const { return world.board.flapping_figures; }
    [[nodiscard]] bool is_suggested(const std::string& directive) const {
        return std::string(core::FlappingText(figures(), rules).summary).find(directive) != std::string::npos;
    }
    /// Trips and recovers so many times.
    void flap(int times) {
        for (int n = 0; n < times; ++n) {
            trip();
            recover();
        }
    }

    World world;
    core::Policy rules = policy();
    shm::Slot& slot = world.add("http://a", rules);
    shm::Process one = world.process(1001, &world.recorder);
};

TEST_F(Flapping, IsReportedAtTheFourthOpeningWithinTenOpenTimesAndOnceOnly) {
    trip();
    for (int n = 0; n < 2; ++n) {
        recover();
        trip();
    }
    EXPECT_EQ(reported(), 0U);
    EXPECT_EQ(slot.flapping.load(), 0U);
    recover();
    trip();
    EXPECT_EQ(reported(), 1U);
    EXPECT_EQ(slot.flapping.load(), std::uint64_t{word_of(slot).generation} + 1);
    EXPECT_EQ(figures().openings, 4U);
    EXPECT_EQ(figures().span, 10'000U);
    EXPECT_EQ(figures().after_recovery, 3U);
    EXPECT_TRUE(is_suggested("CircuitBreakerRampUp"));
    EXPECT_EQ(figures().recovery, 0U) << "one opening was enough each time";
    EXPECT_FALSE(figures().is_recovered);
    for (int n = 0; n < 10; ++n) {
        recover();
        trip();
    }
    EXPECT_EQ(reported(), 1U);
    const core::Flapping now = shm::figures_of(slot, rules, word_of(slot).level, world.board.now.load());
    EXPECT_EQ(now.openings, 11U) << "one a second, and both ends of the ten";
    EXPECT_EQ(now.all_openings, 14U);
}

TEST_F(Flapping, ThreeOpeningsOrFourInALongerTimeAreNone) {
    for (int n = 0; n < 12; ++n) {
        trip();
        recover();
        world.pass(2500);  // 3500 from opening to opening: three in ten open times
    }
    EXPECT_EQ(reported(), 0U);
}

TEST_F(Flapping, IsMeasuredByTheOpenTimeOfThePresentLevel) {
    rules.open_time = {1000, 60'000, 2000, 0, false};
    trip();
    for (int n = 0; n < 3; ++n)
        fail_a_probe();
    EXPECT_EQ(word_of(slot).level, 3U);
    EXPECT_EQ(reported(), 1U);
    EXPECT_EQ(figures().span, 80'000U);
}

TEST_F(Flapping, IsReportedAgainOnlyAfterItWasWellAndHadStopped) {
    flap(4);
    ASSERT_EQ(reported(), 1U);
    prove_well();
    EXPECT_NE(slot.flapping.load(), 0U) << "well, but it has opened four times just now";
    for (int n = 0; n < 6; ++n) {
        trip();
        recover();
        prove_well();
    }
    EXPECT_EQ(reported(), 1U) << "it never stopped";
    world.pass(10'000);
    trip();
    EXPECT_EQ(slot.flapping.load(), 0U);
    for (int n = 0; n < 3; ++n) {
        recover();
        trip();
    }
    EXPECT_EQ(reported(), 2U);
}

TEST_F(Flapping, GoesOnAfterACalmTimeInWhichItWasNotProvenWell) {
    flap(4);
    ASSERT_EQ(reported(), 1U);
    world.pass(20'000);
    trip();
    EXPECT_NE(slot.flapping.load(), 0U);
}

TEST_F(Flapping, HasEndedWhenItIsProvenWellLongEnoughAfterItsOpenings) {
    flap(4);
    world.pass(10'000);
    EXPECT_NE(slot.flapping.load(), 0U);
    prove_well();
    EXPECT_EQ(slot.flapping.load(), 0U);
}

TEST_F(Flapping, IsCountedAnewAfterAnOperatorsHand) {
    flap(3);
    shm::operate(slot, rules, one, EventKind::reset);  // closed already: no change of state
    trip();
    EXPECT_EQ(reported(), 0U);
    for (int n = 0; n < 3; ++n) {
        recover();
        trip();
    }
    ASSERT_EQ(reported(), 1U);
    shm::operate(slot, rules, one, EventKind::force_open);
    EXPECT_NE(slot.flapping.load(), 0U);
    shm::operate(slot, rules, one, EventKind::automatic);
    trip();
    EXPECT_EQ(slot.flapping.load(), 0U) << "the first opening since";
    recover();
    shm::operate(slot, rules, one, EventKind::reset);
    EXPECT_EQ(slot.flapping.load(), 0U);
}

TEST_F(Flapping, OfTwoProcessesThatOpenItAtOnceOnlyOneReports) {
    flap(3);
    // The one has opened it and seen that it flaps; before it reports, another opens it once more and does.
    const Between between("flapping.found", [&] {
        recover();
        (void)call(slot, rules, world.process(1002, &world.recorder), kFatal);
    });
    trip();
    EXPECT_TRUE(between.has_happened());
    EXPECT_EQ(reported(), 1U);
    EXPECT_EQ(figures().openings, 5U);
}

TEST_F(Flapping, OfAChildKilledBeforeItsReportIsReportedAtTheNextOpening) {
    flap(3);
    const pid_t child = fork_child([&] {
        die_at("flapping.found", 1);
        (void)call(slot, rules, world.process(static_cast<std::uint32_t>(::getpid()), &world.recorder), kFatal);
    });
    ASSERT_EQ(wait_for(child), -SIGKILL);
    world.child_exited(static_cast<std::uint32_t>(child));
    ASSERT_EQ(state_of(slot), State::open);
    EXPECT_EQ(reported(), 0U);
    recover();
    trip();
    EXPECT_EQ(reported(), 1U);
    EXPECT_EQ(figures().openings, 5U);
}

// --- what it comes with ---

TEST_F(Flapping, OfAMemberThatIsStillDownShowsSinceWhen) {
    trip();
    for (int n = 0; n < 3; ++n)
        fail_a_probe();
    ASSERT_EQ(reported(), 1U);
    EXPECT_EQ(figures().recovery, 3000U);
    EXPECT_FALSE(figures().is_recovered);
    EXPECT_TRUE(is_suggested("CircuitBreakerOpenTime"));
    EXPECT_EQ(figures().failed_probes, 3U);
    EXPECT_EQ(figures().timed_out_probes, 0U);
    EXPECT_FALSE(is_suggested("CircuitBreakerRampUp"));
}

TEST_F(Flapping, ShowsTheLongestRecoveryThatTookMoreThanOneOpening) {
    trip();
    recover();  // at once: the open time was long enough
    trip();
    fail_a_probe();
    recover();
    trip();
    ASSERT_EQ(reported(), 1U);
    EXPECT_EQ(figures().recovery, 2000U);
    EXPECT_TRUE(figures().is_recovered);
    EXPECT_TRUE(is_suggested("CircuitBreakerOpenTime"));
}

TEST_F(Flapping, KnowsOpeningsSoonAfterARecoveryFromThoseOfABreakerThatWasProvenWell) {
    for (int n = 0; n < 3; ++n) {
        trip();
        recover();
        prove_well();
    }
    trip();
    ASSERT_EQ(reported(), 1U);
    EXPECT_EQ(figures().after_recovery, 0U);
    EXPECT_FALSE(is_suggested("CircuitBreakerRampUp"));
}

TEST_F(Flapping, KnowsProbesThatTimedOutFromOtherCallsThatDid) {
    rules.probe_timeout = 300;
    shm::Ending timed_out = kBad;
    timed_out.outcome = core::Outcome::timeout;
    timed_out.latency = 310;
    // Ordinary calls that began before it opened, and end while it is half-open.
    std::vector<shm::Permit> old;
    for (int n = 0; n < 8; ++n)
        old.push_back(ask(slot, rules, one).permit);
    trip();
    world.pass(1000);
    shm::Admission probe = ask(slot, rules, one);
    world.pass(310);
    shm::Ending late = timed_out;
    late.latency = 1310;
    for (shm::Permit& permit : old)
        shm::finish(slot, rules, one, permit, late, {});
    shm::finish(slot, rules, one, probe.permit, timed_out, {});
    fail_a_probe(timed_out, 310);
    timed_out.latency = 900;
    fail_a_probe(timed_out, 900);
    ASSERT_EQ(reported(), 1U);
    EXPECT_EQ(figures().failed_probes, 3U);
    EXPECT_EQ(figures().timed_out_probes, 2U) << "the third was no timeout of its own";
    EXPECT_TRUE(is_suggested("CircuitBreakerProbeTimeout"));
    EXPECT_FALSE(is_suggested("CircuitBreakerOpenTime"));
}

TEST_F(Flapping, KnowsProbesThatWereALittleTooSlow) {
    rules.slow_call = {400, 100};
    trip();
    shm::Ending slow = kGood;
    slow.slow = true;
    slow.latency = 450;
    for (int n = 0; n < 3; ++n)
        fail_a_probe(slow, 450);
    ASSERT_EQ(reported(), 1U);
    EXPECT_EQ(figures().slow_probes, 3U);
    EXPECT_TRUE(is_suggested("CircuitBreakerSlowCall"));
}

TEST_F(Flapping, ByAFailureRateCloseToTheUsualOneSaysSo) {
    rules.minimum_calls = 20;
    rules.consecutive_failures = 0;
    rules.window = {0, 20};
    shm::configure(slot, rules, one);
    Random random(4);
    for (int n = 0; n < 20'000 && reported() == 0; ++n) {
        if (state_of(slot) == State::open) {
            recover();
        }
        (void)make(random.below(100) < 38 ? kBad : kGood);
        world.pass(5);
    }
    ASSERT_EQ(reported(), 1U);
    EXPECT_TRUE(figures().by_failure_rate);
    EXPECT_GE(figures().all_openings, 4U);
    EXPECT_GE(figures().calls, 100U);
    EXPECT_EQ(figures().calls, slot.totals.calls.load());
    EXPECT_TRUE(is_suggested("CircuitBreakerFailureRate"));
    EXPECT_FALSE(is_suggested("CircuitBreakerOpenTime"));
}

}  // namespace
}  // namespace cb::test
