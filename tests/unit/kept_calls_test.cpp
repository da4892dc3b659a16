// When `stale` on kept connections is the rule, and when that is over.
#include "core/kept_calls.hpp"

#include <gtest/gtest.h>

namespace cb::test {
namespace {

using core::KeptCalls;
using core::Millis;

class KeptCallsTest : public testing::Test {
  protected:
    /// How often it was to be said.
    unsigned make(unsigned calls, bool is_stale) {
        unsigned said = 0;
        for (unsigned i = 0; i < calls; ++i) {
            const KeptCalls before = kept;
            kept = core::with_kept_call(before, is_stale, window, now);
            EXPECT_EQ(KeptCalls::of(kept.bits()), kept);
            if (kept.is_said && !before.is_said) ++said;
        }
        return said;
    }
    KeptCalls kept;
    core::Window window{.span = 10'000};
    Millis now = 1'000'000;
};

TEST_F(KeptCallsTest, AreNotCountedWhileNoneIsStale) {
    EXPECT_EQ(make(1000, false), 0U);
    EXPECT_EQ(kept.bits(), 0U);
}

TEST_F(KeptCallsTest, OfWhichMoreThanHalfAreStaleAreSaidOnce) {
    EXPECT_EQ(make(9, true), 0U) << "too few";
    EXPECT_EQ(make(1, true), 1U);
    EXPECT_EQ(make(100, true), 0U);
}

TEST_F(KeptCallsTest, OfWhichJustHalfAreStaleAreNot) {
    EXPECT_EQ(make(5, true), 0U);
    EXPECT_EQ(make(5, false), 0U);
    for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(make(1, false), 0U);
        EXPECT_EQ(make(1, true), 0U);
    }
    EXPECT_EQ(make(1, true), 1U);
}

TEST_F(KeptCallsTest, OfAnEarlierWindowDoNotCount) {
    EXPECT_EQ(make(9, true), 0U);
    now += 10'064;
    EXPECT_EQ(make(9, true), 0U);
    now += 10'064;
    EXPECT_EQ(make(1, false), 0U);
    EXPECT_EQ(kept.bits(), 0U) << "nothing to count";
}

TEST_F(KeptCallsTest, AreSaidAgainOnlyAfterAWindowInWhichTheyWereWell) {
    EXPECT_EQ(make(10, true), 1U);
    // Nobody came; or too few did; or still too many were stale.
    for (const auto& [good, stale] : {std::pair{0U, 1U}, std::pair{9U, 0U}, std::pair{17U, 2U}}) {
        now += 10'064;
        EXPECT_EQ(make(good, false), 0U);
        EXPECT_EQ(make(stale, true), 0U);
    }
    now += 10'064;
    EXPECT_EQ(make(12, true), 0U);
    now += 10'064;
    EXPECT_EQ(make(18, false), 0U);
    EXPECT_EQ(make(2, true), 0U);
    now += 10'064;
    EXPECT_EQ(make(9, true), 0U);
    EXPECT_EQ(make(1, true), 1U);
}

TEST_F(KeptCallsTest, AreCountedByCallsWhereTheWindowIs) {
    window = {.calls = 20};
    EXPECT_EQ(make(1, true), 0U);
    EXPECT_EQ(make(19, false), 0U);
    EXPECT_EQ(make(9, true), 0U);
    EXPECT_EQ(make(1, true), 1U) << "of the second twenty";
    window = {.calls = 3};
    kept = {};
    EXPECT_EQ(make(10, true), 1U) << "however short the window is";
}

TEST_F(KeptCallsTest, KeepTheirShareHoweverManyThereAre) {
    EXPECT_EQ(make(1, true), 0U);
    EXPECT_EQ(make(100'000, false), 0U);
    EXPECT_EQ(make(200'000, true), 1U);
    EXPECT_LE(kept.stale, kept.calls);
}

}  // namespace
}  // namespace cb::test
