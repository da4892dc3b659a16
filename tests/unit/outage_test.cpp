// When an outage was too long because of our own waiting, and the words for it.
#include "core/outage.hpp"

#include <gtest/gtest.h>

namespace cb::test {
namespace {

using core::Outage;
using core::WaitedIn;

TEST(OutageOf, IsTooCautiousIfMostOfItWasOurWaitingAndThatWasLong) {
    const struct {
        Outage outage;
        bool expected;
    } kLines[] = {
        {{}, false},
        {{60'000, 30'001, WaitedIn::open}, true},
        {{60'000, 30'000, WaitedIn::open}, false},
        {{60'000, 0, WaitedIn::none}, false},
        {{5'000, 5'000, WaitedIn::recovering}, true},
        {{5'000, 4'999, WaitedIn::recovering}, false},
    };
    for (const auto& line : kLines)
        EXPECT_EQ(core::is_too_cautious(line.outage), line.expected) << line.outage.lasted << ' ' << line.outage.waited;
}

TEST(OutageOf, FitsIntoAWord) {
    EXPECT_EQ(core::pack({}), 0U);
    constexpr core::Millis kMost = (1ULL << 31U) - 1;
    for (const Outage& outage :
         {Outage{60'000, 55'000, WaitedIn::recovering}, Outage{kMost, kMost, WaitedIn::half_open},
          Outage{1, 0, WaitedIn::none}, Outage{0, kMost, WaitedIn::open}}) {
        const Outage again = core::unpack_outage(core::pack(outage));
        EXPECT_EQ(again.lasted, outage.lasted);
        EXPECT_EQ(again.waited, outage.waited);
        EXPECT_EQ(again.most_in, outage.most_in);
    }
    EXPECT_EQ(core::unpack_outage(core::pack({kMost + 1, kMost + 1, WaitedIn::open})).waited, kMost) << "saturates";
}

TEST(OutageOf, SaysWhatToChange) {
    EXPECT_STREQ(
        core::OutageText({62'000, 55'100, WaitedIn::open}).text,
        "of the 62.0 s that it was out, 55.1 s went by after it had shown that it was well, most of them while "
        "its open time went on: lower CircuitBreakerOpenTime, or let CircuitBreakerHealthCheck Early end it");
    EXPECT_STREQ(
        core::OutageText({62'000, 55'100, WaitedIn::half_open}).text,
        "of the 62.0 s that it was out, 55.1 s went by after it had shown that it was well, most of them waiting "
        "for further probes: lower the number of CircuitBreakerProbes, or raise its concurrent=");
    EXPECT_STREQ(
        core::OutageText({62'000, 55'100, WaitedIn::recovering}).text,
        "of the 62.0 s that it was out, 55.1 s went by after it had shown that it was well, most of them on its "
        "ramp: shorten CircuitBreakerRampUp");
}

}  // namespace
}  // namespace cb::test
