// The end of a probe whose call goes on, between any two steps: by other things that others do meanwhile, and by death
// between any two instructions. At most `concurrent` calls are at the member all the time, and the outcome is applied
// once.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "executors.hpp"
#include "shm/lease.hpp"
#include "single_step.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using shm::Permit;
using shm::PermitKind;
using shm::Phase;
using shm::ProbeResult;

constexpr std::uint32_t kHolder = 1001;
constexpr std::uint32_t kExpirer = 1002;
constexpr std::uint32_t kTaker = 1003;

/// A half-open breaker that has one probe at a time: one has been sent, and its deadline has passed.
struct Scene {
    Scene() {
        rules.probes = {60, 1, 14, 60, 60};
        rules.linger = 5'000;
        slot = &world.add("a", rules);
        call(*slot, rules, world.parent(), kFatal);
        world.pass(1000);
        permit = ask(*slot, rules, by(kHolder)).permit;
        EXPECT_EQ(permit.kind, PermitKind::probe);
        shm::mark(*slot, permit, Phase::sent);
        world.pass(kLease + shm::Lease::kUnit);
        is_at_member = true;
        world.begin_reports();
    }
    [[nodiscard]] shm::Process by(std::uint32_t pid) { return world.process(pid, &world.recorder); }

    // What one or another does.
    void expire() { shm::expire_probes(*slot, rules, by(kExpirer)); }
    void expire_by_the_taker() { shm::expire_probes(*slot, rules, by(kTaker)); }
    void finish() {
        if (is_dead || is_returning) return;  // a call has one thread
        is_at_member = false;
        is_returning = true;
        note(shm::finish(*slot, rules, by(kHolder), permit, kGood, {}));
        is_returning = false;
    }
    void cancel_copy() {
        if (is_dead || is_returning) return;
        Permit copy = permit;
        is_at_member = false;
        note(shm::cancel(*slot, rules, by(kHolder), copy));
    }
    void holder_dies() {
        if (is_returning) return;  // the dead do nothing more (see below for those who die while they return)
        is_at_member = false;
        is_dead = true;
        shm::child_exited(world.segment, world.parent(&world.recorder), kHolder);
    }
    void linger_passes() {
        world.pass(rules.linger + 10 * shm::Lease::kUnit);
        if (shm::count_leases(*slot).overdue > 0) is_at_member = false;  // by the rule: no longer than that
    }
    void take() {
        Permit next = ask(*slot, rules, by(kTaker)).permit;
        if (next.kind == PermitKind::none) return;
        EXPECT_FALSE(is_at_member) << "two calls at the member";
        note(shm::cancel(*slot, rules, by(kTaker), next));
    }
    void next_round() {
        shm::operate(*slot, rules, by(kTaker), core::EventKind::reset);
        call(*slot, rules, by(kTaker), kFatal);
        world.pass(1000);
        take();
    }
    /// Whatever has happened: its outcome has been applied once, and once it has left, there is room for the next.
    void expect_order() {
        std::uint64_t ended = 0;
        for (const shm::Atomic64& result : slot->totals.probe_result)
            ended += result.load();
        const std::uint64_t others = slot->totals.probes - 1;
        EXPECT_LE(ended, 1 + others);
        EXPECT_LE(slot->totals.probes_lost.load(), 1U);
        EXPECT_EQ(world.board.lost.load(), slot->totals.probes_lost.load());
        take();
        if (is_at_member) finish();
        EXPECT_EQ(shm::validate(world.segment), nullptr);
        ended = 0;
        for (const shm::Atomic64& result : slot->totals.probe_result)
            ended += result.load();
        EXPECT_EQ(ended, slot->totals.probes.load());
        EXPECT_EQ(told + world.board.probes.load(), ended) << "each is told once";
        const std::uint64_t before = slot->totals.probes;
        take();
        EXPECT_EQ(slot->totals.probes.load(), before + 1) << "the slot cannot be had";
        EXPECT_EQ(shm::validate(world.segment), nullptr);
    }

    void note(const std::optional<shm::ProbeEnd>& end) { told += end ? 1 : 0; }

    World world;
    core::Policy rules = policy();
    shm::Slot* slot = nullptr;
    std::uint64_t told = 0;  // ends that calls were given
    Permit permit;
    bool is_at_member = false;
    bool is_returning = false;
    bool is_dead = false;
};

