// One process stops at a named place, another does a whole thing of its own, the first goes on. Every thing at every
// place of every other thing, from every state.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "executors.hpp"
#include "shm/step.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::EventKind;
using core::State;
using shm::Admission;
using shm::PermitKind;
using shm::Refusal;

core::Policy rules_of(core::Millis ramp, bool is_count_window) {
    core::Policy rules = policy();
    rules.probes = {2, 1, 1, 2, 2};
    rules.max_open = 50;
    rules.max_concurrent = 2;
    rules.consecutive_failures = 3;
    rules.ramp_up = {ramp, 100};
    if (is_count_window) rules.window = {0, 16};
    return rules;
}

/// Two members with MaxOpen 50 %, and what two processes do with them.
class Pair {
  public:
    Pair(core::Millis ramp, bool is_count_window) : rules(rules_of(ramp, is_count_window)) {
        both[0] = &world.add("a", rules);
        both[1] = &world.add("b", rules);
    }
    void call_a(unsigned who, const shm::Ending& ending) { make_call(who, *both[0], ending, false); }
    void call_b(unsigned who, const shm::Ending& ending) { make_call(who, *both[1], ending, false); }
    void cancel_a(unsigned who) { make_call(who, *both[0], kGood, true); }
    void operate(unsigned who, EventKind kind) { shm::operate(*both[0], rules, process(who), kind); }
    void wait_and_look(unsigned who) {
        world.pass(kLease + shm::Lease::kUnit);
        shm::expire_probes(*both[0], rules, process(who));
    }
    void bind(unsigned who, const char* name) {
        std::uint32_t index = 0;
        if (shm::bind(world.segment, identity(name), world.epoch(), process(who).pid, index) !=
            shm::BindResult::bound) {
            return;
        }
        EXPECT_STREQ(world.segment.slots[index].identity.name, name);
    }
    void reshape(unsigned who, std::uint32_t calls) {
        core::Policy other = rules;
        other.window = {0, calls};
        shm::configure(*both[0], other, process(who));
    }
    [[nodiscard]] shm::Process process(unsigned who) { return world.process(1001 + who, &world.recorder); }

    World world{3, 2};
    core::Policy rules;
    shm::Slot* both[2];
    std::uint64_t finished = 0;

  private:
    void make_call(unsigned who, shm::Slot& slot, const shm::Ending& ending, bool is_cancelled) {
        Admission mine = ask(slot, rules, process(who), world.in_flight(slot, who));
        if (mine.refusal != Refusal::none) return;
        Desk& desk = world.board.desk[who];
        const bool is_probe_of_a = mine.permit.kind == PermitKind::probe && &slot == both[0];
        if (is_probe_of_a) {
            desk.probes = world.board.now + kLease;  // until then it is nobody else's
            const auto holds = [this](const Desk& one) { return one.probes > world.board.now; };
            EXPECT_LE(std::count_if(world.board.desk, world.board.desk + Board::kDesks, holds), 1);
            shm::mark(slot, mine.permit, shm::Phase::sent);
            desk.probes = 0;
        }
        EXPECT_LE(open(), 1) << "more open than MaxOpen allows";
        if (is_cancelled) return (void)shm::cancel(slot, rules, process(who), mine.permit);
        shm::finish(slot, rules, process(who), mine.permit, ending, {both, 2});
        ++finished;
    }
    [[nodiscard]] long open() const {
        return std::count_if(both, both + 2, [](const shm::Slot* slot) {
            return state_of(*slot) == State::open || state_of(*slot) == State::half_open;
        });
    }
};

struct Thing {
    const char* name;
    std::function<void(Pair&, unsigned)> thing;
};

const Thing kThings[] = {
    {"a good call", [](Pair& pair, unsigned who) { pair.call_a(who, kGood); }},
    {"a bad call", [](Pair& pair, unsigned who) { pair.call_a(who, kBad); }},
    {"a fatal call", [](Pair& pair, unsigned who) { pair.call_a(who, kFatal); }},
    {"a neutral call", [](Pair& pair, unsigned who) { pair.call_a(who, kNeutral); }},
    {"a cancelled call", [](Pair& pair, unsigned who) { pair.cancel_a(who); }},
    {"two bad calls",
     [](Pair& pair, unsigned who) {
         pair.call_a(who, kBad);
         pair.call_a(who, kBad);
     }},
    {"two good calls",
     [](Pair& pair, unsigned who) {
         pair.call_a(who, kGood);
         pair.call_a(who, kGood);
     }},
    {"a fatal call to the other", [](Pair& pair, unsigned who) { pair.call_b(who, kFatal); }},
    {"a look after the deadline", [](Pair& pair, unsigned who) { pair.wait_and_look(who); }},
    {"a good call after the deadline",
     [](Pair& pair, unsigned who) {
         pair.wait_and_look(who);
         pair.call_a(who, kGood);
     }},
    {"a reset", [](Pair& pair, unsigned who) { pair.operate(who, EventKind::reset); }},
    {"a forced opening and back",
     [](Pair& pair, unsigned who) {
         pair.operate(who, EventKind::force_open);
         pair.operate(who, EventKind::automatic);
     }},
    {"a bind of something new", [](Pair& pair, unsigned who) { pair.bind(who, "c"); }},
    {"a bind of something else that is new", [](Pair& pair, unsigned who) { pair.bind(who, "d"); }},
    {"a restart without it, and a bind of another in its place",
     [](Pair& pair, unsigned who) {
         pair.world.segment.header->epoch.fetch_add(1);
         pair.bind(who, "a");
         pair.bind(who, "b");
         shm::free_unused(pair.world.segment, 1003);
         pair.bind(who, "e");
     }},
    {"a bind of what there is",
     [](Pair& pair, unsigned who) {
         pair.bind(who, "a");
         pair.bind(who, "c");
     }},
    {"another shape", [](Pair& pair, unsigned who) { pair.reshape(who, 17); }},
};

