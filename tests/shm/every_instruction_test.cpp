// A child that is killed between any two instructions. It goes step by step; whenever the shared memory has changed, a
// copy of it is what a SIGKILL at that moment would have left, and the test plays the parent on that copy.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "executors.hpp"
#include "single_step.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::State;
using shm::Permit;

/// Two members of one balancer with MaxOpen 50 %, a third slot with a tombstone, a fourth that was never used; and the
/// child that is going to die.
struct Stage {
    explicit Stage(const core::Policy& rules_of_all);
    [[nodiscard]] shm::Process child() const { return world.process(static_cast<std::uint32_t>(::getpid())); }
    [[nodiscard]] shm::InFlight calls() const { return world.in_flight(*slot, column); }
    void register_child() {
        bool is_stale = false;
        column = shm::register_child(world.segment, static_cast<std::uint32_t>(::getpid()), 2, is_stale);
    }
    [[nodiscard]] shm::Admission admit() const { return shm::admit(*slot, rules, child(), calls(), true, kLease); }
    void finish(Permit& permit, const shm::Ending& ending) const {
        shm::finish(*slot, rules, child(), permit, ending, {both, 2});
    }

    World world{4, 2};
    core::Policy rules;
    shm::Slot* slot;
    shm::Slot* both[2];
    std::uint32_t column = 0;
    Permit others_probe;
};

Stage::Stage(const core::Policy& rules_of_all) : rules(rules_of_all) {
    world.add("gone", rules);
    world.segment.header->epoch = 2;
    slot = both[0] = &world.add("a", rules);
    both[1] = &world.add("b", rules);
    shm::free_unused(world.segment, 1);
    world.begin_reports();
}

/// A child's work: `before` happens undisturbed in the child's own process, then `work`, at any instruction of which it
/// may die.
struct Scene {
    const char* name;
    std::function<core::Policy()> rules;
    std::function<void(Stage&)> given;  // in the parent, before there is a child
    std::function<void(Stage&)> work;
    std::uint64_t most_calls;  // that `work` may add to the totals
};

void PrintTo(const Scene& scene, std::ostream* to) {
    *to << scene.name;
}

void trip(Stage& stage) {
    call(*stage.slot, stage.rules, stage.world.parent(), kFatal, {stage.both, 2});
    stage.world.pass(2000);
}

/// The other child's probe has come so far, and its deadline has passed.
void lose(Stage& stage, shm::Phase phase) {
    stage.rules.probes.tolerate = 1;
    trip(stage);
    stage.others_probe = ask(*stage.slot, stage.rules, stage.world.process(4711)).permit;
    shm::mark(*stage.slot, stage.others_probe, shm::Phase::sent);
    shm::mark(*stage.slot, stage.others_probe, phase);
    stage.world.pass(2 * kLease);
}

core::Policy half_may_open() {
    core::Policy rules = policy();
    rules.max_open = 50;
    return rules;
}

core::Policy one_probe() {
    core::Policy rules = policy();
    rules.probes = {1, 1, 0, 1, 1};
    return rules;
}

core::Policy of_16_calls() {
    core::Policy rules = untrippable();
    rules.window = {0, 16};
    return rules;
}

core::Policy with_ramp() {
    core::Policy rules = one_probe();
    rules.ramp_up = {1000, 10};
    return rules;
}

