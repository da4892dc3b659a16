// Count windows: exactly the last N calls of the present generation, and the passage from one kind of window to
// another.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "executors.hpp"
#include "shm/window.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::Sums;
using core::Window;
using shm::Sample;

constexpr std::uint32_t kOfACell = 16;
constexpr std::uint32_t kCells = 256;

struct Area {
    explicit Area(std::uint32_t calls) : window{0, calls} {}
    bool record(bool failure, bool slow = false, std::uint32_t generation = 0) {
        return shm::record(words, window, generation, 0, {failure, true, slow});
    }
    [[nodiscard]] Sums sum(std::uint32_t generation = 0) const { return shm::sum(words, window, generation, 0); }

    Window window;
    shm::Atomic64 words[shm::kWindowWords]{};
};

/// The last calls of one generation, kept the simple way.
struct Model {
    explicit Model(std::size_t calls) : size(calls) {}
    void record(bool failure, bool slow) {
        calls.push_back({failure, slow});
        if (calls.size() > size) calls.pop_front();
    }
    [[nodiscard]] std::uint32_t failures(std::size_t last) const {
        return static_cast<std::uint32_t>(
            std::count_if(calls.end() - static_cast<long>(last), calls.end(), [](auto& one) { return one.first; }));
    }
    [[nodiscard]] std::uint32_t slow(std::size_t last) const {
        return static_cast<std::uint32_t>(
            std::count_if(calls.end() - static_cast<long>(last), calls.end(), [](auto& one) { return one.second; }));
    }
    std::size_t size;
    std::deque<std::pair<bool, bool>> calls;
};

class CountWindow : public testing::TestWithParam<std::uint32_t> {};

TEST_P(CountWindow, HoldsExactlyTheLastCalls) {
    const std::uint32_t size = GetParam();
    Area area(size);
    Model model(size);
    Random random(size);
    const std::uint32_t calls = std::max(3 * size, 3 * kOfACell * kCells);
    for (std::uint32_t n = 0; n < calls; ++n) {
        const bool failure = random.below(3) == 0;
        const bool slow = random.below(5) == 0;
        ASSERT_TRUE(area.record(failure, slow));
        model.record(failure, slow);
        if (size > 100 && n % 7 != 0 && n + 40 < calls) continue;  // the sums are what takes the time
        const Sums sums = area.sum();
        ASSERT_EQ(sums.calls, model.calls.size()) << n;
        ASSERT_EQ(sums.failures, model.failures(sums.calls)) << n;
        ASSERT_EQ(sums.timed_calls, sums.calls) << n;
        ASSERT_EQ(sums.slow_calls, model.slow(sums.calls)) << n;
    }
}

TEST_P(CountWindow, BeginsEmptyInEveryGeneration) {
    const std::uint32_t size = GetParam();
    Area area(size);
    Random random(size);
    for (std::uint32_t generation = 0; generation < 40; ++generation) {
        Model model(size);
        EXPECT_EQ(area.sum(generation).calls, 0U) << generation;
        const std::uint32_t calls = 1 + random.below(3 * size);
        for (std::uint32_t n = 0; n < calls; ++n) {
            const bool failure = random.below(2) == 0;
            ASSERT_TRUE(area.record(failure, false, generation));
            model.record(failure, false);
        }
        ASSERT_EQ(area.sum(generation).calls, model.calls.size()) << generation;
        ASSERT_EQ(area.sum(generation).failures, model.failures(model.calls.size())) << generation;
        ASSERT_EQ(area.sum(generation - 1).calls, 0U) << generation;
    }
}

INSTANTIATE_TEST_SUITE_P(Of, CountWindow, testing::Values(1U, 2U, 15U, 16U, 17U, 31U, 32U, 33U, 100U, 4079U, 4080U));

TEST(CountWindowOf4096, HoldsAtLeast4081AndWhatItHoldsIsExact) {
    Area area(4096);
    Model model(4096);
    Random random(4096);
    for (std::uint32_t n = 0; n < 20'000; ++n) {
        const bool failure = random.below(3) == 0;
        area.record(failure);
        model.record(failure, false);
        const Sums sums = area.sum();
        ASSERT_GE(sums.calls, std::min<std::uint32_t>(n + 1, 4081)) << n;
        ASSERT_LE(sums.calls, 4096U) << n;
        ASSERT_EQ(sums.failures, model.failures(sums.calls)) << n;
    }
}

