// Adaptive probing through the verbs: the round that a breaker begins follows from the probes before.
#include "shm/adaptive.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <vector>

#include "core/probe_rate.hpp"
#include "executors.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::EventKind;
using core::ProbeRate;
using core::State;

class Adaptive : public testing::Test {
  protected:
    Adaptive() : slot(world.add("http://a", rules)) { rules.probes = {2, 16, 0, 2, 16}; }
    void trip() {
        ASSERT_TRUE(call(slot, rules, one, kFatal));
        ASSERT_EQ(state_of(slot), State::open);
        world.pass(open_time());
    }
    [[nodiscard]] core::Millis open_time() const { return core::open_remaining(word_of(slot), world.board.now.load()); }
    /// One round of half-open, all of whose probes end like that. Returns how many it let in at once.
    std::size_t round(const shm::Ending& ending) {
        std::vector<shm::Permit> held;
        for (int n = 0; n < 20; ++n) {
            shm::Admission admission = ask(slot, rules, one);
            if (admission.permit.kind == shm::PermitKind::probe) held.push_back(admission.permit);
        }
        for (shm::Permit& permit : held)
            shm::finish(slot, rules, one, permit, ending, {});
        return held.size();
    }
    std::size_t tripped_round(const shm::Ending& ending) {
        trip();
        return round(ending);
    }
    [[nodiscard]] ProbeRate rate() const { return ProbeRate::of(slot.probe_rate.load()); }

    World world;
    core::Policy rules = policy();
    shm::Slot& slot;
    shm::Process one = world.process(1001, &world.recorder);
};

TEST_F(Adaptive, RoundsGrowOnceTenProbesHaveGoneWell) {
    for (int n = 0; n < 5; ++n)
        EXPECT_EQ(tripped_round(kGood), 2U) << n;
    EXPECT_EQ(tripped_round(kGood), 4U);
    EXPECT_EQ(state_of(slot), State::closed) << "successes stays N";
    EXPECT_EQ(tripped_round(kGood), 8U);
    EXPECT_EQ(tripped_round(kGood), 16U);
    EXPECT_EQ(tripped_round(kGood), 16U);
    EXPECT_EQ(rate().round, 16U);
}

TEST_F(Adaptive, SharesOfARoundGrowWithIt) {
    rules.probes = {.round = 4,
                    .concurrent = 16,
                    .tolerate = 50,
                    .successes = 75,
                    .max = 8,
                    .is_tolerate_share = true,
                    .is_successes_share = true};
    for (int n = 0; n < 3; ++n)
        EXPECT_EQ(tripped_round(kGood), 4U);  // the last one of a round comes too late to be a sample
    EXPECT_EQ(rate().samples, 9U);
    EXPECT_EQ(tripped_round(kGood), 4U);
    trip();
    std::vector<shm::Permit> held;
    for (int n = 0; n < 8; ++n) {
        shm::Admission admission = ask(slot, rules, one);
        ASSERT_EQ(admission.permit.kind, shm::PermitKind::probe) << n;
        held.push_back(admission.permit);
    }
    for (int n = 0; n < 7; ++n) {
        EXPECT_EQ(state_of(slot), State::half_open) << n;
        shm::finish(slot, rules, one, held[static_cast<std::size_t>(n)], n < 2 ? kBad : kGood, {});
    }
    EXPECT_EQ(state_of(slot), State::half_open) << "five of eight are less than three quarters";
    shm::finish(slot, rules, one, held[7], kGood, {});
    EXPECT_EQ(state_of(slot), State::closed);
}

TEST_F(Adaptive, AnEarlyRoundIsARoundAsAnyOther) {
    rules.open_time.min = 300;
    for (int n = 0; n < 6; ++n)
        (void)tripped_round(kGood);
    ASSERT_EQ(rate().round, 4U);
    ASSERT_TRUE(call(slot, rules, one, kFatal));
    world.pass(300);
    shm::Permit probe = shm::admit(slot, rules, one, {}, true, kLease, nullptr, true).permit;
    ASSERT_TRUE(word_of(slot).early);
    EXPECT_EQ(word_of(slot).round, 8U);
    EXPECT_EQ(rate().round, 8U) << "from which the next one grows";
    shm::cancel(slot, rules, one, probe);
}

TEST_F(Adaptive, ARoundKeepsItsSizeWhateverIsLearntMeanwhile) {
    rules.probes = {12, 1, 0, 12, 16};
    trip();
    for (int n = 0; n < 11; ++n)
        ASSERT_TRUE(call(slot, rules, one, kGood));
    EXPECT_TRUE(rate().is_good());
    EXPECT_EQ(word_of(slot).round, 12U);
    EXPECT_EQ(rate().round, 12U);
}

