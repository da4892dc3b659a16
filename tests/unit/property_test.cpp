// What must hold whatever happens: long random lives of a breaker (random_world.hpp), every step of them looked at.
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "random_world.hpp"
#include "reference.hpp"

namespace cb::test {
namespace {

constexpr int kHappenings = 4000;

/// Lives of the seeds [first, first + lives); `observer()` gives each life a visitor of its own.
template <typename Observer>
void for_each_life(std::uint64_t first, std::uint64_t lives, Observer observer) {
    for (std::uint64_t seed = first; seed < first + lives; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        RandomWorld world(seed);
        world.live(kHappenings, observer(world));
        if (::testing::Test::HasFatalFailure()) return;
    }
}
template <typename Visit>
void for_each_step(std::uint64_t first, std::uint64_t lives, Visit visit) {
    for_each_life(first, lives, [&](const RandomWorld&) -> Visit& { return visit; });
}

std::string at(const Seen& seen) {
    return "step " + std::to_string(seen.number) + ", event kind " + std::to_string(static_cast<int>(seen.event.kind)) +
           " on " + ::testing::PrintToString(unpack(seen.bits)) + " gives " +
           ::testing::PrintToString(unpack(seen.step.word)) + ' ' + ::testing::PrintToString(seen.step.decision);
}

bool begins_early(const Seen& seen) {
    return is_early(seen.step.word) && !is_early(seen.bits);
}
bool fails_early(const Seen& seen) {
    return is_early(seen.bits) && state_of(seen.step.word) == State::open;
}

TEST(AnyLife, GoesAsASecondReadingOfTheDesignGoes) {
    for_each_life(1000, 300, [](const RandomWorld& world) {
        return [reference = Reference(world.first_generation())](const Seen& seen) mutable {
            const auto answer = reference.take(seen.event, seen.policy, seen.now, seen.step.open_for);
            ASSERT_EQ(seen.step.decision, answer.decision) << at(seen);
            ASSERT_EQ(seen.step.transition, answer.transition) << at(seen);
            ASSERT_EQ(unpack(seen.step.word), reference.word()) << at(seen);
        };
    });
}

TEST(AnyLife, KeepsEveryWordAndEveryChangeLegal) {
    for_each_step(2000, 300, [](const Seen& seen) {
        const Word after = unpack(seen.step.word);
        ASSERT_EQ(pack(after), seen.step.word) << at(seen);
        ASSERT_LE(after.level, kMaxLevel) << at(seen);

        const State from = state_of(seen.bits);
        const bool is_reset = seen.event.kind == EventKind::reset;
        const bool is_reshape = seen.event.kind == EventKind::reshape;
        const bool is_end_of_ramp = from == State::recovering && seen.step.reason == Reason::ramp_over;
        const bool is_silent = begins_early(seen) || fails_early(seen);
        ASSERT_EQ(seen.step.transition, after.state != from && !is_silent) << at(seen);
        const std::uint32_t generations = (after.generation - generation_of(seen.bits)) & kGenerationMask;
        const bool is_new = (seen.step.transition && !is_end_of_ramp) || is_reset || is_silent;
        ASSERT_EQ(generations, is_reshape ? 2U : is_new ? 1U : 0U) << at(seen);
        ASSERT_EQ(is_change(seen.bits, seen.step.word), seen.step.transition || is_reset) << at(seen);

        const Decision decision = seen.step.decision;
        if (decision == Decision::ignored || decision == Decision::refuse || decision == Decision::pass ||
            decision == Decision::ask_max_open ||
            (decision == Decision::probe && seen.event.kind == EventKind::admit)) {
            ASSERT_EQ(seen.step.word, seen.bits) << at(seen);
        }
        if (seen.event.kind == EventKind::result && !seen.event.slow &&
            (seen.event.verdict == Verdict::success || seen.event.verdict == Verdict::ignore)) {
            ASSERT_FALSE(seen.step.transition && after.state == State::open) << at(seen);
        }
    });
}

TEST(AnyLife, StaysOpenAsItWasWhenAnEarlyRoundFails) {
    Word interrupted;
    int failed = 0;
    for_each_step(8000, 300, [&](const Seen& seen) {
        if (begins_early(seen)) {
            interrupted = unpack(seen.bits);
            ASSERT_TRUE(seen.event.early) << at(seen);
            ASSERT_EQ(interrupted.state, State::open) << at(seen);
            ASSERT_GT(open_remaining(interrupted, seen.now), 0U) << at(seen);
            ASSERT_EQ(seen.step.reason, Reason::no_other_member) << at(seen);
        }
        if (!fails_early(seen)) return;
        ++failed;
        Word after = unpack(seen.step.word);
        ASSERT_NE(after.generation, interrupted.generation) << at(seen);
        after.generation = interrupted.generation;
        ASSERT_EQ(after, interrupted) << at(seen);
        ASSERT_EQ(seen.step.open_for, open_remaining(interrupted, seen.now)) << at(seen);
    });
    EXPECT_GT(failed, 1000);
}

TEST(AnyLife, IsProbedEarlyOnlyWhereARequestFindsNoOtherMember) {
    for_each_step(9000, 300, [](const Seen& seen) {
        const Word before = unpack(seen.bits);
        if (before.state != State::open || seen.event.early || open_remaining(before, seen.now) == 0) return;
        ASSERT_NE(seen.step.decision, Decision::probe) << at(seen);
    });
}

TEST(AnyLife, AdmitsNoMoreProbesThanItsRoundsAllow) {
    for_each_step(3000, 300, [](const Seen& seen) {
        const Word before = unpack(seen.bits);
        const Word after = unpack(seen.step.word);
        if (after.state != State::half_open) return;
        ASSERT_GE(after.round, 1) << at(seen);
        ASSERT_LT(after.neutral, kMaxNeutral) << at(seen);
        const auto in_flight = static_cast<std::uint32_t>(std::popcount(after.slots));
        if (in_flight > static_cast<std::uint32_t>(std::popcount(before.slots))) {
            ASSERT_LE(in_flight, seen.policy.probes.concurrent) << at(seen);
            const std::uint32_t promising = in_flight + after.successes;
            ASSERT_TRUE(seen.event.early || in_flight == 1 || promising + after.failures <= after.round ||
                        promising <= needed(seen.policy.probes, after.round))
                << at(seen);
        }
        if (before.state == State::half_open) {
            ASSERT_EQ(after.round, before.round) << at(seen);
            ASSERT_GE(after.failures, before.failures) << at(seen);
            ASSERT_GE(after.neutral, before.neutral) << at(seen);
            ASSERT_GE(after.successes, before.successes) << at(seen);
        }
    });
}

TEST(AnyLife, OpensForALegalTimeOfTheRightLevel) {
    for_each_step(4000, 300, [](const Seen& seen) {
        const Word after = unpack(seen.step.word);
        if (!seen.step.transition || after.state != State::open) return;
        ASSERT_GE(seen.step.open_for, kMinOpenTime) << at(seen);
        ASSERT_LE(seen.step.open_for, kMaxOpenTime) << at(seen);
        ASSERT_EQ(open_remaining(after, seen.now), seen.step.open_for) << at(seen);
        const OpenTime& time = seen.policy.open_time;
        const double exact =
            std::min(static_cast<double>(time.max),
                     static_cast<double>(time.base) * std::pow(time.factor_milli / 1000.0, after.level));
        const auto got = static_cast<double>(seen.step.open_for);
        const double jitter = time.jitter / 100.0;
        const double least = std::min(exact * (1 - jitter), static_cast<double>(kMaxOpenTime));
        ASSERT_GE(got, least * 0.99 - 1) << at(seen);
        const auto retry_after =
            static_cast<double>(time.retry_after ? std::min(seen.event.least_open_time, time.max) : Millis{0});
        ASSERT_GE(got, retry_after) << at(seen);
        const double most = std::max({exact * (1 + jitter), retry_after, static_cast<double>(kMinOpenTime)});
        ASSERT_LE(got, most * 1.001 + 1) << at(seen);
    });
}

TEST(AnyLife, RaisesAndLowersTheLevelOnlyAsTheRulesSay) {
    for_each_step(5000, 300, [](const Seen& seen) {
        const Word before = unpack(seen.bits);
        const Word after = unpack(seen.step.word);
        const int change = after.level - before.level;
        const int raised = before.level < kMaxLevel ? 1 : 0;
        if (after.state == State::open && seen.step.transition) {
            if (before.state == State::half_open) {
                ASSERT_EQ(change, seen.step.reason == Reason::no_evidence ? 0 : raised) << at(seen);
            } else if (before.state == State::recovering) {
                ASSERT_EQ(change, raised) << at(seen);
            } else {
                ASSERT_TRUE(after.level == 0 || change == raised) << at(seen);
                ASSERT_TRUE(before.tripped || after.level == 0) << at(seen);
            }
        } else if (change != 0) {
            ASSERT_EQ(after.level, 0) << at(seen);
            const bool is_operator = seen.event.kind != EventKind::result;
            ASSERT_TRUE(is_operator || (before.state == State::closed && seen.event.verdict == Verdict::success))
                << at(seen);
        }
        if (after.state == State::closed && !after.tripped) {
            ASSERT_EQ(after.level, 0) << at(seen);
            ASSERT_EQ(after.successes_since_closing, 0U) << at(seen);
        }
    });
}

/// A breaker all of whose calls and probes end with `verdict` from now on, and to which time brings what it can.
Word in_the_end(Word word, const Policy& policy, Millis now, Verdict verdict, State wanted) {
    Sums sums;
    std::uint32_t generation = word.generation;
    for (int i = 0; i < 500 && word.state != wanted; ++i) {
        if (word.generation != generation) sums = {};
        generation = word.generation;
        if (word.state == State::half_open && word.slots != 0) {
            apply(word, probe_ended(static_cast<unsigned>(std::countr_zero(word.slots)), verdict), policy, now);
        } else if (word.state == State::half_open || word.state == State::open) {
            now += open_remaining(word, now) * (word.state == State::open);
            apply(word, asks_with_lease(0), policy, now);
        } else {
            if (verdict == Verdict::success) now += policy.ramp_up.duration;
            const bool is_failure = verdict != Verdict::success;
            sums.calls += 1;
            sums.failures += is_failure;
            Event event = ended(verdict, sums);
            event.generation = word.generation;
            event.max_open = MaxOpen::granted;
            apply(word, event, policy, now);
        }
    }
    return word;
}

TEST(AnyLife, ComesBackToClosedWithTimeAndSuccesses) {
    for_each_step(6000, 300, [](const Seen& seen) {
        Word word = unpack(seen.step.word);
        if (word.state == State::forced_open || word.state == State::forced_closed) {
            apply(word, of_kind(EventKind::automatic), seen.policy, seen.now);
        }
        // A ramp's start is noted in units of 64 ms: it may take that much longer.
        const Word end = in_the_end(word, seen.policy, seen.now + kRampUnit, Verdict::success, State::closed);
        ASSERT_EQ(end.state, State::closed) << at(seen);
    });
}

TEST(AnyLife, ComesToOpenWithFailuresUnlessItIsForced) {
    for_each_step(7000, 300, [](const Seen& seen) {
        const Word word = unpack(seen.step.word);
        if (word.state == State::forced_open || word.state == State::forced_closed) return;
        const Word end = in_the_end(word, seen.policy, seen.now, Verdict::failure, State::open);
        ASSERT_EQ(end.state, State::open) << at(seen);
    });
}

TEST(AnyLife, CanAlwaysEndItsRoundEitherWayWithTheProbesThatAreAdmitted) {
    for_each_step(10'000, 300, [](const Seen& seen) {
        const Word word = unpack(seen.step.word);
        if (word.state != State::half_open) return;
        for (const Verdict verdict : {Verdict::success, Verdict::failure}) {
            Word round = word;
            for (int i = 0; i < 200 && round.generation == word.generation; ++i) {
                const std::uint32_t room = probe_room(round, seen.policy, seen.now);
                const auto in_flight = static_cast<std::uint32_t>(std::popcount(round.slots));
                ASSERT_TRUE(room > 0 || in_flight > 0) << at(seen) << " is stuck: " << ::testing::PrintToString(round);
                ASSERT_TRUE(room == 0 || in_flight + room <= seen.policy.probes.concurrent) << at(seen);
                if (in_flight == 0) apply(round, asks_with_lease(0), seen.policy, seen.now);
                const auto slot = static_cast<unsigned>(std::countr_zero(round.slots));
                apply(round, probe_ended(slot, verdict), seen.policy, seen.now);
            }
            ASSERT_NE(round.generation, word.generation) << at(seen);
        }
    });
}

/// Else the lives above would prove little.
TEST(AnyLife, PassesOftenThroughEveryChangeThereIs) {
    std::array<std::array<int, kStates>, kStates> count{};
    std::array<int, kReasons> reasons{};
    int steps = 0;
    int highest_level = 0;
    for_each_step(1000, 300, [&](const Seen& seen) {
        ++steps;
        const Word after = unpack(seen.step.word);
        highest_level = std::max<int>(highest_level, after.level);
        if (begins_early(seen)) ++reasons[static_cast<std::size_t>(Reason::no_other_member)];
        if (!seen.step.transition) return;
        ++count[static_cast<std::size_t>(state_of(seen.bits))][static_cast<std::size_t>(after.state)];
        ++reasons[static_cast<std::size_t>(seen.step.reason)];
    });
    const auto times = [&](State from, State to) {
        return count[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
    };
    EXPECT_GT(steps, 500'000);
    EXPECT_GE(highest_level, 10);
    EXPECT_GT(times(State::closed, State::open), 1000);
    EXPECT_GT(times(State::open, State::half_open), 1000);
    EXPECT_GT(times(State::half_open, State::open), 1000);
    EXPECT_GT(times(State::half_open, State::closed), 1000);
    EXPECT_GT(times(State::half_open, State::recovering), 100);
    EXPECT_GT(times(State::recovering, State::open), 100);
    EXPECT_GT(times(State::recovering, State::closed), 100);
    for (const State from : kAllStates) {
        for (const State to : {State::forced_open, State::forced_closed}) {
            if (from == to) continue;
            EXPECT_GT(times(from, to), 10) << name(from) << " to " << name(to);
        }
    }
    for (std::size_t reason = 1; reason < reasons.size(); ++reason) {
        EXPECT_GT(reasons[reason], 10) << name(static_cast<Reason>(reason));
    }
}

}  // namespace
}  // namespace cb::test