TEST(CountWindowOf100, HoldsItsCallsWhileTheNextCellIsBegun) {
    Area area(100);
    for (std::uint32_t n = 0; n < kOfACell; ++n)
        area.record(true);
    const Between between("window.cell", [&] { EXPECT_EQ(area.sum().failures, kOfACell); });
    area.record(true);
    EXPECT_TRUE(between.has_happened());
    EXPECT_EQ(area.sum().failures, kOfACell + 1);
}

TEST(CountWindowOfGenerationZero, BeginsWithTheFirstCellOfUntouchedMemory) {
    Area area(100);
    EXPECT_EQ(area.sum().calls, 0U);
    area.record(false);
    EXPECT_EQ(area.sum().calls, 1U) << "a success leaves no outcome bit; it must not read as an untouched cell";
    EXPECT_EQ(area.sum().failures, 0U);
    area.record(true);
    EXPECT_EQ(area.sum().calls, 2U);
    EXPECT_EQ(area.sum().failures, 1U);
}

TEST(CountWindowOfGenerationZero, GoesRoundItsCellsWithoutCountingAnythingTwice) {
    Area area(4080);
    for (std::uint32_t n = 0; n < 5 * kOfACell * kCells; ++n) {
        area.record(n % 2 == 0);
        if (n > 4080 && n % 5 == 0) {
            ASSERT_EQ(area.sum().calls, 4080U) << n;
            ASSERT_EQ(area.sum().failures, 2040U) << n;
        }
    }
}

// Laps have 8 bits and repeat after 255 times round: a million calls without a change of state.
TEST(CountWindowOfOneLongGeneration, GoesOnWhereItsLapsRepeat) {
    Area area(200);
    Model model(200);
    Random random(1);
    constexpr std::uint32_t kRepeats = 255 * kCells * kOfACell;
    for (std::uint32_t n = 0; n < 2 * kRepeats + 10'000; ++n) {
        const bool failure = random.below(2) == 0;
        ASSERT_TRUE(area.record(failure));
        model.record(failure, false);
        const bool is_near = n % kRepeats < 300 || n % kRepeats > kRepeats - 300;
        if (!is_near && n % 1000 != 0) continue;
        const Sums sums = area.sum();
        ASSERT_EQ(sums.calls, model.calls.size()) << n;
        ASSERT_EQ(sums.failures, model.failures(sums.calls)) << n;
    }
}

TEST(CountWindowAtAChangeOfGeneration, DropsALateWriterOfTheOldOne) {
    Area area(100);
    area.record(true, false, 7);
    area.record(false, false, 8);
    for (const std::uint32_t late : {7U, 6U, 0U})
        EXPECT_FALSE(area.record(true, false, late)) << late;
    EXPECT_EQ(area.sum(8).calls, 1U);
    EXPECT_EQ(area.sum(8).failures, 0U);
    EXPECT_EQ(area.sum(7).calls, 0U);
}

TEST(CountWindowAtAChangeOfGeneration, KeepsALateWriterOutOfTheSumsAlsoBeforeTheNewOneHasBegun) {
    Area area(100);
    area.record(true, false, 7);
    area.record(true, false, 7);  // the breaker is at 8 already, nobody has recorded there
    EXPECT_EQ(area.sum(8).calls, 0U);
    area.record(false, false, 8);
    EXPECT_EQ(area.sum(8).calls, 1U);
    EXPECT_EQ(area.sum(8).failures, 0U);
}

TEST(CountWindowAtAChangeOfGeneration, IsNotTakenBackByAWriterOfTheOldOneThatWasOvertaken) {
    for (const char* place : {"window.full", "window.cell", "window.head"}) {
        Area area(100);
        const std::uint32_t before = std::string(place) == "window.full" ? 16 : 15;
        for (std::uint32_t n = 0; n < before; ++n)
            area.record(true, false, 7);
        const Between between(place, [&] { area.record(false, false, 9); });
        area.record(true, false, std::string(place) == "window.head" ? 8 : 7);
        ASSERT_TRUE(between.has_happened()) << place;
        EXPECT_EQ(area.sum(9).calls, 1U) << place;
        EXPECT_EQ(area.sum(9).failures, 0U) << place;
        area.record(true, false, 9);
        EXPECT_EQ(area.sum(9).calls, 2U) << place;
    }
}

