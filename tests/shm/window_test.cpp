// Time windows: which calls they hold, and for how long.
#include "shm/window.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "executors.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::Millis;
using core::Sums;
using core::Window;
using shm::Sample;

constexpr Sample kSuccess{false, false, false};
constexpr Sample kFailure{true, false, false};
constexpr Millis kSecond = 1000;
constexpr Millis kHour = 3600 * kSecond;
constexpr std::uint64_t kLapsOfATag = 1U << 20U;

/// A window's memory and what it is a window of.
struct Area {
    explicit Area(Millis span) : window{span, 0}, width(shm::bucket_width(window)) {}
    bool record(Millis now, Sample sample = kFailure, std::uint32_t generation = 0) {
        return shm::record(words, window, generation, now, sample);
    }
    [[nodiscard]] Sums sum(Millis now, std::uint32_t generation = 0) const {
        return shm::sum(words, window, generation, now);
    }
    [[nodiscard]] Millis lap() const { return 16 * width; }

    Window window;
    Millis width;
    shm::Atomic64 words[shm::kWindowWords]{};
};

TEST(TimeWindow, IsEmptyAtFirst) {
    const Area area(10 * kSecond);
    for (const Millis now : {Millis{0}, Millis{1}, 10 * kSecond, 30 * core::kDay}) {
        EXPECT_EQ(area.sum(now).calls, 0U);
        EXPECT_EQ(area.sum(now).timed_calls, 0U);
    }
}

TEST(TimeWindow, CountsCallsFailuresAndSlowCallsApart) {
    Area area(10 * kSecond);
    area.record(0, {false, false, false});
    area.record(1, {true, false, false});
    area.record(2, {true, true, false});
    area.record(3, {false, true, true});
    area.record(4, {true, true, true});
    const Sums sums = area.sum(5);
    EXPECT_EQ(sums.calls, 5U);
    EXPECT_EQ(sums.failures, 3U);
    EXPECT_EQ(sums.timed_calls, 3U);
    EXPECT_EQ(sums.slow_calls, 2U);
}

