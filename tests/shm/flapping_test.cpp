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
using core::Outcome;

/// Open for 1000 ms at any level, so that ten open times are 10 s. Probes may take 300 ms; slow is 400 ms.
struct Flapping : testing::Test {
    Flapping() {
        rules.open_time.factor_milli = 1000;
        rules.probe_timeout = 300;
        rules.slow_call = {400, 100};
    }
    void make(const shm::Ending& ending, int times = 1) {
        for (int n = 0; n < times; ++n)
            ASSERT_TRUE(call(slot, rules, one, ending));
    }
    void end_open_time() { world.pass(core::open_remaining(word_of(slot), world.board.now.load())); }
    void probe(Outcome outcome, core::Millis takes) {
        end_open_time();
        shm::Admission admission = ask(slot, rules, one);
        ASSERT_EQ(admission.permit.kind, shm::PermitKind::probe);
        world.pass(takes);
        shm::Ending ending = kBad;
        ending.outcome = outcome;
        ending.latency = takes + 1;
        for (shm::Permit& permit : kept)
            shm::finish(slot, rules, one, permit, ending, {});
        ending.latency = takes;
        if (outcome == Outcome{200}) ending.slow = true, ending.verdict = core::Verdict::success;
        shm::finish(slot, rules, one, admission.permit, ending, {});
    }
    void play(const std::string& story) {
        for (const char step : story) {
            if (step == 't') make(kFatal);
            if (step == 'f') make(kBad, 4);                                   // opens it by its failure rate
            if (step == 'r') end_open_time(), make(kGood, 3), world.pass(1);  // recovers
            if (step == 'w') make(kGood, 4);                                  // is proven well
            if (step == 'p') probe(Outcome::reset, 0);
            if (step == 'o') probe(Outcome::timeout, 310);
            if (step == 'u') probe(Outcome::timeout, 475);
            if (step == 'v') probe(Outcome::timeout, 476);
            if (step == 's') probe(Outcome{200}, 450);
            if (step == 'b') probe(Outcome{502}, 450);
            if (step == 'k') kept.push_back(ask(slot, rules, one).permit);  // a call that outlasts the next probe
            if (step == '2') rules.open_time.factor_milli = 2000;
            if (step == '.') world.pass(2500);
            if (step == 'R') shm::operate(slot, rules, one, EventKind::reset);
            if (step == 'O') shm::operate(slot, rules, one, EventKind::force_open);
            if (step == 'A') shm::operate(slot, rules, one, EventKind::automatic);
        }
    }
    [[nodiscard]] std::uint64_t reports() const { return world.board.flapping.load(); }
    [[nodiscard]] const core::Flapping& said() const { return world.board.flapping_figures; }

    World world;
    core::Policy rules = policy();
    shm::Slot& slot = world.add("http://a", rules);
    shm::Process one = world.process(1001, &world.recorder);
    std::vector<shm::Permit> kept;
};

constexpr std::uint64_t kRate = 1U << 1U, kByFatal = 1U << 4U, kByProbe = 1U << 7U;  // reasons