const Scene kScenes[] = {
    {"ProbesEarlyAndFails", one_probe,
     [](Stage& stage) {
         call(*stage.slot, stage.rules, stage.world.parent(), kFatal, {stage.both, 2});
         stage.rules.open_time.min = 100;
         stage.world.pass(200);
     },
     [](Stage& stage) {
         shm::Admission mine =
             shm::admit(*stage.slot, stage.rules, stage.child(), stage.calls(), true, kLease, nullptr, true);
         stage.finish(mine.permit, kBad);
     },
     1},
    {"Registers", policy, [](Stage&) {}, [](Stage& stage) { stage.register_child(); }, 0},
    {"BindsWhatIsThere", policy, [](Stage&) {},
     [](Stage& stage) {
         std::uint32_t index = 0;
         (void)shm::bind(stage.world.segment, identity("a"), 3, stage.child().pid, index);
     },
     0},
    {"BindsSomethingNew", policy, [](Stage&) {},
     [](Stage& stage) {
         std::uint32_t index = 0;
         for (const char* name : {"new", "newer"}) {
             (void)shm::bind(stage.world.segment, identity(name), 2, stage.child().pid, index);
         }
     },
     0},
    {"MakesACallThatSucceeds", policy, [](Stage&) {},
     [](Stage& stage) {
         Permit permit = stage.admit().permit;
         stage.finish(permit, kGood);
     },
     1},
    {"MakesACallThatFails", policy, [](Stage&) {},
     [](Stage& stage) {
         Permit permit = stage.admit().permit;
         stage.finish(permit, kBad);
     },
     1},
    {"MakesACallThatTrips", policy, [](Stage&) {},
     [](Stage& stage) {
         Permit permit = stage.admit().permit;
         stage.finish(permit, kFatal);
     },
     1},
    {"TripsWithinMaxOpen", half_may_open, [](Stage&) {},
     [](Stage& stage) {
         Permit permit = stage.admit().permit;
         stage.finish(permit, kFatal);
     },
     1},
    {"IsDeniedByMaxOpen", half_may_open,
     [](Stage& stage) {
         call(*stage.both[1], stage.rules, stage.world.parent(), kFatal, {stage.both, 2});
     },
     [](Stage& stage) {
         Permit permit = stage.admit().permit;
         stage.finish(permit, kFatal);
     },
     1},
    {"IsRefusedByMaxConcurrent",
     [] {
         core::Policy rules = policy();
         rules.max_concurrent = 1;
         return rules;
     },
     [](Stage& stage) {
         bool is_stale = false;
         const std::uint32_t other = shm::register_child(stage.world.segment, 4711, 2, is_stale);
         shm::admit(*stage.slot, stage.rules, stage.world.process(4711), stage.world.in_flight(*stage.slot, other),
                    true, kLease)
             .permit.cell->fetch_sub(1);  // the other one has just gone; what remains is the row
     },
     [](Stage& stage) {
         Permit first = stage.admit().permit;
         (void)stage.admit();
         stage.finish(first, kGood);
     },
     1},
    {"IsAProbeThatCloses", one_probe, trip,
     [](Stage& stage) {
         Permit permit = stage.admit().permit;
         shm::mark(*stage.slot, permit, shm::Phase::sent);
         shm::mark(*stage.slot, permit, shm::Phase::success);
         stage.finish(permit, kGood);
     },
     1},
    {"IsAProbeThatFails", one_probe, trip,
     [](Stage& stage) {
         Permit permit = stage.admit().permit;
         stage.finish(permit, kBad);
     },
     1},
    {"IsAProbeThatIsCancelled", policy, trip,
     [](Stage& stage) {
         Permit permit = stage.admit().permit;
         shm::cancel(*stage.slot, stage.rules, stage.child(), permit);
     },
     0},
    {"FindsNoRoomForItsProbe", one_probe,
     [](Stage& stage) {
         trip(stage);
         Permit permit = ask(*stage.slot, stage.rules, stage.world.parent()).permit;
         shm::finish(*stage.slot, stage.rules, stage.world.parent(), permit, kBad, {});
     },
     [](Stage& stage) { (void)shm::admit(*stage.slot, stage.rules, stage.child(), stage.calls(), true, kLease); }, 0},
    {"EndsAnothersProbeThatStaysOverdue", one_probe, [](Stage& stage) { lose(stage, shm::Phase::sent); },
     [](Stage& stage) { (void)ask(*stage.slot, stage.rules, stage.child()); }, 0},
    {"EndsAnothersAnsweredProbeAndTakesItsPlace", one_probe,
     [](Stage& stage) { lose(stage, shm::provisional(core::Verdict::failure)); },
     [](Stage& stage) {
         Permit permit = ask(*stage.slot, stage.rules, stage.child()).permit;
         stage.finish(permit, kGood);
     },
     1},
    {"FreesAnOverdueProbeAtItsSecondDeadlineAndTakesItsPlace", one_probe,
     [](Stage& stage) {
         lose(stage, shm::Phase::not_sent);
         shm::expire_probes(*stage.slot, stage.rules, stage.world.parent());
         stage.world.pass(stage.rules.linger + shm::Lease::kUnit);
     },
     [](Stage& stage) {
         Permit permit = ask(*stage.slot, stage.rules, stage.child()).permit;
         stage.finish(permit, kGood);
     },
     1},
    {"GivesBackItsOwnOverdueProbe", one_probe,
     [](Stage& stage) {
         stage.rules.probes.tolerate = 1;
         trip(stage);
     },
     [](Stage& stage) {
         Permit permit = stage.admit().permit;
         stage.world.pass(2 * kLease);
         shm::expire_probes(*stage.slot, stage.rules, stage.world.process(4711));
         stage.finish(permit, kGood);
     },
     1},
    {"GoesOnToTheNextCell", of_16_calls,
     [](Stage& stage) {
         for (int n = 0; n < 15; ++n)
             call(*stage.slot, stage.rules, stage.world.parent(), kBad);
     },
     [](Stage& stage) {
         for (int n = 0; n < 3; ++n) {
             Permit permit = stage.admit().permit;
             stage.finish(permit, kBad);
         }
     },
     3},
    {"EndsARamp", with_ramp,
     [](Stage& stage) {
         trip(stage);
         call(*stage.slot, stage.rules, stage.world.parent(), kGood);
         stage.world.pass(2000);
     },
     [](Stage& stage) {
         Permit permit = ask(*stage.slot, stage.rules, stage.child()).permit;
         stage.finish(permit, kGood);
     },
     1},
    {"IsTheOperatorsHand", policy, trip,
     [](Stage& stage) {
         using core::EventKind;
         for (const EventKind kind :
              {EventKind::force_open, EventKind::automatic, EventKind::force_closed, EventKind::reset}) {
             shm::operate(*stage.slot, stage.rules, stage.child(), kind);
         }
     },
     0},
};