TEST(TimeWindow, HasSixteenBucketsOrFewerThanThatOfAtLeast100Ms) {
    EXPECT_EQ(shm::bucket_width({1000, 0}), 100U);
    EXPECT_EQ(shm::bucket_width({1600, 0}), 100U);
    EXPECT_EQ(shm::bucket_width({1601, 0}), 101U);
    EXPECT_EQ(shm::bucket_width({10'000, 0}), 625U);
    EXPECT_EQ(shm::bucket_width({core::kDay, 0}), core::kDay / 16);
}

// A call stays for the span, less at most a bucket at its end.
TEST(TimeWindow, HoldsACallUntilItsBucketIsOlderThanTheSpan) {
    for (const Millis span : {Millis{1000}, Millis{1050}, Millis{1599}, Millis{1600}, Millis{1700}, 10 * kSecond,
                              60 * kSecond, core::kDay}) {
        for (const Millis start : {Millis{0}, Millis{1}, 12'345 * kSecond, 40 * core::kDay + 77}) {
            Area area(span);
            area.record(start);
            const Millis leaves = (start / area.width + (span + area.width - 1) / area.width) * area.width;
            EXPECT_EQ(area.sum(leaves - 1, 0).calls, 1U) << span << " from " << start;
            EXPECT_EQ(area.sum(leaves, 0).calls, 0U) << span << " from " << start;
            EXPECT_GT(leaves - start, span - area.width);
            EXPECT_LT(leaves - start, span + area.width);
        }
    }
}

TEST(TimeWindow, DropsItsBucketsOneByOne) {
    Area area(10 * kSecond);
    for (Millis n = 0; n < 16; ++n)
        area.record(n * area.width);
    for (Millis n = 0; n < 16; ++n) {
        const Millis now = 15 * area.width + n * area.width;
        EXPECT_EQ(area.sum(now).calls, 16 - n) << n;
        EXPECT_EQ(area.sum(now + area.width - 1).calls, 16 - n) << n;
    }
    EXPECT_EQ(area.sum(31 * area.width).calls, 0U);
}

TEST(TimeWindow, DoesNotCountWhatAnotherProcessHasWrittenInTheFutureOfThisOnesClock) {
    Area area(10 * kSecond);
    area.record(10 * area.width);
    EXPECT_EQ(area.sum(10 * area.width - 1).calls, 0U);
    EXPECT_EQ(area.sum(10 * area.width).calls, 1U);
}

TEST(TimeWindow, OfShortSpanIgnoresTheBucketsItDoesNotNeed) {
    Area area(1000);  // ten of the sixteen
    for (Millis n = 0; n < 160; ++n) {
        area.record(n * 100);
        EXPECT_EQ(area.sum(n * 100).calls, std::min<Millis>(n + 1, 10)) << n;
    }
}

TEST(TimeWindow, OfAnotherGenerationIsEmpty) {
    Area area(10 * kSecond);
    area.record(0, kFailure, 7);
    EXPECT_EQ(area.sum(0, 7).calls, 1U);
    EXPECT_EQ(area.sum(0, 6).calls, 0U);
    EXPECT_EQ(area.sum(0, 8).calls, 0U);
    EXPECT_EQ(area.sum(0, 0).calls, 0U);
}

TEST(TimeWindow, GivesABucketToTheNewerGeneration) {
    Area area(10 * kSecond);
    area.record(0, kFailure, 7);
    EXPECT_TRUE(area.record(1, kFailure, 8));
    EXPECT_EQ(area.sum(1, 7).calls, 0U);
    EXPECT_EQ(area.sum(1, 8).calls, 1U);
}

TEST(TimeWindow, DropsALateWriterOfAnOlderGeneration) {
    Area area(10 * kSecond);
    area.record(0, kFailure, 8);
    for (const std::uint32_t late : {7U, 6U, 1U})
        EXPECT_FALSE(area.record(1, kFailure, late));
    EXPECT_EQ(area.sum(1, 8).calls, 1U);
    EXPECT_EQ(area.sum(1, 7).calls, 0U);
}

TEST(TimeWindow, GenerationsGoOnWhereTheirTagWraps) {
    Area area(10 * kSecond);
    for (std::uint32_t generation = 4000; generation < 4200; ++generation) {
        EXPECT_TRUE(area.record(0, kFailure, generation)) << generation;
        EXPECT_EQ(area.sum(0, generation).calls, 1U) << generation;
        EXPECT_FALSE(area.record(0, kFailure, generation - 1)) << generation;
    }
    for (std::uint32_t generation = core::kGenerationMask - 1; generation != 2;) {
        const std::uint32_t next = (generation + 1) & core::kGenerationMask;
        area.record(0, kFailure, generation);
        EXPECT_TRUE(area.record(0, kFailure, next)) << next;
        EXPECT_EQ(area.sum(0, next).calls, 1U) << next;
        generation = next;
    }
}

// An untouched bucket reads as generation 0, lap 0; that must not make it newer than what is written now.
TEST(TimeWindow, TakesAnUntouchedBucketForNothingElse) {
    for (std::uint32_t generation = 0; generation < 4097; ++generation) {
        Area area(10 * kSecond);
        ASSERT_TRUE(area.record(0, kFailure, generation)) << generation;
        ASSERT_EQ(area.sum(0, generation).calls, 1U) << generation;
    }
    for (std::uint64_t lap = kLapsOfATag - 1100; lap <= kLapsOfATag; ++lap) {
        Area fresh(10 * kSecond);
        ASSERT_TRUE(fresh.record(lap * fresh.lap())) << lap;
    }
}

TEST(TimeWindow, DropsAWriterThatComesAfterItsBucketWentToALaterLap) {
    Area area(10 * kSecond);
    area.record(area.lap() + 5, kSuccess);
    EXPECT_FALSE(area.record(5));
    EXPECT_FALSE(area.record(area.width - 1));
    EXPECT_TRUE(area.record(area.width)) << "the next bucket has not been used yet";
    EXPECT_EQ(area.sum(area.lap() + 5).calls, 2U) << "that next bucket is still within the window";
    EXPECT_EQ(area.sum(area.lap() + area.width + 5).calls, 1U);
    EXPECT_EQ(area.sum(area.lap() + 5).failures, 1U);
}

TEST(TimeWindow, DropsAWriterThatComesManyLapsLate) {
    for (Millis laps = 1; laps < 16; ++laps) {
        Area area(1000);
        area.record((100 + laps) * area.lap(), kSuccess);
        EXPECT_FALSE(area.record(100 * area.lap())) << laps;
        EXPECT_EQ(area.sum((100 + laps) * area.lap()).calls, 1U) << laps;
    }
}

TEST(TimeWindow, HalvesABucketThatIsFullAndKeepsItsRate) {
    Area area(10 * kSecond);
    for (int n = 0; n < 65'535; ++n)
        area.record(0, n % 4 == 0 ? kFailure : kSuccess);
    EXPECT_EQ(area.sum(0).calls, 65'535U) << "up to here it is exact";
    for (int n = 0; n < 400'000; ++n) {
        area.record(0, n % 4 == 0 ? Sample{true, true, false} : Sample{false, true, n % 4 == 1});
        const Sums sums = area.sum(0);
        ASSERT_GE(sums.calls, std::min(n, 32'767)) << n;
        ASSERT_NEAR(static_cast<double>(sums.failures) / sums.calls, 0.25, 0.001) << n;
    }
    EXPECT_NEAR(static_cast<double>(area.sum(0).slow_calls) / area.sum(0).timed_calls, 0.25, 0.001);
}

TEST(TimeWindow, OfAllFailuresStaysAllFailuresWhenItIsHalved) {
    Area area(10 * kSecond);
    for (int n = 0; n < 200'000; ++n) {
        area.record(0);
        ASSERT_EQ(area.sum(0).failures, area.sum(0).calls) << n;
    }
}

TEST(TimeWindow, GoesOnWhereItsLapsWrap) {
    Area area(1000);
    const Millis wrap = kLapsOfATag * area.lap();
    std::deque<Millis> model;
    for (Millis now = wrap - 3 * area.lap(); now < wrap + 3 * area.lap(); now += 37) {
        ASSERT_TRUE(area.record(now)) << now;
        model.push_back(now);
        while (model.front() / area.width + 10 <= now / area.width)
            model.pop_front();
        ASSERT_EQ(area.sum(now).calls, model.size()) << now;
    }
}

// After an idle night of any length the window holds nothing of the day before.
TEST(TimeWindow, DoesNotRememberYesterday) {
    Random random(15);
    for (int n = 0; n < 20'000; ++n) {
        Area area(n % 2 == 0 ? 1000 : 10'000);
        const Millis start = random() % core::kDay;
        for (Millis back = 0; back < area.lap(); back += area.width)
            area.record(start + back);
        const Millis idle = 2 * area.lap() + random() % (400 * core::kDay);
        // The tag repeats after 2^20 laps (19 days of a window of a second, 121 of one of ten): in that one lap
        // yesterday is taken for today. All other nights are forgotten.
        if ((idle / area.lap() + 1) % kLapsOfATag <= 2) continue;
        ASSERT_EQ(area.sum(start + idle).calls, 0U) << "after " << idle << " ms";
    }
}

// What stands there from before the tag wrapped looks newer than today; it may not keep today out for long.
TEST(TimeWindow, CountsAgainAfterAnyNight) {
    for (const Millis span : {Millis{1000}, 10 * kSecond}) {
        for (std::uint64_t before_wrap = 17; before_wrap < 3000; ++before_wrap) {
            Area area(span);
            area.record(5 * area.lap());
            const Millis now = (5 + kLapsOfATag - before_wrap) * area.lap();
            ASSERT_TRUE(area.record(now)) << before_wrap << " laps before the tag repeats";
            ASSERT_EQ(area.sum(now).calls, 1U);
        }
    }
}

TEST(TimeWindow, AgreesWithASimpleModelWhateverComes) {
    for (const Millis span : {Millis{1000}, Millis{1234}, 10 * kSecond, 5 * kHour}) {
        Random random(span);
        Area area(span);
        const std::uint64_t buckets = (span + area.width - 1) / area.width;
        struct Entry {
            std::uint64_t tick;
            Sample sample;
        };
        std::deque<Entry> model;
        std::uint32_t generation = 0;
        Millis now = random() % kHour;
        for (int n = 0; n < 30'000; ++n) {
            now += random.below(4) == 0 ? random() % (span / 4) : random() % (span / 500 + 1);
            if (random.below(300) == 0) now += random() % (3 * span);
            if (random.below(500) == 0) {
                generation = (generation + 1) & core::kGenerationMask;
                model.clear();
            }
            const Sample sample{random.below(3) == 0, random.below(2) == 0, random.below(5) == 0};
            ASSERT_TRUE(area.record(now, sample, generation));
            model.push_back({now / area.width, sample});
            while (model.front().tick + buckets <= now / area.width)
                model.pop_front();
            Sums wanted;
            for (const Entry& entry : model) {
                ++wanted.calls;
                wanted.failures += entry.sample.failure ? 1 : 0;
                wanted.timed_calls += entry.sample.timed ? 1 : 0;
                wanted.slow_calls += entry.sample.timed && entry.sample.slow ? 1 : 0;
            }
            const Sums sums = area.sum(now, generation);
            ASSERT_EQ(sums.calls, wanted.calls) << n;
            ASSERT_EQ(sums.failures, wanted.failures) << n;
            ASSERT_EQ(sums.timed_calls, wanted.timed_calls) << n;
            ASSERT_EQ(sums.slow_calls, wanted.slow_calls) << n;
        }
    }
}

// Hours of steady traffic: one call in twenty fails, never five in a row, never half of a window.
TEST(TimeWindow, DoesNotPileUpRareFailuresOverHours) {
    World world;
    core::Policy steady = policy();
    steady.minimum_calls = 20;
    steady.failure_rate = 30;
    shm::Slot& slot = world.add("http://a", steady);
    Random random(14);
    std::deque<std::pair<Millis, bool>> model;
    std::uint64_t last_failure = 0;
    for (std::uint64_t n = 1; world.board.now < kStart + 8 * kHour; ++n) {
        world.pass(20 + random.below(160));
        const bool fails = random.below(20) == 0 && n - last_failure > 5;
        if (fails) last_failure = n;
        ASSERT_TRUE(call(slot, steady, world.parent(), fails ? kBad : kGood)) << "tripped after " << n << " calls";
        const Millis now = world.board.now;
        model.emplace_back(now, fails);
        while (model.front().first / 625 + 16 <= now / 625)
            model.pop_front();
        const Sums sums = shm::sums_now(slot, steady, world.parent());
        ASSERT_EQ(sums.calls, model.size());
        ASSERT_EQ(sums.failures, std::count_if(model.begin(), model.end(), [](auto& one) { return one.second; }));
    }
    EXPECT_EQ(core::generation_of(slot.word), 0U);
}

// An idle night, through the verbs of a member.
TEST(TimeWindow, AfterAnIdleNightOneFailureDoesNotTrip) {
    World world;
    core::Policy evening = policy();
    evening.consecutive_failures = 0;
    shm::Slot& slot = world.add("http://a", evening);
    for (const Millis night : {10 * kHour, 3 * core::kDay, 5 * 7 * core::kDay, 52 * 7 * core::kDay}) {
        for (int n = 0; n < 3; ++n)
            ASSERT_TRUE(call(slot, evening, world.parent(), kBad)) << "below the minimum";
        world.pass(night);
        ASSERT_TRUE(call(slot, evening, world.parent(), kBad));
        EXPECT_EQ(state_of(slot), core::State::closed) << "after " << night;
        EXPECT_EQ(shm::sums_now(slot, evening, world.parent()).calls, 1U);
        world.pass(kHour);
    }
}

}  // namespace
}  // namespace cb::test