TEST(CountWindowAtAChangeOfGeneration, GoesOnWhereTheGenerationWraps) {
    Area area(100);
    for (std::uint32_t n = core::kGenerationMask - 100; n != core::kGenerationMask + 100; ++n) {
        const std::uint32_t generation = n & core::kGenerationMask;
        for (std::uint32_t i = 0; i < 20; ++i) {
            ASSERT_TRUE(area.record(true, false, generation)) << generation;
            ASSERT_EQ(area.sum(generation).calls, i + 1) << generation;
        }
        ASSERT_FALSE(area.record(true, false, (n - 1) & core::kGenerationMask)) << generation;
    }
}

TEST(CountWindowAtAChangeOfGeneration, BeginsInAnyGenerationOnUntouchedMemory) {
    for (std::uint32_t n = 0; n < 400; ++n) {
        const std::uint32_t generation = (core::kGenerationMask - 200 + n) & core::kGenerationMask;
        Area area(100);
        ASSERT_TRUE(area.record(true, false, generation)) << generation;
        ASSERT_EQ(area.sum(generation).calls, 1U) << generation;
    }
}

// Every generation but the last leaves a cell that is partly full.
TEST(CountWindowAtAChangeOfGeneration, IsNotDisturbedByTheCellsOfManyShortGenerations) {
    Area area(4080);
    Random random(3);
    for (std::uint32_t generation = 0; generation < 5000; ++generation) {
        const std::uint32_t calls = 1 + random.below(40);
        for (std::uint32_t n = 0; n < calls; ++n)
            ASSERT_TRUE(area.record(true, false, generation));
        ASSERT_EQ(area.sum(generation).calls, calls) << generation;
    }
}

// --- another kind of window at a restart ---