const struct Line {
    const char* story;
    std::uint64_t reports;
    bool is_flapping;  // at the end
    // Of the last report: span, openings, reasons, after a recovery, recovery, has recovered; probes: failed, timed
    // out, slow.
    std::vector<std::uint64_t> figures = {};
} kLines[] = {
    {"trtrt", 0, false},
    {"trtrtrt", 1, true, {10'000, 4, kByFatal, 3, 0, 0, 0, 0, 0}},
    {"frfrfrf", 1, true, {10'000, 4, kRate, 3, 0, 0, 0, 0, 0}},
    {"trtrtrtrtrtrtrtrtrt", 1, true},
    {"trwtrwtrwt", 1, true, {10'000, 4, kByFatal, 0, 0, 0, 0, 0, 0}},  // well before each
    {"tr.tr.tr.tr.tr.tr.t", 0, false},                                 // three in ten open times
    {"2tppp", 1, true, {80'000, 4, kByFatal | kByProbe, 0, 7000, 0, 3, 0, 0}},
    // When it ends: well, and not that often any more.
    {"trtrtrtrw", 1, true},
    {"trtrtrtrwtrwtrwtrwtrwtr", 1, true},
    {"trtrtrtr....", 1, true},
    {"trtrtrtr....w", 1, false},
    {"trtrtrtr....t", 1, true},
    {"trtrtrtrw....t", 1, false},
    {"trtrtrtrw....trtrtrt", 2, true},
    // An operator's hand.
    {"trtrtrRt", 0, false},
    {"tppRtrtrtrt", 1, true, {10'000, 4, kByFatal, 3, 0, 0, 0, 0, 0}},
    {"trtrtrtR", 1, false},
    {"trtrtrtO", 1, true},
    {"trtrtrtOAt", 1, false},
    // How long it was out, and what its probes ran into.
    {"tppp", 1, true, {10'000, 4, kByFatal | kByProbe, 0, 3000, 0, 3, 0, 0}},
    {"trtprt", 1, true, {10'000, 4, kByFatal | kByProbe, 2, 2000, 1, 1, 0, 0}},
    {"t....prtprt", 1, true, {10'000, 4, kByFatal | kByProbe, 2, 11'000, 1, 2, 0, 0}},  // the longest
    {"tpr.....trtrtrt", 1, true, {10'000, 4, kByFatal, 4, 0, 0, 1, 0, 0}},
    {"kktouv", 1, true, {10'000, 4, kByFatal | kByProbe, 0, 4261, 0, 3, 2, 0}},
    {"tsss", 1, true, {10'000, 4, kByFatal | kByProbe, 0, 4350, 0, 3, 0, 3}},
    {"tbbb", 1, true, {10'000, 4, kByFatal | kByProbe, 0, 4350, 0, 3, 0, 0}},
};

TEST(FlappingOf, AStoryIsReportedWithItsFigures) {
    for (const Line& line : kLines) {
        SCOPED_TRACE(line.story);
        struct : Flapping {
            void TestBody() override {}
        } its;
        its.play(line.story);
        EXPECT_EQ(its.reports(), line.reports);
        EXPECT_EQ(its.slot.flapping.load() != 0, line.is_flapping);
        const core::Flapping& said = its.said();
        const std::vector<std::uint64_t> figures{said.span,           said.openings,         said.reasons,
                                                 said.after_recovery, said.recovery,         said.is_recovered,
                                                 said.failed_probes,  said.timed_out_probes, said.slow_probes};
        if (!line.figures.empty()) {
            EXPECT_EQ(figures, line.figures);
        }
    }
}

TEST_F(Flapping, KnowsTheSharesOfAllCallsOnceTheyAreEnough) {
    slot.totals.slow[false] = 20;
    slot.totals.verdict[false][static_cast<unsigned>(core::Verdict::success)] = 95;  // and probes, which don't count
    play("trtrtrt");
    EXPECT_EQ(said().calls_per_opening, 0);
    play("R");
    slot.totals.verdict[false][static_cast<unsigned>(core::Verdict::ignore)] = 50;
    play("trtrtrt");
    EXPECT_DOUBLE_EQ(said().failing, 8.0 / 103);
    EXPECT_DOUBLE_EQ(said().slow, 20.0 / 103);
    EXPECT_DOUBLE_EQ(said().calls_per_opening, 103.0 / 8);
}

TEST_F(Flapping, OfTwoProcessesThatOpenItAtOnceOnlyOneReports) {
    play("trtrtr");
    // The one has opened it and seen that it flaps; before it reports, another opens it once more and does.
    const Between between("flapping.found", [&] {
        one.pid = 1002;
        play("rt");
    });
    play("t");
    EXPECT_TRUE(between.has_happened());
    EXPECT_EQ(reports(), 1U);
    EXPECT_EQ(said().openings, 5U);
}

TEST_F(Flapping, OfAChildKilledBeforeItsReportIsReportedAtTheNextOpening) {
    play("trtrtr");
    const pid_t child = fork_child([&] {
        die_at("flapping.found", 1);
        one.pid = static_cast<std::uint32_t>(::getpid());
        play("t");
    });
    ASSERT_EQ(wait_for(child), -SIGKILL);
    world.child_exited(static_cast<std::uint32_t>(child));
    play("rw");
    EXPECT_EQ(reports(), 0U);
    play("t");
    EXPECT_EQ(reports(), 1U);
    EXPECT_EQ(said().openings, 5U);
}

}  // namespace
}  // namespace cb::test
