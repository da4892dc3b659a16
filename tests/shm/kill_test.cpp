// SIGKILL: at every named place of every protocol, and at any instant under load. The test plays the parent: after
// child_exited() nothing is left behind, no cap was exceeded, and every breaker can still be brought to closed.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "load.hpp"

namespace cb::test {
namespace {

using core::State;

/// Every step("...") of the sources, and how often a child passes it: register_child() comes once in a life.
constexpr struct Place {
    const char* name;
    bool is_once = false;
} kPlaces[] = {
    {"adaptive.cas"},
    {"bind.begin"},
    {"bind.claimed"},
    {"bind.epoch"},
    {"bind.found"},
    {"bind.written"},
    {"cells.added"},
    {"cells.sum"},
    {"change.won"},
    {"changes.read"},
    {"changes.won"},
    {"control.cas"},
    {"early.keep"},
    {"early.look"},
    {"flapping.found"},
    {"give_back.begin"},
    {"mark.begin"},
    {"max_open.applied"},
    {"max_open.begin"},
    {"max_open.between"},
    {"max_open.claimed"},
    {"overdue.begin"},
    {"register.claimed", true},
    {"result.recorded"},
    {"settle.applied"},
    {"settle.begin"},
    {"settle.claimed"},
    {"settle.released"},
    {"take.applied"},
    {"take.begin"},
    {"take.done"},
    {"take.reserved"},
    {"window.bucket"},
    {"window.cell"},
    {"window.full"},
    {"window.head"},
};

/// Places that only the parent passes; its death is the server's.
constexpr const char* kParentsPlaces[] = {"free.begin"};

TEST(EveryNamedPlace, IsOnTheListOfThoseAtWhichAChildIsKilled) {
#ifdef CB_SHM_SOURCES
    const std::filesystem::path sources(CB_SHM_SOURCES);
#else
    const std::filesystem::path sources = std::filesystem::path(__FILE__).parent_path() / "../../shm";
#endif
    std::set<std::string> in_sources;
    for (const auto& file : std::filesystem::directory_iterator(sources)) {
        if (file.path().extension() != ".cpp" && file.path().extension() != ".hpp") continue;
        std::ostringstream text;
        text << std::ifstream(file.path()).rdbuf();
        const std::string content = text.str();
        const std::string call = "step(\"";
        for (auto at = content.find(call); at != std::string::npos; at = content.find(call, at + 1)) {
            const auto begin = at + call.size();
            in_sources.insert(content.substr(begin, content.find('"', begin) - begin));
        }
    }
    std::set<std::string> listed(std::begin(kParentsPlaces), std::end(kParentsPlaces));
    for (const Place& place : kPlaces)
        listed.insert(place.name);
    EXPECT_GT(in_sources.size(), 20U) << "looked in " << sources;
    EXPECT_EQ(in_sources, listed);
}

/// A world with four members and the parent's part after a death.
class Mourning : public testing::Test {
  protected:
    /// Waits for a child's progress; a child that stands still is found wrong by what comes after.
    static void await(const shm::Atomic64& progress, std::uint64_t at_least) {
        const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (progress < at_least && std::chrono::steady_clock::now() < patience)
            ::sched_yield();
    }
    /// A child at work until it dies or the board says stop. One that is not to die at a place is registered on return:
    /// it must not be given the column of another that the test is just burying.
    pid_t start(unsigned desk, Leases leases, const Place* dies_at = nullptr, unsigned nth = 0) {
        const std::uint64_t seed = ++seed_;
        const shm::Atomic64& progress = world.board.desk[desk].progress;
        const std::uint64_t before = progress;
        const pid_t child = fork_child([&] {
            if (dies_at != nullptr) die_at(dies_at->name, nth);
            Load load(world, members, desk, leases, seed);
            load.begin();
            // One that has done much is there all the same, however late the test comes to kill or to stop it: there is
            // room for so many reports only.
            constexpr int kMuch = 8'000;
            constexpr int kEnoughToDie = 200'000;
            for (int n = 0; n < (dies_at != nullptr ? kEnoughToDie : kMuch) && world.board.stop == 0; ++n)
                load.step();
            while (dies_at == nullptr && world.board.stop == 0) {
                world.board.desk[desk].progress.fetch_add(1);
                ::sched_yield();
            }
            load.end();
        });
        if (dies_at == nullptr) await(progress, before + 1);
        return child;
    }
    /// Waits for the child and does what the parent does when one has ended. Returns how it ended.
    int bury(pid_t child, unsigned desk) {
        const int how = wait_for(child);
        const auto pid = static_cast<std::uint32_t>(child);
        const std::uint32_t column = column_of(world.segment, pid);
        world.board.desk[desk].probes = 0;
        world.board.desk[desk].calls = 0;
        if (how != 0) ++deaths;
        world.child_exited(pid);
        EXPECT_EQ(remains_of(world.segment, pid, column), "");
        return how;
    }
    /// Nobody is at work: everything must be in order, and every breaker must come to closed.
    void expect_order() {
        const char* const wrong = world.board.wrong.load();
        EXPECT_EQ(wrong, nullptr) << wrong;
        const char* const left = shm::validate(world.segment);
        EXPECT_EQ(left, nullptr) << left;
        EXPECT_LE(members.open_of_three(), 1U) << "more open than MaxOpen allows";
        std::uint64_t started = 0;
        std::uint64_t done = 0;
        for (const Desk& desk : world.board.desk) {
            started += desk.started;
            done += desk.done;
        }
        EXPECT_GE(members.calls_in_totals(), done);
        EXPECT_LE(members.calls_in_totals(), started);
        EXPECT_LE(started, done + deaths) << "at most one update a death";
        EXPECT_EQ(wrong_with_reports(world, *members.single, deaths - deaths_before_reports), "");
        for (const shm::Slot* slot : members.three)
            EXPECT_EQ(wrong_with_reports(world, *slot, deaths - deaths_before_reports), "");
    }
    /// Last of all, for it makes calls and changes of its own.
    void expect_recovery() {
        EXPECT_TRUE(recovers(world, *members.single, members.single_rules));
        for (shm::Slot* slot : members.three)
            EXPECT_TRUE(recovers(world, *slot, members.three_rules));
        EXPECT_EQ(shm::validate(world.segment), nullptr);
    }
    /// As many columns and slots can be had as in a new segment.
    void expect_everything_to_be_had() {
        for (std::uint32_t n = 0; n < world.segment.header->columns; ++n) {
            bool is_stale = false;
            EXPECT_NE(shm::register_child(world.segment, 900'000 + n, world.epoch(), is_stale), shm::kNoColumn) << n;
        }
        std::uint32_t ready = 0;
        for (std::uint32_t i = 0; i < world.segment.header->capacity; ++i)
            ready += world.segment.is_ready(i) ? 1 : 0;
        for (std::uint32_t i = ready; i < world.segment.header->capacity; ++i) {
            std::uint32_t index = 0;
            const std::string name = "after-" + std::to_string(i);
            EXPECT_EQ(shm::bind(world.segment, identity(name), world.epoch(), 1, index), shm::BindResult::bound) << i;
        }
    }

    void TearDown() override { world.board.stop = 1; }

    World world{48, 8};
    Members members{world};
    std::uint64_t deaths = 0;
    std::uint64_t deaths_before_reports = 0;

  private:
    std::uint64_t seed_ = 0;
};

class KilledAt : public Mourning, public testing::WithParamInterface<Place> {};

TEST_P(KilledAt, LeavesNothingBehindWhenItIsAlone) {
    for (const unsigned nth : {1U, 2U, 3U, 7U}) {
        if (GetParam().is_once && nth > 1) break;
        const pid_t child = start(0, Leases::brief, &GetParam(), nth);
        ASSERT_EQ(bury(child, 0), -SIGKILL) << "it never passed that place for the " << nth << ". time";
        expect_order();
    }
    expect_recovery();
    expect_everything_to_be_had();
}

TEST_P(KilledAt, LeavesNothingBehindWhenOthersGoOnWorking) {
    pid_t others[] = {start(1, Leases::brief), start(2, Leases::brief)};
    for (const unsigned nth : {1U, 4U}) {
        if (GetParam().is_once && nth > 1) break;
        const pid_t child = start(0, Leases::brief, &GetParam(), nth);
        ASSERT_EQ(bury(child, 0), -SIGKILL) << "it never passed that place for the " << nth << ". time";
    }
    world.board.stop = 1;
    EXPECT_EQ(bury(others[0], 1), 0);
    EXPECT_EQ(bury(others[1], 2), 0);
    expect_order();
    expect_recovery();
    expect_everything_to_be_had();
}

INSTANTIATE_TEST_SUITE_P(Place, KilledAt, testing::ValuesIn(kPlaces), [](const auto& param) {
    std::string name = param.param.name;
    name.replace(name.find('.'), 1, "_");
    return name;
});

using KilledAnywhere = Mourning;

TEST_F(KilledAnywhere, HundredsOfTimesUnderLoadNothingIsLeftBehind) {
    constexpr int kRounds = 60;
    constexpr unsigned kChildren = 4;
    constexpr int kDeathsOfARound = 8;
    Random random(24);
    for (int round = 0; round < kRounds && !HasFailure(); ++round) {
        world.board.stop = 0;
        world.begin_reports();
        deaths_before_reports = deaths;
        pid_t children[kChildren];
        for (unsigned i = 0; i < kChildren; ++i)
            children[i] = start(i, Leases::for_ever);
        for (int death = 0; death < kDeathsOfARound; ++death) {
            const unsigned victim = random.below(kChildren);
            const shm::Atomic64& progress = world.board.desk[victim].progress;
            await(progress, progress + random.below(120));
            for (std::uint32_t spin = random.below(3'000); spin > 0; --spin)
                (void)progress.load();
            ::kill(children[victim], SIGKILL);
            EXPECT_EQ(bury(children[victim], victim), -SIGKILL);
            children[victim] = start(victim, Leases::for_ever);
        }
        world.board.stop = 1;
        for (unsigned i = 0; i < kChildren; ++i)
            EXPECT_EQ(bury(children[i], i), 0);
        expect_order();
    }
    EXPECT_EQ(deaths, static_cast<std::uint64_t>(kRounds) * kDeathsOfARound);
    EXPECT_GT(word_of(*members.single).generation, 200U) << "the load was too tame to prove anything";
    expect_recovery();
    expect_everything_to_be_had();
}

// --- claims of the dead ---

class ADeadClaimer : public testing::TestWithParam<const char*> {
  protected:
    pid_t dies_claiming() {
        const pid_t child = fork_child([&] {
            die_at(GetParam(), 1);
            std::uint32_t index = 0;
            (void)shm::bind(world.segment, identity("a"), world.epoch(), static_cast<std::uint32_t>(::getpid()), index);
        });
        EXPECT_EQ(wait_for(child), -SIGKILL);
        return child;
    }
    World world{4};
};

TEST_P(ADeadClaimer, KeepsTheMemberWithoutABreakerUntilTheParentFreesTheClaim) {
    const pid_t child = dies_claiming();
    std::uint32_t index = 0;
    EXPECT_EQ(shm::bind(world.segment, identity("a"), 1, 1001, index), shm::BindResult::busy);
    EXPECT_EQ(shm::bind(world.segment, identity("b"), 1, 1001, index), shm::BindResult::bound) << "others go on";
    world.child_exited(static_cast<std::uint32_t>(child));
    EXPECT_EQ(shm::bind(world.segment, identity("a"), 1, 1001, index), shm::BindResult::bound);
    EXPECT_EQ(state_of(world.segment.slots[index]), State::closed);
    EXPECT_STREQ(world.segment.slots[index].identity.name, "a");
}

TEST_P(ADeadClaimer, OfAnOldSlotDoesNotBringItsHistoryBack) {
    const core::Policy rules = policy();
    shm::Slot& slot = world.add("a", rules);
    call(slot, rules, world.parent(), kFatal);
    const std::uint32_t before = word_of(slot).generation;
    slot.probe_rate = 1;
    slot.flapping = 1;
    world.segment.header->epoch.fetch_add(1);
    ASSERT_EQ(shm::free_unused(world.segment, 1), 1U);
    const pid_t child = dies_claiming();
    world.child_exited(static_cast<std::uint32_t>(child));
    shm::Slot& again = world.add("a", rules);
    ASSERT_EQ(&again, &slot);
    EXPECT_EQ(state_of(again), State::closed);
    EXPECT_GT(word_of(again).generation, before);
    EXPECT_EQ(again.totals.calls.load(), 0U);
    EXPECT_EQ(again.probe_rate.load(), 0U);
    EXPECT_EQ(again.flapping.load(), 0U);
    EXPECT_EQ(shm::numbered_word(again).number, 0U);
    EXPECT_EQ(again.recorded.load(), 0U);
    EXPECT_EQ(again.recorder[0].number.load(), 0U);
}

INSTANTIATE_TEST_SUITE_P(At, ADeadClaimer, testing::Values("bind.claimed", "bind.written"),
                         [](const auto& param) { return std::string(param.param).substr(5); });

TEST(ADeadChildOfAnEarlierEpoch, KeepsSlotsFromBeingFreedUntilTheParentHasHeardOfIt) {
    World world;
    world.add("gone", policy());
    const pid_t child = fork_child([&] {
        bool is_stale = false;
        die_at("register.claimed", 1);
        (void)shm::register_child(world.segment, static_cast<std::uint32_t>(::getpid()), 1, is_stale);
    });
    EXPECT_EQ(wait_for(child), -SIGKILL);
    world.segment.header->epoch.fetch_add(1);
    EXPECT_EQ(shm::free_unused(world.segment, 1), 0U);
    world.child_exited(static_cast<std::uint32_t>(child));
    EXPECT_EQ(shm::free_unused(world.segment, 1), 1U);
}

TEST(ADeadChildsProbe, IsNeutralHoweverFarItHadCome) {
    for (const shm::Phase phase : {shm::Phase::not_sent, shm::Phase::sent, shm::Phase::success, shm::Phase::fatal}) {
        World world;
        const core::Policy rules = policy();
        shm::Slot& slot = world.add("a", rules);
        call(slot, rules, world.parent(), kFatal);
        world.pass(1000);
        shm::Permit permit = ask(slot, rules, world.process(1001)).permit;
        shm::mark(slot, permit, phase);
        world.pass(2 * kLease);  // its deadline has passed as well, but nobody has looked
        world.child_exited(1001);
        EXPECT_EQ(state_of(slot), State::half_open);
        EXPECT_EQ(word_of(slot).neutral, 1U);
        EXPECT_EQ(word_of(slot).slots, 0U);
        EXPECT_EQ(shm::validate(world.segment), nullptr);
    }
}

}  // namespace
}  // namespace cb::test