class DeadAtAnyInstruction : public testing::TestWithParam<Scene> {};

/// What the parent does, and what must be then.
void expect_in_order(const Stage& stage, pid_t dead, const Scene& scene, std::uint64_t calls_before) {
    World after(stage.world);
    shm::Slot& slot = after.here(*stage.slot, stage.world);
    const auto pid = static_cast<std::uint32_t>(dead);
    const std::uint32_t column = column_of(after.segment, pid);
    after.child_exited(pid);
    ASSERT_EQ(remains_of(after.segment, pid, column), "");
    after.child_exited(4711);  // the other one, if there is
    ASSERT_EQ(shm::validate(after.segment), nullptr);
    ASSERT_GE(slot.totals.calls.load(), calls_before);
    ASSERT_LE(slot.totals.calls.load(), calls_before + scene.most_calls);
    const core::Sums sums = shm::sums_now(slot, stage.rules, after.parent());
    ASSERT_LE(sums.calls, 16 + scene.most_calls);
    ASSERT_LE(sums.failures, sums.calls);
    // A forced state waits for the operator, everything else comes to closed by itself.
    if (state_of(slot) == State::forced_open || state_of(slot) == State::forced_closed) {
        ASSERT_TRUE(shm::operate(slot, stage.rules, after.parent(), core::EventKind::automatic));
    }
    ASSERT_TRUE(recovers(after, slot, stage.rules));
    // The other member can trip now, and everything can be bound and registered.
    shm::Slot* both[] = {&slot, &after.here(*stage.both[1], stage.world)};
    ASSERT_TRUE(recovers(after, *both[1], stage.rules));
    call(*both[1], stage.rules, after.parent(), kFatal, {both, 2});
    ASSERT_EQ(state_of(*both[1]), State::open);
    for (const char* name : {"a", "b", "new", "newer"}) {
        std::uint32_t index = 0;
        ASSERT_EQ(shm::bind(after.segment, identity(name), 2, 1, index), shm::BindResult::bound) << name;
    }
    for (const std::uint32_t next : {1U, 2U}) {
        bool is_stale = false;
        ASSERT_NE(shm::register_child(after.segment, next, 2, is_stale), shm::kNoColumn);
        ASSERT_FALSE(is_stale);
    }
    ASSERT_EQ(shm::validate(after.segment), nullptr);
}

TEST_P(DeadAtAnyInstruction, LeavesNothingBehind) {
    if (!SingleStep::is_possible()) GTEST_SKIP() << "this system does not let a process trace its child";
    const Scene& scene = GetParam();
    Stage stage(scene.rules());
    scene.given(stage);
    const std::uint64_t calls_before = stage.slot->totals.calls;
    SingleStep child([&] {
        if (std::strcmp(scene.name, "Registers") != 0) stage.register_child();
        stage.world.board.counter[0] = 1;
        scene.work(stage);
    });
    ASSERT_FALSE(child.has_ended());
    const SharedMemory& memory = stage.world.memory();
    std::vector<unsigned char> seen(memory.size());
    int changes = 0;
    for (int n = 0; n < 2'000'000 && child.step(); ++n) {
        if (std::memcmp(seen.data(), memory.data(), seen.size()) == 0) continue;
        std::memcpy(seen.data(), memory.data(), seen.size());
        if (stage.world.board.counter[0] == 0) continue;  // still registering
        ++changes;
        expect_in_order(stage, child.pid(), scene, calls_before);
        if (HasFatalFailure()) FAIL() << "killed after instruction " << n << ", change " << changes;
    }
    EXPECT_TRUE(child.has_ended()) << "it goes on for ever";
    EXPECT_EQ(child.exit_status(), 0);
    EXPECT_GT(changes, 0) << "it did nothing";
    RecordProperty("changes", changes);
}

INSTANTIATE_TEST_SUITE_P(AChildThat, DeadAtAnyInstruction, testing::ValuesIn(kScenes),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace cb::test
