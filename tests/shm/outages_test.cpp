// Outages through the verbs: how long they were, what of it was our own waiting, and who says so.
#include "shm/outages.hpp"

#include <gtest/gtest.h>

#include "world.hpp"

namespace cb::test {
namespace {

using core::EventKind;
using core::Millis;
using core::WaitedIn;

/// Open for 10 s at any level. Three probes, no ramp unless a test sets one.
struct Outages : testing::Test {
    Outages() {
        rules.open_time.base = 10'000;
        rules.open_time.factor_milli = 1000;
    }
    void make(const shm::Ending& ending, int times = 1) {
        for (int n = 0; n < times; ++n)
            ASSERT_TRUE(call(slot, rules, one, ending));
    }
    void play(const std::string& story) {
        for (const char step : story) {
            if (step == 't') make(kFatal);
            if (step == 'g') make(kGood);
            if (step == 'f') make(kBad);
            if (step == 'n') make(kNeutral);
            if (step == 'h') shm::note_proof(slot, world.board.now);
            if (step == 'e') shm::end_open_time(slot, rules, one, slot.word);
            if (step == 'E') early_probe();
            if (step == '.') world.pass(1000);
            if (step == '-') world.pass(10'000);
            if (step == 'r') rules.ramp_up = {20'000, 100};
            if (step == 'y') rules.probes.tolerate = 1;
            if (step == 'R') shm::operate(slot, rules, one, EventKind::reset);
            if (step == 'O') shm::operate(slot, rules, one, EventKind::force_open);
            if (step == 'C') shm::operate(slot, rules, one, EventKind::force_closed);
            if (step == 'A') shm::operate(slot, rules, one, EventKind::automatic);
        }
    }
    /// By a request that finds no other member; it succeeds.
    void early_probe() {
        shm::Admission probe = shm::admit(slot, rules, one, {}, true, kLease, nullptr, true);
        ASSERT_EQ(probe.permit.kind, shm::PermitKind::probe);
        shm::finish(slot, rules, one, probe.permit, kGood, {});
    }
    static std::uint64_t count_of(const shm::Histogram& histogram) {
        std::uint64_t count = 0;
        for (const shm::Atomic64& bucket : histogram.bucket)
            count += bucket;
        return count;
    }
    [[nodiscard]] std::uint64_t hints() const { return world.board.too_cautious; }
    [[nodiscard]] const core::Outage& said() const { return world.board.outage; }

    World world;
    core::Policy rules = policy();
    shm::Slot& slot = world.add("http://a", rules);
    shm::Process one = world.process(1001, &world.recorder);
};

const struct Line {
    const char* story;
    std::uint64_t outages;
    Millis lasted;  // in all
    Millis waited;
} kLines[] = {
    {"t-ggg", 1, 10'000, 0},
    {"t-g.g..g", 1, 13'000, 3000},               // after the first probe that succeeded
    {"t-..g.g.g", 1, 14'000, 2000},              // before it nobody knew
    {"t.h-ggg", 1, 11'000, 9000},                // a health check has passed; the open time is over after ten seconds
    {"th--ggg", 1, 20'000, 10'000},              // what comes after it waits for a request
    {"t.he---ggg", 1, 31'000, 0},                // the check has ended the open time; then it waits for a request
    {"t-.hggg", 1, 11'000, 0},                   // a check passes when it is due already
    {"t-.h..ggg", 1, 13'000, 0},                 //
    {"t.E..E.E", 1, 4000, 3000},                 // early probes
    {"t-g.f-ggg", 1, 21'000, 0},                 // a probe failed: the member was not well
    {"t-g.f.h-ggg", 1, 22'000, 9000},            //
    {"t-g.n.gg", 1, 12'000, 2000},               // a probe that proves nothing takes nothing back
    {"yt-g.f.g.g", 1, 13'000, 1000},             // nor is it well before a tolerated failure
    {"rt-ggg..-.-g", 1, 33'000, 20'000},         // a ramp of 20 s; then it waits for a request
    {"rt-ggg..t-ggg..-.-g", 1, 45'000, 20'000},  // opened again on the ramp: one outage
    {"t-ggg..t-ggg", 2, 20'000, 0},              //
    {"gggt-g..gg", 1, 12'000, 2000},             //
    {"t-gR", 0, 0, 0},                           // an operator's hand
    {"tOA", 0, 0, 0},                            //
    {"OAt-ggg", 1, 10'000, 0},                   //
    {"t-CA", 0, 0, 0},                           //
    {"tRt-ggg", 1, 10'000, 0},                   //
};

TEST(OutagesOf, AStoryLastAndWaitForSoLong) {
    for (const Line& line : kLines) {
        SCOPED_TRACE(line.story);
        struct : Outages {
            void TestBody() override {}
        } its;
        its.play(line.story);
        EXPECT_EQ(state_of(its.slot), core::State::closed);
        EXPECT_EQ(Outages::count_of(its.slot.outage_duration), line.outages);
        EXPECT_EQ(Outages::count_of(its.slot.outage_waiting), line.outages);
        EXPECT_EQ(its.slot.outage_duration.sum_ms, line.lasted);
        // (A ramp's start is kept in units of 64 ms.)
        EXPECT_NEAR(static_cast<double>(its.slot.outage_waiting.sum_ms), static_cast<double>(line.waited), 64);
    }
}

TEST_F(Outages, AreCountedByBoundsOfTheirOwn) {
    play("t-ggg");
    EXPECT_EQ(slot.outage_duration.bucket[3], 1U) << "10 s";
    EXPECT_EQ(slot.outage_waiting.bucket[0], 1U) << "none";
    EXPECT_EQ(count_of(slot.call_duration), 0U);
}

TEST_F(Outages, ThatAreMostlyWaitingAreSaidOnceUntilOneIsNot) {
    play("t.h-ggg");
    ASSERT_EQ(hints(), 1U);
    EXPECT_EQ(said().lasted, 11'000U);
    EXPECT_EQ(said().waited, 9000U);
    EXPECT_EQ(said().most_in, WaitedIn::open);
    EXPECT_EQ(core::unpack_outage(slot.too_cautious).waited, 9000U);
    play("t.h-ggg");
    EXPECT_EQ(hints(), 1U);
    play("t-ggg");
    EXPECT_EQ(slot.too_cautious, 0U);
    play("t.h-ggg");
    EXPECT_EQ(hints(), 2U);
    play("R");
    EXPECT_EQ(slot.too_cautious, 0U);
    play("t.h-ggg");
    EXPECT_EQ(hints(), 3U);
}

TEST_F(Outages, NameTheStateInWhichMostOfTheWaitingWasDone) {
    play("t-g....-gg");
    ASSERT_EQ(hints(), 1U);
    EXPECT_EQ(said().most_in, WaitedIn::half_open);
    play("Rt.E......EE");
    ASSERT_EQ(hints(), 2U);
    EXPECT_EQ(said().most_in, WaitedIn::half_open) << "in a round that began early";
    play("Rrt-ggg.--g");
    ASSERT_EQ(hints(), 3U);
    EXPECT_EQ(said().most_in, WaitedIn::recovering);
}

TEST_F(Outages, AreNoLongerSaidToBeTooLongOnceThePolicyIsAnother) {
    play("t.h-ggg");
    ASSERT_NE(slot.too_cautious, 0U);
    shm::configure(slot, rules, one);
    shm::configure(slot, rules, one);
    EXPECT_EQ(slot.too_cautious, 0U) << "the first one: the world's policy was not this one";
    play("t.h-ggg");
    shm::configure(slot, rules, one);
    EXPECT_NE(slot.too_cautious, 0U) << "the same";
    rules.open_time.base = 5000;
    shm::configure(slot, rules, one);
    EXPECT_EQ(slot.too_cautious, 0U);
}

TEST_F(Outages, WithMoreChangesThanTheHistoryKeepsAreNotCounted) {
    std::string story = "t";
    for (unsigned n = 0; n < shm::kHistory; ++n)
        story += "-f";
    play(story + "-ggg");
    EXPECT_EQ(state_of(slot), core::State::closed);
    EXPECT_EQ(count_of(slot.outage_duration), 0U);
    play("t-ggg");
    EXPECT_EQ(count_of(slot.outage_duration), 1U);
}

}  // namespace
}  // namespace cb::test