struct Thing {
    const char* name;
    void (Scene::*thing)();
};
constexpr Thing kEndings[] = {
    {"it is expired", &Scene::expire},
    {"its holder finishes", &Scene::finish},
    {"its holder dies", &Scene::holder_dies},
};
constexpr Thing kThings[] = {
    {"it is expired", &Scene::expire_by_the_taker},
    {"its holder finishes", &Scene::finish},
    {"its holder gives it back", &Scene::cancel_copy},
    {"its holder dies", &Scene::holder_dies},
    {"another one asks", &Scene::take},
    {"the linger passes", &Scene::linger_passes},
    {"the next round begins", &Scene::next_round},
};
using Steps = testing::TestWithParam<bool>;
INSTANTIATE_TEST_SUITE_P(OfAProbe, Steps, testing::Bool(),
                         [](const auto& param) { return param.param ? "ThatIsOverdue" : "WhoseDeadlineHasPassed"; });

/// While one of them ends it, two others do things, one after the other, at any of its places.
TEST_P(Steps, OvertakenAtAnyPlaceByAnyTwoThingsKeepTheCapAndEndItOnce) {
    int meetings = 0;
    for (const Thing& first : kEndings) {
        for (const Thing& second : kThings) {
            for (const Thing& third : kThings) {
                for (unsigned nth = 1;; ++nth) {
                    Scene scene;
                    if (GetParam()) scene.expire();
                    bool has_happened = false;
                    {
                        const Between between(
                            nullptr,
                            [&] {
                                (scene.*second.thing)();
                                (scene.*third.thing)();
                            },
                            nth);
                        (scene.*first.thing)();
                        has_happened = between.has_happened();
                    }
                    if (!has_happened) break;
                    ++meetings;
                    scene.expect_order();
                    ASSERT_FALSE(HasFailure())
                        << first.name << "; at place " << nth << " of it " << second.name << ", then " << third.name;
                }
            }
        }
    }
    EXPECT_GT(meetings, 100);
}

/// A child that dies between any two instructions of `work`; `check` sees a copy of the world as it left it.
template <class Check>
void die_at_any_instruction(Scene& scene, const std::function<void()>& work, Check check) {
    if (!SingleStep::is_possible()) GTEST_SKIP() << "this system does not let a process trace its child";
    SingleStep child(work);
    ASSERT_FALSE(child.has_ended());
    const SharedMemory& memory = scene.world.memory();
    std::vector<unsigned char> seen(memory.size());
    int changes = 0;
    for (int n = 0; n < 2'000'000 && child.step(); ++n) {
        if (std::memcmp(seen.data(), memory.data(), seen.size()) == 0) continue;
        std::memcpy(seen.data(), memory.data(), seen.size());
        ++changes;
        World after(scene.world);
        check(after, after.here(*scene.slot, scene.world), static_cast<std::uint32_t>(child.pid()));
        ASSERT_FALSE(testing::Test::HasFailure()) << "killed after instruction " << n << ", change " << changes;
    }
    EXPECT_EQ(child.exit_status(), 0);
    EXPECT_GT(changes, 2) << "it did nothing";
}

[[nodiscard]] bool can_be_had(World& after, shm::Slot& slot, const core::Policy& rules) {
    Permit next = ask(slot, rules, after.process(kTaker)).permit;
    if (next.kind == PermitKind::none) return false;
    shm::cancel(slot, rules, after.process(kTaker), next);
    return true;
}

