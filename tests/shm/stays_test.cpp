// The time spent in each state, as a reader sees it while states change.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstring>
#include <thread>

#include "executors.hpp"
#include "shm/stays.hpp"
#include "single_step.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::EventKind;
using core::State;

class TimesInStates : public testing::Test {
  protected:
    [[nodiscard]] shm::Stays read() const { return shm::read_stays(slot, world.parent().clock); }
    [[nodiscard]] std::uint64_t ms(State state) const { return read().ms[static_cast<std::size_t>(state)]; }
    void operate(EventKind kind) { shm::operate(slot, rules, world.parent(), kind); }
    /// Every kind of change: by an operator, a trip, an early round that fails, one that succeeds.
    void change_often(std::uint32_t pid) {
        const shm::Process me = world.process(pid);
        const auto last_resort = [&](const shm::Ending& ending) {
            world.pass(400);
            shm::Permit permit = shm::admit(slot, rules, me, {}, true, kLease, nullptr, true).permit;
            world.pass(5);
            shm::finish(slot, rules, me, permit, ending, {});
        };
        for (const EventKind kind : {EventKind::force_open, EventKind::reset, EventKind::reset}) {
            world.pass(1000);
            shm::operate(slot, rules, me, kind);
        }
        call(slot, rules, me, kFatal);
        last_resort(kBad);
        last_resort(kGood);
        world.pass(100);
        call(slot, rules, me, kGood);
        world.pass(1000);
        shm::operate(slot, rules, me, EventKind::reset);
    }
    /// No total of `stays` is smaller than it was; the smaller one's name, or "".
    [[nodiscard]] std::string fallen(const shm::Stays& stays) {
        std::string names;
        for (std::size_t i = 0; i < core::kStates; ++i) {
            if (stays.ms[i] < last_.ms[i])
                names += std::string(core::name(static_cast<State>(i))) + " by " +
                         std::to_string(last_.ms[i] - stays.ms[i]) + " ";
        }
        last_ = stays;
        return names;
    }

    World world;
    core::Policy rules = [] {
        core::Policy one = policy();
        one.open_time.min = 300;
        one.probes = {1, 1, 0, 1, 1};
        one.ramp_up = {500, 100};
        return one;
    }();
    shm::Slot& slot = world.add("a", rules);

  private:
    shm::Stays last_;
};

TEST_F(TimesInStates, AreThePresentOneAndThoseBefore) {
    world.pass(5'000);
    EXPECT_EQ(ms(State::closed), 5'000U);
    operate(EventKind::force_open);
    world.pass(1'000);
    EXPECT_EQ(ms(State::closed), 5'000U);
    EXPECT_EQ(ms(State::forced_open), 1'000U);
    EXPECT_EQ(read().since, world.board.now - 1'000U);
    EXPECT_EQ(read().at.number, 1U);
    EXPECT_TRUE(read().is_settled);
}

TEST_F(TimesInStates, NeverFallWhereverAChangeIsLookedAt) {
    if (!SingleStep::is_possible()) GTEST_SKIP() << "this system does not let a process trace its child";
    SingleStep child([&] { change_often(1001); });
    const SharedMemory& memory = world.memory();
    std::vector<unsigned char> seen(memory.size());
    bool is_settled = true;
    unsigned settled = 0;
    unsigned unsettled = 0;
    for (int n = 0; n < 2'000'000 && child.step(); ++n) {
        world.pass(1);  // between any two instructions
        const bool is_same = std::memcmp(seen.data(), memory.data(), seen.size()) == 0;
        if (is_same && !is_settled) continue;
        std::memcpy(seen.data(), memory.data(), seen.size());
        const shm::Stays stays = read();
        is_settled = stays.is_settled;
        ++(is_settled ? settled : unsettled);
        if (!is_settled) continue;
        ASSERT_EQ(fallen(stays), "") << "after instruction " << n;
    }
    EXPECT_TRUE(child.has_ended()) << "it goes on for ever";
    EXPECT_EQ(child.exit_status(), 0);
    EXPECT_GT(read().at.number, 6U);
    EXPECT_EQ(fallen(read()), "");
    EXPECT_GT(settled, 1000U);
    EXPECT_GT(unsettled, 0U);
    EXPECT_LT(unsettled, 100U) << "a change is noted in a few steps";
}

TEST_F(TimesInStates, NeverFallWhileAnotherThreadChangesTheState) {
    const Restless restless;
    std::atomic<bool> is_over = false;
    std::thread changer([&] {
        for (int n = 0; n < 500; ++n)
            change_often(1001);
        is_over = true;
    });
    std::string wrong;
    unsigned settled = 0;
    while (!is_over && wrong.empty()) {
        const shm::Stays stays = read();
        if (!stays.is_settled) continue;
        ++settled;
        wrong = fallen(stays);
    }
    changer.join();
    EXPECT_EQ(wrong, "");
    EXPECT_GT(settled, 100U);
    EXPECT_EQ(fallen(read()), "");
}

TEST_F(TimesInStates, OfAChangeWhoseChildWasKilledAreReadAsTheyStandUntilTheNextOne) {
    world.pass(5'000);
    const pid_t child = fork_child([&] {
        die_at("changes.won", 1);
        shm::operate(slot, rules, world.process(1002), EventKind::force_open);
    });
    ASSERT_EQ(wait_for(child), -SIGKILL);
    world.pass(1'000);
    const shm::Stays half = read();
    EXPECT_FALSE(half.is_settled);
    EXPECT_EQ(core::state_of(half.at.word), State::forced_open);
    operate(EventKind::reset);
    EXPECT_TRUE(read().is_settled);
    EXPECT_EQ(fallen(half), "");
    EXPECT_EQ(fallen(read()), "");
}

}  // namespace
}  // namespace cb::test