struct Given {
    const char* name;
    std::function<void(Pair&)> given;
};

const Given kGivens[] = {
    {"Closed", [](Pair&) {}},
    {"OneFailureFromOpen",
     [](Pair& pair) {
         pair.call_a(0, kBad);
         pair.call_a(0, kBad);
     }},
    {"DueForAProbe",
     [](Pair& pair) {
         pair.call_a(0, kFatal);
         pair.world.pass(1000);
     }},
    {"HalfOpenWithOneSuccess",
     [](Pair& pair) {
         pair.call_a(0, kFatal);
         pair.world.pass(1000);
         pair.call_a(0, kGood);
     }},
    {"AtTheEndOfARampOrClosed",
     [](Pair& pair) {
         pair.call_a(0, kFatal);
         pair.world.pass(1000);
         pair.call_a(0, kGood);
         pair.call_a(0, kGood);
         pair.world.pass(900);
     }},
    {"WithAMemberAddedAtRunTime", [](Pair& pair) { pair.bind(0, "c"); }},
};

struct Kind {
    const char* name;
    core::Millis ramp;
    bool is_count_window;
};

class Overtaken : public testing::TestWithParam<std::tuple<Given, Kind>> {};

TEST_P(Overtaken, AtAnyPlaceByAnythingLeavesEverythingInOrder) {
    const auto& [given, kind] = GetParam();
    int meetings = 0;
    for (const Thing& first : kThings) {
        for (const Thing& second : kThings) {
            for (unsigned nth = 1;; ++nth) {
                Pair pair(kind.ramp, kind.is_count_window);
                given.given(pair);
                bool has_happened = false;
                {
                    const Between between(
                        nullptr, [&] { second.thing(pair, 1); }, nth);
                    first.thing(pair, 0);
                    has_happened = between.has_happened();
                }
                if (!has_happened) break;
                ++meetings;
                const testing::Message where = testing::Message()
                                               << first.name << ", overtaken at place " << nth << " by " << second.name;
                ASSERT_EQ(shm::validate(pair.world.segment), nullptr) << where;
                std::uint64_t calls = pair.both[1]->totals.calls + pair.both[0]->totals.calls;
                ASSERT_EQ(calls, pair.finished) << where;
                ASSERT_EQ(wrong_with_reports(pair.world, *pair.both[0]), "") << where;
                ASSERT_LE(pair.world.board.suppressed.load(), 4U) << where;
                ASSERT_TRUE(recovers(pair.world, *pair.both[0], pair.rules)) << where;
                ASSERT_TRUE(recovers(pair.world, *pair.both[1], pair.rules)) << where;
                ASSERT_FALSE(testing::Test::HasFailure()) << where;
            }
        }
    }
    EXPECT_GT(meetings, 1000);
}

std::string name_of(const testing::TestParamInfo<Overtaken::ParamType>& param) {
    return std::string(std::get<0>(param.param).name) + "With" + std::get<1>(param.param).name;
}

INSTANTIATE_TEST_SUITE_P(In, Overtaken,
                         testing::Combine(testing::ValuesIn(kGivens), testing::Values(Kind{"TimeWindow", 1000, false},
                                                                                      Kind{"CountWindow", 0, true})),
                         name_of);

/// A result that is overtaken by a trip while it is written is a late one, as if it had come after it.
TEST(AResult, ThatATripOvertakesCountsAsLate) {
    static World* world = nullptr;
    static shm::Slot* slot = nullptr;
    static shm::Permit* second = nullptr;
    static core::Policy rules;
    World here;
    rules = policy();
    rules.consecutive_failures = 1;
    world = &here;
    slot = &here.add("http://a", rules);
    shm::Admission one = ask(*slot, rules, here.process(7));
    shm::Admission two = ask(*slot, rules, here.process(8));
    second = &two.permit;
    shm::on_step = [](const char* place) noexcept {
        if (std::string_view(place) != "result.recorded" || second == nullptr) return;
        shm::finish(*slot, rules, world->process(8), *std::exchange(second, nullptr), kBad, {});
    };
    shm::finish(*slot, rules, here.process(7), one.permit, kBad, {});
    shm::on_step = nullptr;
    EXPECT_EQ(state_of(*slot), State::open);
    EXPECT_EQ(slot->totals.calls.load(), 2U);
    EXPECT_EQ(slot->totals.late.load(), 1U);
}

}  // namespace
}  // namespace cb::test
