// Many at once, as threads of one child and as children of their own: what must hold whoever is faster.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <vector>

#include "at_once.hpp"

namespace cb::test {
namespace {

using core::State;
using shm::PermitKind;
using shm::Refusal;

TYPED_TEST_SUITE(AtOnce, Executors, ExecutorNames);

// --- counting ---

/// Calls of all workers, of which the board counts the failures (counter 0) and the slow ones (counter 1).
void make_calls(World& world, shm::Slot& slot, const core::Policy& rules, const Worker& worker, int calls,
                core::Millis step) {
    Random random(worker.index + 1);
    std::uint32_t seen = 0;
    for (int n = 0; n < calls; ++n) {
        shm::Ending ending = random.below(3) == 0 ? kBad : kGood;
        ending.slow = random.below(4) == 0;
        if (ending.verdict == core::Verdict::failure) world.board.counter[0].fetch_add(1);
        if (ending.slow) world.board.counter[1].fetch_add(1);
        world.board.expect(call(slot, rules, world.process(worker.pid), ending), "a call was refused");
        // Whoever weighs the evidence after a call sees that call, and all that it saw before.
        const std::uint32_t now = shm::sums_now(slot, rules, world.process(worker.pid)).calls;
        world.board.expect(now > seen, "a call is missing in the sums that are read after it");
        seen = now;
        world.pass(step);
    }
}

void expect_exact(World& world, const shm::Slot& slot, const core::Policy& rules, std::uint64_t calls) {
    const core::Sums sums = shm::sums_now(slot, rules, world.parent());
    EXPECT_EQ(sums.calls, calls);
    EXPECT_EQ(sums.failures, world.board.counter[0].load());
    EXPECT_EQ(sums.timed_calls, calls);
    EXPECT_EQ(sums.slow_calls, world.board.counter[1].load());
    EXPECT_EQ(slot.totals.calls.load(), calls);
    EXPECT_EQ(slot.totals.verdict[false][static_cast<std::size_t>(core::Verdict::failure)].load(),
              world.board.counter[0].load());
    EXPECT_EQ(slot.totals.slow[false].load(), world.board.counter[1].load());
    EXPECT_EQ(slot.totals.status[false][1].load() + slot.totals.outcome_class[false][2].load(), calls);
}

core::Policy only_counting(const core::Window& window) {
    core::Policy rules = untrippable();
    rules.window = window;
    rules.slow_call.threshold = 1;
    rules.minimum_calls = core::kMaxMinimumCalls;
    return rules;
}

TYPED_TEST(AtOnce, EveryCallIsInTheWindowAndInTheTotals) {
    World world;
    const core::Policy rules = only_counting({10'000, 0});
    shm::Slot& slot = world.add("a", rules);
    this->run(world, [&](const Worker& worker) { make_calls(world, slot, rules, worker, 10'000, 0); });
    expect_exact(world, slot, rules, 40'000);
}

TYPED_TEST(AtOnce, EveryCallIsInTheWindowAlsoWhileItsBucketsTurn) {
    World world;
    const core::Policy rules = only_counting({core::kDay, 0});
    shm::Slot& slot = world.add("a", rules);
    this->run(world, [&](const Worker& worker) { make_calls(world, slot, rules, worker, 5'000, 3'000); });
    expect_exact(world, slot, rules, 20'000);  // in 16 h 40 min
}

TYPED_TEST(AtOnce, EveryCallIsInACountWindow) {
    World world;
    const core::Policy rules = only_counting({0, 4080});
    shm::Slot& slot = world.add("a", rules);
    this->run(world, [&](const Worker& worker) { make_calls(world, slot, rules, worker, 1'020, 0); });
    expect_exact(world, slot, rules, 4'080);
}

TYPED_TEST(AtOnce, ACountWindowHoldsTheLastCallsAfterItsCellsHaveGoneRoundManyTimes) {
    World world;
    const core::Policy rules = only_counting({0, 1000});
    shm::Slot& slot = world.add("a", rules);
    this->run(world, [&](const Worker& worker) {
        for (int n = 0; n < 6'000; ++n) {
            call(slot, rules, world.process(worker.pid), kBad);
            const core::Sums sums = shm::sums_now(slot, rules, world.process(worker.pid));
            world.board.expect(sums.calls == sums.failures, "a failure was read as a success");
            world.board.expect(sums.calls <= 1000, "more calls than the window is wide");
        }
        meet(world.board, worker.workers);
        for (int n = 0; n < 250; ++n)
            call(slot, rules, world.process(worker.pid), kGood);
    });
    const core::Sums sums = shm::sums_now(slot, rules, world.parent());
    EXPECT_EQ(sums.calls, 1000U);
    EXPECT_EQ(sums.failures, 0U);
}

// --- a breaker that goes through its states all the time ---

core::Policy flapping() {
    core::Policy rules = policy();
    rules.open_time = {100, 100, 1000, 0, false};
    rules.probes = {8, 3, 2, 6, 8};
    rules.ramp_up = {200, 50};
    return rules;
}

/// Verdicts at random, the clock moving: opens, is probed, recovers, again and again.
void flap(World& world, shm::Slot& slot, const core::Policy& rules, const Worker& worker, int calls) {
    Random random(worker.index + 77);
    Recorder recorder(world.board, world.segment);
    const shm::Process process = world.process(worker.pid, &recorder);
    Desk& desk = world.board.desk[worker.index];
    auto& admitted = world.board.counter;
    auto& returned = world.board.counter2;
    for (int n = 0; n < calls; ++n) {
        world.pass(random.below(8));
        shm::Admission admission = ask(slot, rules, process, world.in_flight(slot, worker.column), 36'000'000);
        if (admission.refusal != Refusal::none) continue;
        const bool is_probe = admission.permit.kind == PermitKind::probe;
        const std::uint32_t round = admission.permit.generation % Board::kCounters;
        shm::Ending ending = kGood;
        const std::uint32_t draw = random.below(20);
        if (draw < (is_probe ? 2U : 8U)) ending = kBad;
        if (draw == 19) ending = kNeutral;
        if (is_probe) {
            desk.probes.fetch_add(1);
            world.board.expect(world.board.probes_held() <= 3, "more probes at once than `concurrent`");
            const std::uint64_t out = admitted[round].fetch_add(1) + 1;
            world.board.expect(out <= 8 + returned[round].load(), "more probes than the round");
            shm::mark(slot, admission.permit, shm::Phase::sent);
            if (random.below(2) == 0) ::sched_yield();
            desk.probes.fetch_sub(1);
            if (ending.verdict != core::Verdict::success) returned[round].fetch_add(1);
        }
        if (is_probe && draw == 18) {
            returned[round].fetch_add(1);
            shm::cancel(slot, rules, process, admission.permit);
        } else {
            shm::finish(slot, rules, process, admission.permit, ending, {});
        }
        world.board.expect(admission.permit.kind == PermitKind::none, "a permit outlived its return");
    }
}

TYPED_TEST(AtOnce, ProbesKeepToTheirNumberAndEveryChangeIsReportedOnce) {
    World world;
    const core::Policy rules = flapping();
    shm::Slot& slot = world.add("a", rules);
    this->run(world, [&](const Worker& worker) { flap(world, slot, rules, worker, 20'000); });
    EXPECT_EQ(wrong_with_reports(world, slot), "");
    EXPECT_GT(word_of(slot).generation, 300U) << "the load was too tame to prove anything";
    EXPECT_GT(slot.totals.probes.load(), 1000U);
    EXPECT_TRUE(recovers(world, slot, rules));
}

TYPED_TEST(AtOnce, ProbesKeepToTheirNumberAlsoInACountWindowsBreakerAndManyWorkers) {
    World world(8, 16);
    core::Policy rules = flapping();
    rules.window = {0, 17};
    rules.ramp_up.duration = 0;
    shm::Slot& slot = world.add("a", rules);
    this->run(
        world, [&](const Worker& worker) { flap(world, slot, rules, worker, 5'000); }, 12);
    EXPECT_EQ(wrong_with_reports(world, slot), "");
    EXPECT_TRUE(recovers(world, slot, rules));
}

// Many ask at the instant at which the open time ends.
TYPED_TEST(AtOnce, OnlyOneHalfOpensTheBreakerWhenItsOpenTimeEnds) {
    World world;
    core::Policy rules = policy();
    rules.probes = {1, 1, 0, 1, 1};
    shm::Slot& slot = world.add("a", rules);
    this->run(world, [&](const Worker& worker) {
        Recorder recorder(world.board, world.segment);
        const shm::Process process = world.process(worker.pid, &recorder);
        for (int round = 0; round < 100; ++round) {
            if (worker.index == 0) {
                call(slot, rules, process, kFatal);
                world.pass(rules.open_time.max);
            }
            meet(world.board, worker.workers);
            shm::Admission mine = ask(slot, rules, process);
            if (mine.permit.kind == PermitKind::probe) world.board.counter[round].fetch_add(1);
            meet(world.board, worker.workers);
            // A result of the generation before half-open arrives meanwhile: it decides nothing.
            shm::Permit old;
            old.kind = PermitKind::call;
            old.generation = core::generation_of(slot.word) - 2;
            if (mine.permit.kind != PermitKind::probe) shm::finish(slot, rules, process, old, kFatal, {});
            meet(world.board, worker.workers);
            if (mine.permit.kind == PermitKind::probe) {
                shm::finish(slot, rules, process, mine.permit, kGood, {});
                world.board.expect(state_of(slot) == State::closed, "one good probe did not close it");
            }
            meet(world.board, worker.workers);
        }
    });
    const auto is_one = [](const shm::Atomic64& probes) { return probes.load() == 1; };
    EXPECT_EQ(std::count_if(world.board.counter, world.board.counter + 100, is_one), 100) << "rounds with one probe";
    EXPECT_EQ(word_of(slot).generation, 300U);
    EXPECT_EQ(wrong_with_reports(world, slot), "");
}

TYPED_TEST(AtOnce, ALostProbeIsLostOnceHoweverManyFindOut) {
    World world;
    core::Policy rules = policy();
    rules.probes = {9, 3, 15, 9, 9};
    shm::Slot& slot = world.add("a", rules);
    for (int round = 0; round < 20; ++round) {
        shm::operate(slot, rules, world.parent(), core::EventKind::reset);
        call(slot, rules, world.parent(), kFatal);
        world.pass(100'000);
        shm::Permit held[3];
        for (shm::Permit& permit : held) {
            permit = ask(slot, rules, world.parent()).permit;
            ASSERT_EQ(permit.kind, PermitKind::probe);
            shm::mark(slot, permit, shm::Phase::sent);
        }
        world.pass(kLease + shm::Lease::kUnit);
        world.board.lost = 0;
        {
            const Restless restless;
            TypeParam::run(world, 4, [&](const Worker& worker) {
                Recorder recorder(world.board, world.segment);
                const shm::Process process = world.process(worker.pid, &recorder);
                meet(world.board, worker.workers);
                if (worker.index < 3) {  // the holders come, late
                    shm::finish(slot, rules, process, held[worker.index], kGood, {});
                } else {
                    shm::expire_probes(slot, rules, process);
                }
            });
        }
        EXPECT_EQ(world.board.lost.load(), 3U);
        EXPECT_EQ(word_of(slot).failures, 3U);
        EXPECT_EQ(word_of(slot).successes, 0U);
        EXPECT_EQ(shm::validate(world.segment), nullptr);
    }
}

/// Clients stall: deadlines pass while calls go on, and whoever looks ends these probes.
TYPED_TEST(AtOnce, ProbesKeepToTheirNumberAlsoWhenTheirCallsOutliveTheirDeadlines) {
    constexpr core::Millis kBriefLease = 300;
    constexpr std::uint64_t kOutlived = 400;  // calls
    World world;
    core::Policy rules = flapping();
    rules.probes = {8, 2, 2, 6, 8};
    rules.linger = core::kDay;
    shm::Slot& slot = world.add("a", rules);
    shm::Atomic64& outlived = world.board.counter[0];
    shm::Atomic64& at_member = world.board.counter[1];
    this->run(world, [&](const Worker& worker) {
        Random random(worker.index + 5);
        Recorder recorder(world.board, world.segment);
        const shm::Process process = world.process(worker.pid, &recorder);
        for (int n = 0; n < 1'000'000 && outlived < kOutlived; ++n) {
            world.pass(random.below(30));
            shm::Admission mine = ask(slot, rules, process, world.in_flight(slot, worker.column), kBriefLease);
            if (mine.refusal != Refusal::none) {
                ::sched_yield();  // whoever is about to take or to end a probe goes on
                continue;
            }
            const bool is_probe = mine.permit.kind == PermitKind::probe;
            if (is_probe) {
                world.board.expect(at_member.fetch_add(1) < 2, "more calls at the member than `concurrent`");
                if (random.below(2) == 0) shm::mark(slot, mine.permit, shm::Phase::sent);
                if (random.below(2) == 0) world.pass(kBriefLease);
                for (std::uint32_t spin = random.below(8); spin > 0; --spin)
                    ::sched_yield();
                if (shm::is_over(mine.permit, process)) outlived.fetch_add(1);
                at_member.fetch_sub(1);
            }
            if (random.below(8) == 0) {
                shm::cancel(slot, rules, process, mine.permit);
            } else {
                shm::finish(slot, rules, process, mine.permit, random.below(4) == 0 ? kBad : kGood, {});
            }
        }
    });
    EXPECT_EQ(wrong_with_reports(world, slot), "");
    EXPECT_EQ(world.board.lost.load(), slot.totals.probes_lost.load());
    EXPECT_GE(outlived.load(), kOutlived) << "slots have not come back";
    EXPECT_GT(slot.totals.probes_lost.load(), 50U);
    std::uint64_t ended = 0;
    for (const shm::Atomic64& result : slot.totals.probe_result)
        ended += result.load();
    EXPECT_EQ(ended, slot.totals.probes.load()) << "each has one result";
    EXPECT_TRUE(recovers(world, slot, rules));
}

TYPED_TEST(AtOnce, TheOperatorsHandLeavesNothingBehind) {
    World world;
    const core::Policy rules = flapping();
    shm::Slot& slot = world.add("a", rules);
    this->run(world, [&](const Worker& worker) {
        if (worker.index > 0) return flap(world, slot, rules, worker, 10'000);
        Random random(1);
        using core::EventKind;
        for (int n = 0; n < 5'000; ++n) {
            const EventKind kinds[] = {EventKind::force_open, EventKind::force_closed, EventKind::reset,
                                       EventKind::automatic, EventKind::reset};
            shm::operate(slot, rules, world.process(worker.pid), kinds[random.below(5)]);
            shm::end_open_time(slot, rules, world.process(worker.pid), slot.word);
            ::sched_yield();
        }
        shm::operate(slot, rules, world.process(worker.pid), EventKind::automatic);
    });
    EXPECT_TRUE(recovers(world, slot, rules));
}

// --- limits ---

TYPED_TEST(AtOnce, MaxConcurrentIsNeverExceededAndEveryPlaceComesBack) {
    World world(1, 8);
    core::Policy rules = untrippable();
    rules.max_concurrent = 3;
    shm::Slot& slot = world.add("a", rules);
    this->run(
        world,
        [&](const Worker& worker) {
            Desk& desk = world.board.desk[worker.index];
            Random random(worker.index + 9);
            for (int n = 0; n < 1'500; ++n) {
                shm::Admission mine = ask(slot, rules, world.process(worker.pid), world.in_flight(slot, worker.column));
                if (mine.refusal != Refusal::none) {
                    world.board.expect(mine.refusal == Refusal::max_concurrent, "refused for another reason");
                    world.board.counter[1].fetch_add(1);
                    // Contenders in lock-step may all be refused for ever; let them fall out of step.
                    for (std::uint32_t i = random.below(40); i > 0; --i)
                        ::sched_yield();
                    continue;
                }
                desk.calls.fetch_add(1);
                world.board.expect(world.board.calls_held() <= 3, "more calls at once than MaxConcurrent");
                ::sched_yield();
                desk.calls.fetch_sub(1);
                world.board.counter[0].fetch_add(1);
                shm::finish(slot, rules, world.process(worker.pid), mine.permit, kGood, {});
            }
        },
        8);
    EXPECT_GT(world.board.counter[0].load(), 100U) << "hardly anybody was let in";
    EXPECT_GT(world.board.counter[1].load(), 100U) << "nobody was ever turned away";
    EXPECT_EQ(slot.totals.calls.load(), world.board.counter[0].load());
}

TYPED_TEST(AtOnce, MaxOpenIsNeverExceededWhenMembersTripInTheSameInstant) {
    struct Case {
        std::uint32_t members, percent, may_open;
    };
    for (const Case& one : {Case{2, 50, 1}, Case{3, 34, 1}, Case{6, 50, 3}, Case{6, 99, 5}, Case{4, 20, 0}}) {
        World world(8);
        core::Policy rules = policy();
        rules.max_open = one.percent;
        std::vector<shm::Slot*> slots;
        for (std::uint32_t i = 0; i < one.members; ++i)
            slots.push_back(&world.add("m" + std::to_string(i), rules));
        const shm::Peers peers{slots.data(), one.members};
        const auto open = [&] {
            return static_cast<std::uint32_t>(std::count_if(
                slots.begin(), slots.end(), [](const shm::Slot* slot) { return state_of(*slot) == State::open; }));
        };
        this->run(world, [&](const Worker& worker) {
            Recorder recorder(world.board, world.segment);
            const shm::Process process = world.process(worker.pid, &recorder);
            for (int round = 0; round < 50; ++round) {
                meet(world.board, worker.workers);
                if (worker.index == 0) {
                    for (shm::Slot* slot : slots)
                        shm::operate(*slot, rules, process, core::EventKind::reset);
                    world.board.suppressed = 0;
                }
                meet(world.board, worker.workers);
                for (std::uint32_t n = 0; n < 4 * one.members; ++n) {
                    shm::Slot& slot = *slots[(worker.index + n) % one.members];
                    call(slot, rules, process, kFatal, peers);
                    world.board.expect(open() <= one.may_open, "more open than MaxOpen allows");
                }
                meet(world.board, worker.workers);
                if (worker.index != 0) continue;
                // Two that meet may both be refused; one after the other they get what is allowed.
                for (shm::Slot* slot : slots)
                    call(*slot, rules, process, kFatal, peers);
                world.board.expect(open() == one.may_open, "fewer open than MaxOpen allows");
                world.board.expect(world.board.suppressed.load() <= one.members, "suppressed reported twice");
            }
        });
    }
}

}  // namespace
}  // namespace cb::test
