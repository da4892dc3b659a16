// The numbers of changes: one each, consecutive, in the order in which the changes happened, whoever makes them.
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "at_once.hpp"
#include "executors.hpp"
#include "shm/history.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::EventKind;
using core::State;

class Numbers : public testing::Test {
  protected:
    Numbers() {
        rules.ramp_up = {500, 100};
        rules.probes = {1, 1, 0, 1, 1};
    }
    [[nodiscard]] std::uint64_t number() const { return shm::numbered_word(slot).number; }
    [[nodiscard]] shm::Process process(std::uint32_t pid) { return world.process(pid, &world.recorder); }
    void operate(EventKind kind, std::uint32_t pid = 1001) { shm::operate(slot, rules, process(pid), kind); }
    /// "closed>open 1" for each report, in the order in which they were made.
    [[nodiscard]] std::vector<std::string> reports() const {
        std::vector<std::string> lines;
        for (std::uint64_t n = 0; n < world.board.reports; ++n) {
            const Reported& one = world.board.report[n];
            lines.push_back(std::string(core::name(static_cast<State>(one.from.load()))) + ">" +
                            std::string(core::name(static_cast<State>(one.to.load()))) + " " +
                            std::to_string(one.number.load()));
        }
        return lines;
    }

    World world;
    core::Policy rules = policy();
    shm::Slot& slot = world.add("a", rules);
};

TEST_F(Numbers, AreTakenByEachChangeAlsoTheEndOfARampAndAResetOfAClosedBreaker) {
    EXPECT_EQ(number(), 0U);
    call(slot, rules, process(1), kFatal);
    world.pass(1000);
    call(slot, rules, process(2), kGood);
    world.pass(500);
    call(slot, rules, process(1), kGood);
    operate(EventKind::reset, 3);
    operate(EventKind::reset, 1);
    operate(EventKind::force_open, 2);
    operate(EventKind::force_open, 2);
    operate(EventKind::reset, 2);
    EXPECT_EQ(reports(), (std::vector<std::string>{"closed>open 1", "open>half-open 2", "half-open>recovering 3",
                                                   "recovering>closed 4", "closed>closed 5", "closed>closed 6",
                                                   "closed>forced-open 7", "forced-open>closed 8"}));
    EXPECT_EQ(number(), 8U);
    EXPECT_EQ(slot.reports.load(), 8U);
    shm::HistoryEntry entries[shm::kHistory];
    EXPECT_EQ(shm::read_history(slot, entries), 8U);
}

TEST_F(Numbers, AreNotTakenByAWindowOfAnotherShapeInAnyState) {
    core::Policy other = rules;
    for (const EventKind kind : {EventKind::reset, EventKind::force_open, EventKind::force_closed}) {
        operate(kind);
        const std::uint64_t before = number();
        for (const std::uint32_t calls : {17U, 18U}) {
            other.window = {0, calls};
            shm::configure(slot, other, process(1));
        }
        EXPECT_EQ(number(), before);
        operate(EventKind::reset);
        EXPECT_EQ(number(), before + 1);
    }
    EXPECT_EQ(wrong_with_reports(world, slot), "");
}

TEST_F(Numbers, BeginAnewInASlotsNextLife) {
    World one(1);
    one.add("a", rules);
    for (int n = 0; n < 3; ++n)
        shm::operate(one.segment.slots[0], rules, one.parent(), EventKind::reset);
    one.restart();
    ASSERT_EQ(shm::free_unused(one.segment, 1), 1U);
    shm::Slot& next = one.add("b", rules);
    EXPECT_EQ(shm::numbered_word(next).number, 0U);
    shm::operate(next, rules, one.parent(), EventKind::reset);
    EXPECT_EQ(shm::numbered_word(next).number, 1U);
    EXPECT_EQ(next.reports.load(), 1U);
}

TEST_F(Numbers, OfAProcessThatIsSlowIsThatOfItsChangeHoweverManyCameAfterIt) {
    for (const int others : {1, 2, 5}) {
        world.begin_reports();
        const std::uint64_t before = number();
        {
            const Between between("changes.won", [&] {
                for (int n = 0; n < others; ++n)
                    operate(n % 2 == 0 ? EventKind::reset : EventKind::force_closed, 2);
            });
            operate(EventKind::force_open, 1);
        }
        // It won first and tells last.
        EXPECT_EQ(reports().back(), "closed>forced-open " + std::to_string(before + 1));
        EXPECT_EQ(number(), before + 1 + static_cast<std::uint64_t>(others));
        EXPECT_EQ(wrong_with_reports(world, slot), "");
        operate(EventKind::reset);
    }
}

TEST_F(Numbers, AreSeenAsTheyWillBeBeforeTheSlowProcessHasTakenIts) {
    const Between between("changes.won", [&] {
        const shm::NumberedWord now = shm::numbered_word(slot);
        EXPECT_EQ(core::state_of(now.word), State::forced_open);
        EXPECT_EQ(now.number, 1U);
    });
    operate(EventKind::force_open);
    EXPECT_TRUE(between.has_happened());
    EXPECT_EQ(number(), 1U);
}

TEST_F(Numbers, OfAChildThatWasKilledBeforeItToldIsTheOneThatIsMissing) {
    operate(EventKind::reset);
    const pid_t child = fork_child([&] {
        die_at("changes.won", 1);
        operate(EventKind::force_open, 1002);
    });
    ASSERT_EQ(wait_for(child), -SIGKILL);
    EXPECT_EQ(number(), 2U);
    EXPECT_EQ(slot.reports.load(), 1U) << "a gap of one for the parent to log";
    operate(EventKind::reset);
    EXPECT_EQ(reports(), (std::vector<std::string>{"closed>closed 1", "forced-open>closed 3"}));
    EXPECT_EQ(number() - slot.reports.load(), 1U) << "and of no more than one";
}

template <typename Executor>
class ChangesAtOnce : public AtOnce<Executor> {};
TYPED_TEST_SUITE(ChangesAtOnce, Executors, ExecutorNames);

TYPED_TEST(ChangesAtOnce, HaveEachTheNextNumberWhoeverMakesThem) {
    World world;
    core::Policy rules = policy();
    rules.ramp_up = {64, 100};
    rules.open_time = {100, 100, 1000, 0, false};
    rules.probes = {1, 1, 0, 1, 1};
    shm::Slot& slot = world.add("a", rules);
    this->run(world, [&](const Worker& worker) {
        Random random(worker.index + 5);
        Recorder recorder(world.board, world.segment);
        const shm::Process process = world.process(worker.pid, &recorder);
        constexpr EventKind kKinds[] = {EventKind::reset, EventKind::reset, EventKind::force_open,
                                        EventKind::force_closed, EventKind::reshape};
        for (int n = 0; n < 2000; ++n) {
            world.pass(random.below(40));
            call(slot, rules, process, random.below(3) == 0 ? kFatal : kGood);
            if (random.below(4) == 0) shm::operate(slot, rules, process, kKinds[random.below(5)]);
        }
    });
    EXPECT_GT(shm::numbered_word(slot).number, 500U) << "the load was too tame to prove anything";
    EXPECT_EQ(wrong_with_reports(world, slot), "");
}

}  // namespace
}  // namespace cb::test