TEST(AnExpirerKilledAtAnyInstruction, LeavesTheSlotToTheHolderAndHisDeathOrReturnFreesIt) {
    Scene scene;
    die_at_any_instruction(
        scene, [&] { shm::expire_probes(*scene.slot, scene.rules, scene.by(static_cast<std::uint32_t>(::getpid()))); },
        [&](World& after, shm::Slot& slot, std::uint32_t dead) {
            World other_end(after);
            EXPECT_FALSE(can_be_had(after, slot, scene.rules)) << "before the parent has heard of it";
            after.child_exited(dead);
            EXPECT_EQ(remains_of(after.segment, dead, shm::kNoColumn), "");
            EXPECT_FALSE(can_be_had(after, slot, scene.rules));
            EXPECT_EQ(word_of(slot).slots, 0U);
            EXPECT_EQ(word_of(slot).failures + word_of(slot).neutral, 1U) << "applied once";
            EXPECT_EQ(shm::count_leases(slot).overdue, 1U);
            Permit copy = scene.permit;
            shm::finish(slot, scene.rules, after.process(kHolder), copy, kGood, {});
            EXPECT_EQ(word_of(slot).successes, 0U);
            EXPECT_TRUE(can_be_had(after, slot, scene.rules));
            EXPECT_EQ(shm::validate(after.segment), nullptr);

            // Or the holder comes first, then the parent; or both have died, in either order; or nobody ever comes.
            const auto ends = [&](auto end) {
                World another(other_end);
                shm::Slot& there = another.here(*scene.slot, scene.world);
                end(another, there);
                EXPECT_TRUE(can_be_had(another, there, scene.rules));
                EXPECT_EQ(shm::validate(another.segment), nullptr);
            };
            ends([&](World& world, shm::Slot& there) {
                Permit again = scene.permit;
                shm::finish(there, scene.rules, world.process(kHolder), again, kGood, {});
                world.child_exited(dead);
                EXPECT_EQ(shm::validate(world.segment), nullptr);
            });
            ends([&](World& world, shm::Slot&) {
                world.child_exited(kHolder);
                world.child_exited(dead);
                EXPECT_EQ(shm::validate(world.segment), nullptr);
            });
            ends([&](World& world, shm::Slot&) {
                world.child_exited(dead);
                world.child_exited(kHolder);
                EXPECT_EQ(shm::validate(world.segment), nullptr);
            });
            ends([&](World& world, shm::Slot& there) {
                world.child_exited(dead);
                shm::expire_probes(there, scene.rules, world.process(kTaker));
                world.pass(scene.rules.linger + shm::Lease::kUnit);
                shm::expire_probes(there, scene.rules, world.process(kTaker));
                EXPECT_EQ(shm::validate(world.segment), nullptr);
            });
        });
}

/// The holder is a child of its own, as its lease is being ended by somebody who is at that place.
class AHolderKilledAtAnyInstruction : public testing::TestWithParam<const char*> {};

TEST_P(AHolderKilledAtAnyInstruction, OfItsReturnHasLeftWhenTheParentHasHeardOfIt) {
    Scene scene;
    // The lease is the child's own, though the test took it: it knows its pid only then.
    const auto own = [&](std::uint32_t pid, Permit& permit) {
        shm::Lease lease = shm::Lease::of(permit.lease);
        lease.pid = pid;
        permit.lease = lease.bits();
    };
    const auto expirer_stops = [&] {
        // An expirer that is killed there, and of whose death the parent has not heard yet.
        const pid_t expirer = fork_child([&] {
            die_at(GetParam(), 1);
            shm::expire_probes(*scene.slot, scene.rules, scene.by(kExpirer));
        });
        EXPECT_EQ(wait_for(expirer), -SIGKILL);
    };
    shm::Atomic64& is_set = scene.world.board.counter[0];
    die_at_any_instruction(
        scene,
        [&] {
            const auto pid = static_cast<std::uint32_t>(::getpid());
            own(pid, scene.permit);
            scene.slot->lease[0] = scene.permit.lease;
            expirer_stops();
            is_set = 1;
            shm::finish(*scene.slot, scene.rules, scene.by(pid), scene.permit, kGood, {});
        },
        [&](World& after, shm::Slot& slot, std::uint32_t dead) {
            if (is_set.load() == 0) return;
            for (const bool holder_first : {true, false}) {
                World world(after);
                shm::Slot& there = world.here(slot, after);
                world.child_exited(holder_first ? dead : kExpirer);
                world.child_exited(holder_first ? kExpirer : dead);
                EXPECT_EQ(remains_of(world.segment, dead, shm::kNoColumn), "");
                EXPECT_EQ(remains_of(world.segment, kExpirer, shm::kNoColumn), "");
                EXPECT_EQ(shm::validate(world.segment), nullptr);
                EXPECT_EQ(word_of(there).failures + word_of(there).neutral, 1U) << "applied once";
                EXPECT_TRUE(can_be_had(world, there, scene.rules));
            }
        });
}

INSTANTIATE_TEST_SUITE_P(WithAnExpirerAt, AHolderKilledAtAnyInstruction,
                         testing::Values("settle.claimed", "settle.applied", "settle.released"), [](const auto& param) {
                             std::string name = param.param;
                             name.replace(name.find('.'), 1, "_");
                             return name;
                         });

}  // namespace
}  // namespace cb::test