constexpr Window kTime{10'000, 0};
constexpr Window kCount{0, 4080};

core::Policy of(const Window& window) {
    core::Policy policy = untrippable();
    policy.window = window;
    policy.minimum_calls = 1;
    return policy;
}

TEST(AChangedShape, BeginsANewGenerationAndAnEmptyWindow) {
    World world;
    const core::Policy before = of(kTime);
    const core::Policy after = of(kCount);
    shm::Slot& slot = world.add("http://a", before);
    call(slot, before, world.parent(), kBad);
    shm::configure(slot, after, world.parent());
    EXPECT_EQ(word_of(slot).generation, 2U);
    EXPECT_EQ(shm::numbered_word(slot).number, 0U) << "it is no change that has a number";
    EXPECT_EQ(shm::sums_now(slot, after, world.parent()).calls, 0U);
    call(slot, after, world.parent(), kGood);
    EXPECT_EQ(shm::sums_now(slot, after, world.parent()).calls, 1U);
    EXPECT_EQ(shm::sums_now(slot, after, world.parent()).failures, 0U);
}

TEST(AChangedShape, LeavesEverythingAloneWhenItIsTheSame) {
    World world;
    const core::Policy same = of(kTime);
    shm::Slot& slot = world.add("http://a", same);
    call(slot, same, world.parent(), kBad);
    shm::configure(slot, same, world.parent());
    EXPECT_EQ(word_of(slot).generation, 0U);
    EXPECT_EQ(shm::sums_now(slot, same, world.parent()).calls, 1U);
}

TEST(AChangedShape, LeavesAnOldChildToFeedTheTotalsOnly) {
    World world;
    const core::Policy old_policy = of(kTime);
    const core::Policy new_policy = of(kCount);
    shm::Slot& slot = world.add("http://a", old_policy);
    shm::Admission before = ask(slot, old_policy, world.process(7));
    shm::configure(slot, new_policy, world.parent());
    shm::Admission after = ask(slot, old_policy, world.process(7));
    shm::finish(slot, old_policy, world.process(7), before.permit, kFatal, {});
    shm::finish(slot, old_policy, world.process(7), after.permit, kFatal, {});
    EXPECT_EQ(state_of(slot), core::State::closed);
    EXPECT_EQ(shm::sums_now(slot, new_policy, world.parent()).calls, 0U);
    EXPECT_EQ(slot.totals.calls.load(), 2U);
    EXPECT_EQ(slot.totals.late.load(), 2U);
}

/// Calls under `before` over a day and more, then a restart with `after`: nothing of the old memory may be counted.
void expect_nothing_carried_over(const Window& before, const Window& after, std::uint32_t generation) {
    for (core::Millis hours = 0; hours < 40; hours += 6) {
        World world;
        world.board.now = hours * 3'600'000;
        const core::Policy old_policy = of(before);
        const core::Policy new_policy = of(after);
        shm::Slot& slot = world.add("http://a", old_policy);
        core::Word word;
        word.generation = generation;
        slot.word = core::pack(word);
        for (int n = 0; n < 4096; ++n) {  // all cells, or all buckets many times over
            if (before.calls == 0) world.pass(100);
            call(slot, old_policy, world.parent(), kBad);
        }
        shm::configure(slot, new_policy, world.parent());
        for (int n = 1; n <= 300; ++n) {
            world.pass(100);
            call(slot, new_policy, world.parent(), kGood);
            const Sums sums = shm::sums_now(slot, new_policy, world.parent());
            ASSERT_EQ(sums.failures, 0U) << "after " << hours << " hours, call " << n;
            ASSERT_LE(sums.calls, static_cast<std::uint32_t>(n)) << "after " << hours << " hours";
        }
    }
}

TEST(AChangedShape, FromTimeToCountReadsNoBucketAsACell) {
    for (const std::uint32_t generation : {0U, 255U, 256U, 0xFFFFU}) {
        expect_nothing_carried_over(kTime, kCount, generation);
    }
}

TEST(AChangedShape, FromCountToTimeReadsNoCellAsABucket) {
    for (const std::uint32_t generation : {0U, 255U, 256U, 0xFFFFU}) {
        expect_nothing_carried_over(kCount, kTime, generation);
    }
}

// A bucket of generation 0 in the 23rd hour has the bits of a cell of generation 2, the next one; made on purpose here.
TEST(AChangedShape, ForgetsEvenABucketThatHasTheBitsOfANewCell) {
    World world;
    const core::Policy old_policy = of(kTime);
    const core::Policy new_policy = of(kCount);
    shm::Slot& slot = world.add("http://a", old_policy);
    const core::Millis lap = 10'000;
    // generation:12 = 0, lap:20 = 0x0201F: cell generation 2, lap 1, full
    world.board.now = (2 * 4096 + 16 + 15) * lap;
    for (int n = 0; n < 16; ++n) {
        for (int i = 0; i < 1000; ++i)
            call(slot, old_policy, world.parent(), kBad);
        world.pass(625);
    }
    shm::configure(slot, new_policy, world.parent());
    ASSERT_EQ(word_of(slot).generation, 2U);
    call(slot, new_policy, world.parent(), kGood);
    const Sums sums = shm::sums_now(slot, new_policy, world.parent());
    EXPECT_EQ(sums.calls, 1U);
    EXPECT_EQ(sums.failures, 0U);
}

TEST(AChangedShape, OfOneSpanIntoAnotherCountsNothingOfTheOldBuckets) {
    World world;
    core::Policy narrow = of({1000, 0});
    core::Policy wide = of({60'000, 0});
    shm::Slot& slot = world.add("http://a", narrow);
    for (int n = 0; n < 100; ++n) {
        world.pass(50);
        call(slot, narrow, world.parent(), kBad);
    }
    shm::configure(slot, wide, world.parent());
    EXPECT_EQ(shm::sums_now(slot, wide, world.parent()).calls, 0U);
    call(slot, wide, world.parent(), kGood);
    EXPECT_EQ(shm::sums_now(slot, wide, world.parent()).calls, 1U);
}

}  // namespace
}  // namespace cb::test
