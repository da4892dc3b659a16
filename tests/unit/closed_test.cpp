// A closed breaker: what opens it, what doesn't, and at which level.
#include <cstdint>

#include "vocabulary.hpp"

namespace cb::test {
namespace {

Sums window(std::uint32_t calls, std::uint32_t failures) {
    return {calls, failures, 0, 0};
}
Sums timed_window(std::uint32_t calls, std::uint32_t slow_calls) {
    return {calls, 0, calls, slow_calls};
}
Policy slow_policy(std::uint32_t rate) {
    Policy policy = numb_policy();
    policy.slow_call = {200, rate};
    return policy;
}
Policy rate_policy(std::uint32_t rate) {
    Policy policy = numb_policy();
    policy.failure_rate = rate;
    return policy;
}

TEST(Closed, LetsEveryRequestPassAndWritesNothing) {
    for (const Event& event : {asks(), asks(kLargestDraw), asks_with_lease(3)}) {
        expect_unchanged(sample(State::closed), step_of(sample(State::closed), event, default_policy()),
                         Decision::pass);
    }
}

// ---- Rates.

TEST(Closed, TripsWhenTheFailureRateReachesItsThreshold) {
    const Policy policy = rate_policy(50);
    expect_counted(
        [] {
            Word word = fresh_closed();
            word.consecutive = 1;
            return word;
        }(),
        step_of(fresh_closed(), ended(Verdict::failure, window(101, 50)), policy));
    expect_trip(fresh_closed(), step_of(fresh_closed(), ended(Verdict::failure, window(100, 50)), policy),
                Reason::failure_rate, 0);
    expect_trip(fresh_closed(), step_of(fresh_closed(), ended(Verdict::failure, window(100, 51)), policy),
                Reason::failure_rate, 0);
}

TEST(Closed, TripsAtEveryThresholdFromOneToAHundredPercentExactlyWhenItIsReached) {
    for (std::uint32_t rate = 1; rate <= 100; ++rate) {
        const Policy policy = rate_policy(rate);
        EXPECT_FALSE(step_of(fresh_closed(), ended(Verdict::failure, window(1000, rate * 10 - 1)), policy).transition);
        EXPECT_TRUE(step_of(fresh_closed(), ended(Verdict::failure, window(1000, rate * 10)), policy).transition);
    }
}

TEST(Closed, NeedsTheMinimumOfCallsForAFailureRate) {
    const Policy policy = rate_policy(50);
    EXPECT_FALSE(step_of(fresh_closed(), ended(Verdict::failure, window(19, 19)), policy).transition);
    EXPECT_TRUE(step_of(fresh_closed(), ended(Verdict::failure, window(20, 20)), policy).transition);
    EXPECT_TRUE(step_of(fresh_closed(), ended(Verdict::failure, window(20, 10)), policy).transition);
}

TEST(Closed, NeedsTheSameMinimumOfCallsForASlowRate) {
    const Policy policy = slow_policy(50);
    EXPECT_FALSE(step_of(fresh_closed(), ended_slow(Verdict::success, timed_window(19, 19)), policy).transition);
    EXPECT_TRUE(step_of(fresh_closed(), ended_slow(Verdict::success, timed_window(20, 20)), policy).transition);
}

TEST(Closed, TripsAtACountOfFailuresWithinItsWindowWhateverIsBetweenThem) {
    Policy policy = numb_policy();
    policy.failure_count = 30;
    EXPECT_FALSE(step_of(fresh_closed(), ended(Verdict::failure, window(5000, 29)), policy).transition);
    expect_trip(fresh_closed(), step_of(fresh_closed(), ended(Verdict::failure, window(5000, 30)), policy),
                Reason::failure_count, 0);
    EXPECT_TRUE(step_of(fresh_closed(), ended(Verdict::tolerate, window(5000, 30)), policy).transition);
    EXPECT_FALSE(step_of(fresh_closed(), ended(Verdict::success, window(5000, 30)), policy).transition);
    policy.failure_count = 3;
    EXPECT_FALSE(step_of(fresh_closed(), ended(Verdict::failure, window(19, 19)), policy).transition);
    EXPECT_TRUE(step_of(fresh_closed(), ended(Verdict::failure, window(20, 3)), policy).transition);
}

TEST(Closed, NamesTheRateBeforeTheCountAndTheCountBeforeTheSlowRate) {
    Policy policy = rate_policy(50);
    policy.failure_count = 10;
    policy.slow_call = {200, 50};
    EXPECT_EQ(evidence({20, 10, 20, 10}, policy), Reason::failure_rate);
    EXPECT_EQ(evidence({40, 10, 40, 20}, policy), Reason::failure_count);
    EXPECT_EQ(evidence({40, 9, 40, 20}, policy), Reason::slow_rate);
}

TEST(Closed, NeverTripsBySlowCallsThatHaveNoRate) {
    Policy policy = numb_policy();
    policy.slow_call = {200, 0};
    EXPECT_EQ(evidence({100, 0, 100, 100}, policy), Reason::none);
}

TEST(Closed, TripsWhenTheSlowRateReachesItsThreshold) {
    const Policy policy = slow_policy(30);
    EXPECT_FALSE(step_of(fresh_closed(), ended_slow(Verdict::success, timed_window(100, 29)), policy).transition);
    expect_trip(fresh_closed(), step_of(fresh_closed(), ended_slow(Verdict::success, timed_window(100, 30)), policy),
                Reason::slow_rate, 0);
}

TEST(Closed, CountsASlowCallInTheSlowRateWhateverItsVerdict) {
    const Policy policy = slow_policy(100);
    for (const Verdict verdict : {Verdict::success, Verdict::failure, Verdict::tolerate, Verdict::ignore}) {
        expect_trip(fresh_closed(), step_of(fresh_closed(), ended_slow(verdict, timed_window(20, 20)), policy),
                    Reason::slow_rate, 0);
    }
}

TEST(Closed, KnowsNoRateThatIsOff) {
    const Policy policy = numb_policy();
    const Sums worst{100'000, 100'000, 100'000, 100'000};
    for (const Verdict verdict : {Verdict::success, Verdict::failure, Verdict::tolerate, Verdict::ignore}) {
        EXPECT_FALSE(step_of(fresh_closed(), ended_slow(verdict, worst), policy).transition);
    }
}

TEST(Closed, WeighsTheLargestWindowsWithoutOverflow) {
    constexpr std::uint32_t kMost = 16 * 65'535;
    EXPECT_FALSE(
        step_of(fresh_closed(), ended(Verdict::failure, window(kMost, kMost - 1)), rate_policy(100)).transition);
    EXPECT_TRUE(step_of(fresh_closed(), ended(Verdict::failure, window(kMost, kMost)), rate_policy(100)).transition);
    constexpr std::uint32_t kWidest = ~0U;
    EXPECT_FALSE(evidence({kWidest, kWidest - 1, 0, 0}, rate_policy(100)) != Reason::none);
    EXPECT_EQ(evidence({kWidest, kWidest, 0, 0}, rate_policy(100)), Reason::failure_rate);
    constexpr std::uint32_t kTurn = (1U << 31) / 50 + 1;  // a hundred times this is more than 32 bits hold
    EXPECT_EQ(evidence({kTurn, kTurn, 0, 0}, rate_policy(50)), Reason::failure_rate);
    EXPECT_EQ(evidence({0, 0, kTurn, kTurn}, slow_policy(50)), Reason::slow_rate);
}

TEST(Evidence, IsNeverFoundInAnEmptyWindow) {
    Policy policy = default_policy();
    policy.slow_call = {200, 1};
    policy.failure_rate = 1;
    policy.minimum_calls = 0;
    EXPECT_EQ(evidence(kNoSums, policy), Reason::none);
    EXPECT_EQ(evidence({50, 0, 50, 0}, policy), Reason::none);
}

// ---- Consecutive failures.

TEST(Closed, TripsAtTheNthFailureInARowAndNotBefore) {
    for (const std::uint32_t limit : {1U, 2U, 5U, 1023U}) {
        Policy policy = numb_policy();
        policy.consecutive_failures = limit;
        Word word = fresh_closed();
        for (std::uint32_t i = 1; i < limit; ++i) {
            const Step step = apply(word, ended(Verdict::failure), policy);
            ASSERT_FALSE(step.transition) << i << " of " << limit;
            ASSERT_EQ(word.consecutive, i);
        }
        const Word before = word;
        expect_trip(before, apply(word, ended(Verdict::failure), policy), Reason::consecutive_failures, 0);
    }
}

TEST(Closed, CountsFailuresInARowOverNeutralResultsButNotOverASuccess) {
    Policy policy = numb_policy();
    policy.consecutive_failures = 3;
    Word word = fresh_closed();
    apply(word, ended(Verdict::failure), policy);
    apply(word, ended(Verdict::failure), policy);
    apply(word, ended(Verdict::ignore), policy);
    EXPECT_EQ(word.consecutive, 2U);
    apply(word, ended(Verdict::success), policy);
    EXPECT_EQ(word.consecutive, 0U);
    apply(word, ended(Verdict::failure), policy);
    apply(word, ended(Verdict::failure), policy);
    EXPECT_EQ(word.state, State::closed);
    apply(word, ended(Verdict::failure), policy);
    EXPECT_EQ(word.state, State::open);
}

TEST(Closed, CountsFailuresInARowNoFurtherThanTheirField) {
    const Policy policy = numb_policy();
    Word word = fresh_closed();
    for (int i = 0; i < 3000; ++i)
        apply(word, ended(Verdict::failure), policy);
    EXPECT_EQ(word.consecutive, kMaxConsecutiveFailures);
    EXPECT_EQ(word.generation, 7U);
}

TEST(Closed, TripsAtTheNextFailureWhenMoreThanANewLimitAreInARowAlready) {
    Policy policy = numb_policy();
    Word word = fresh_closed();
    for (int i = 0; i < 9; ++i)
        apply(word, ended(Verdict::failure), policy);
    policy.consecutive_failures = 5;
    EXPECT_EQ(apply(word, ended(Verdict::failure), policy).reason, Reason::consecutive_failures);
}

// ---- Verdicts.

TEST(Closed, TripsAtOnceOnAFatalOutcomeThoughEveryLimitIsOff) {
    expect_trip(fresh_closed(), step_of(fresh_closed(), ended(Verdict::fatal), numb_policy()), Reason::fatal, 0);
}

TEST(Closed, TakesATolerateForAFailure) {
    Policy policy = numb_policy();
    policy.consecutive_failures = 1;
    EXPECT_EQ(step_of(fresh_closed(), ended(Verdict::tolerate), policy).reason, Reason::consecutive_failures);
    EXPECT_EQ(step_of(fresh_closed(), ended(Verdict::tolerate, window(20, 10)), rate_policy(50)).reason,
              Reason::failure_rate);
}

TEST(Closed, NeverTripsOnASuccessNorOnANeutralResult) {
    Policy policy = default_policy();
    policy.slow_call = {200, 1};
    policy.consecutive_failures = 1;
    policy.failure_rate = 1;
    const Sums worst{1000, 1000, 1000, 1000};
    Word word = fresh_closed();
    word.consecutive = 900;
    for (const Verdict verdict : {Verdict::success, Verdict::ignore}) {
        const Step step = step_of(word, ended(verdict, worst), policy);
        EXPECT_FALSE(step.transition);
        EXPECT_EQ(step.decision, Decision::counted);
        EXPECT_EQ(state_of(step.word), State::closed);
        EXPECT_EQ(generation_of(step.word), 7U);
    }
}

TEST(Closed, WritesNothingOnASuccessWhenItIsQuiet) {
    const Step step = step_of(fresh_closed(), ended(Verdict::success), default_policy());
    EXPECT_EQ(step.word, pack(fresh_closed()));
}

// ---- Late results.

TEST(Closed, IgnoresAResultOfAnotherGeneration) {
    for (const std::uint32_t generation : {0U, 6U, 8U, kGenerationMask}) {
        for (const Verdict verdict : kAllVerdicts) {
            Event event = ended(verdict, window(100, 100));
            event.generation = generation;
            expect_unchanged(sample(State::closed), step_of(sample(State::closed), event, default_policy()),
                             Decision::ignored);
        }
    }
}

TEST(Closed, IgnoresAResultWhosePermitIsTooOldThoughTheGenerationHasComeRoundToIt) {
    Event event = ended(Verdict::fatal, window(100, 100));
    event.late = true;
    expect_unchanged(sample(State::closed), step_of(sample(State::closed), event, default_policy()), Decision::ignored);
}

TEST(Closed, TripsIntoGenerationZeroAfterTheLast) {
    Event event = ended(Verdict::fatal);
    event.generation = kGenerationMask;
    expect_trip(fresh_closed(kGenerationMask), step_of(fresh_closed(kGenerationMask), event, default_policy()),
                Reason::fatal, 0);
}

TEST(Closed, HasNothingToSettleAndNoOpenTimeToEnd) {
    expect_unchanged(sample(State::closed),
                     step_of(sample(State::closed), probe_ended(0, Verdict::fatal), numb_policy()), Decision::ignored);
    expect_unchanged(sample(State::closed),
                     step_of(sample(State::closed), of_kind(EventKind::end_open_time), numb_policy()),
                     Decision::ignored);
}

// ---- The level.

Word closed_after_a_trip(std::uint32_t successes) {
    Word word = fresh_closed();
    word.level = 3;
    word.tripped = true;
    word.successes_since_closing = successes;
    return word;
}

TEST(Level, IsRaisedByATripBeforeTheMinimumOfSuccessesSinceClosing) {
    for (const std::uint32_t successes : {0U, 1U, 19U}) {
        const Word word = closed_after_a_trip(successes);
        expect_trip(word, step_of(word, ended(Verdict::fatal), default_policy()), Reason::fatal, 4);
    }
}

TEST(Level, FallsToZeroWithTheMinimumOfSuccessesAndNotOneEarlier) {
    const Policy policy = default_policy();
    Word word = closed_after_a_trip(0);
    for (std::uint32_t i = 1; i < policy.minimum_calls; ++i) {
        apply(word, ended(Verdict::success), policy);
        ASSERT_EQ(word, closed_after_a_trip(i));
    }
    apply(word, ended(Verdict::success), policy);
    EXPECT_EQ(word, fresh_closed());
    EXPECT_TRUE(is_quiet(pack(word)));
    expect_trip(word, step_of(word, ended(Verdict::fatal), policy), Reason::fatal, 0);
}

TEST(Level, DoesNotFallByTimeNorByAnythingButSuccesses) {
    Policy policy = numb_policy();
    Word word = closed_after_a_trip(19);
    for (int i = 0; i < 100; ++i) {
        apply(word, asks(), policy, kNow + 40 * kDay);
        apply(word, ended(Verdict::failure), policy, kNow + 40 * kDay);
        apply(word, ended(Verdict::tolerate), policy, kNow + 40 * kDay);
        apply(word, ended(Verdict::ignore), policy, kNow + 40 * kDay);
    }
    EXPECT_EQ(word.level, 3U);
    EXPECT_EQ(word.successes_since_closing, 19U);
    EXPECT_EQ(unpack(step_of(word, ended(Verdict::fatal), policy).word).level, 4U);
}

TEST(Level, IsNotRaisedWhereTheSuccessesAreEnoughForTheMinimumOfANewPolicy) {
    Policy policy = default_policy();
    policy.minimum_calls = 10;
    expect_trip(closed_after_a_trip(9), step_of(closed_after_a_trip(9), ended(Verdict::fatal), policy), Reason::fatal,
                4);
    expect_trip(closed_after_a_trip(10), step_of(closed_after_a_trip(10), ended(Verdict::fatal), policy), Reason::fatal,
                0);
}

TEST(Level, IsNeverRaisedAboveItsField) {
    Word word = closed_after_a_trip(0);
    word.level = kMaxLevel;
    expect_trip(word, step_of(word, ended(Verdict::fatal), default_policy()), Reason::fatal, kMaxLevel);
}

TEST(Level, CountsSuccessesSinceClosingNoFurtherThanTheirField) {
    Policy policy = default_policy();
    policy.minimum_calls = kMaxSuccessesSinceClosing + 2;  // beyond what the directive takes
    Word word = closed_after_a_trip(kMaxSuccessesSinceClosing - 1);
    for (int i = 0; i < 3; ++i)
        apply(word, ended(Verdict::success), policy);
    EXPECT_EQ(word, closed_after_a_trip(kMaxSuccessesSinceClosing));
}

}  // namespace
}  // namespace cb::test