TEST_F(Adaptive, OnlyWhatTheRoundCountedIsASample) {
    rules.probes = {4, 4, 0, 4, 8};
    trip();
    std::vector<shm::Permit> held;
    for (int n = 0; n < 4; ++n)
        held.push_back(ask(slot, rules, one).permit);
    shm::finish(slot, rules, one, held[0], kNeutral, {});
    shm::cancel(slot, rules, one, held[1]);
    EXPECT_EQ(rate().samples, 0U);
    shm::finish(slot, rules, one, held[2], kBad, {});
    ASSERT_EQ(state_of(slot), State::open);
    EXPECT_EQ(rate().samples, 1U);
    shm::finish(slot, rules, one, held[3], kGood, {});
    EXPECT_EQ(rate().samples, 1U) << "its round was over";
    EXPECT_EQ(rate().rate, 0U);
}

TEST_F(Adaptive, ALostProbeIsAFailedSampleAndADeadChildsIsNone) {
    trip();
    shm::Permit lost = ask(slot, rules, one).permit;
    shm::mark(slot, lost, shm::Phase::sent);
    const shm::Permit dead = ask(slot, rules, world.process(1002)).permit;
    ASSERT_EQ(dead.kind, shm::PermitKind::probe);
    world.child_exited(1002);
    EXPECT_EQ(rate().samples, 0U);
    world.pass(2 * kLease);
    EXPECT_TRUE(shm::expire_probes(slot, rules, one));
    EXPECT_EQ(rate().samples, 1U);
}

TEST_F(Adaptive, WhenMostProbesFailTheRoundIsNAgainAndTheOpenTimeLonger) {
    for (int n = 0; n < 6; ++n)
        (void)tripped_round(kGood);
    ASSERT_EQ(rate().round, 4U);
    rules.open_time = {100, core::kMaxOpenTime, 2000, 0, false};
    trip();
    std::uint32_t level = word_of(slot).level;
    for (int n = 0; n < 10; ++n) {
        round(kBad);
        ++level;
        const bool is_poor = n >= 6;  // 0.9^7 < 0.5: this very failure counts already
        EXPECT_EQ(rate().is_poor(), is_poor) << n;
        EXPECT_EQ(word_of(slot).level, level);
        EXPECT_EQ(open_time(), 100ULL << (level + (is_poor ? 1 : 0))) << n;
        world.pass(open_time());
    }
    EXPECT_EQ(round(kGood), 2U);
    ASSERT_EQ(state_of(slot), State::closed);
    EXPECT_TRUE(rate().is_poor()) << "1 - (1 - 0.9^10) x 0.9^2 = 0.47";
    call(slot, rules, one, kFatal);
    EXPECT_EQ(open_time(), 100ULL << (word_of(slot).level + 1)) << "a trip from closed as well";
}

TEST_F(Adaptive, AResetForgetsAndAForcedStateDoesNot) {
    for (int n = 0; n < 6; ++n)
        (void)tripped_round(kGood);
    const std::uint64_t before = slot.probe_rate.load();
    shm::operate(slot, rules, one, EventKind::force_open);
    shm::operate(slot, rules, one, EventKind::automatic);
    EXPECT_EQ(slot.probe_rate.load(), before);
    shm::operate(slot, rules, one, EventKind::reset);
    EXPECT_EQ(slot.probe_rate.load(), 0U);
    EXPECT_EQ(tripped_round(kGood), 2U);
}

TEST_F(Adaptive, NothingIsRememberedWithoutAMaximumAboveN) {
    rules.probes = {2, 2, 0, 2, 2};
    for (int n = 0; n < 6; ++n)
        EXPECT_EQ(tripped_round(kGood), 2U);
    EXPECT_EQ(slot.probe_rate.load(), 0U);
}

TEST_F(Adaptive, TwoProbesThatEndAtOnceAreTwoSamples) {
    trip();
    shm::Permit first = ask(slot, rules, one).permit;
    shm::Permit second = ask(slot, rules, one).permit;
    const Between between("adaptive.cas", [&] { shm::finish(slot, rules, one, second, kGood, {}); });
    shm::finish(slot, rules, one, first, kGood, {});
    EXPECT_TRUE(between.has_happened());
    EXPECT_EQ(rate().samples, 2U);
    EXPECT_EQ(rate().rate, core::kWholeRate);
}

TEST_F(Adaptive, AChildKilledBeforeItsSampleCostsThatSampleOnly) {
    trip();
    const pid_t child = fork_child([&] {
        const shm::Process mine = world.process(static_cast<std::uint32_t>(::getpid()));
        shm::Permit permit = ask(slot, rules, mine).permit;
        die_at("adaptive.cas", 1);
        shm::finish(slot, rules, mine, permit, kGood, {});
    });
    ASSERT_EQ(wait_for(child), -SIGKILL);
    world.child_exited(static_cast<std::uint32_t>(child));
    EXPECT_EQ(word_of(slot).successes, 1U) << "the round has counted it";
    EXPECT_EQ(rate().samples, 0U);
    EXPECT_EQ(rate().round, 2U);
    EXPECT_EQ(shm::validate(world.segment), nullptr);
    ASSERT_TRUE(call(slot, rules, one, kGood));
    EXPECT_EQ(rate().samples, 1U);
    EXPECT_EQ(state_of(slot), State::closed);
}

}  // namespace
}  // namespace cb::test
