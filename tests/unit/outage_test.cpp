// When an outage was too long because of our own waiting, and the words for it.
#include "core/outage.hpp"

#include <gtest/gtest.h>

#include <string>

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
    using core::HealthCheck;
    const struct {
        WaitedIn most_in;
        HealthCheck check;
        const char* end;
    } kLines[] = {
        {WaitedIn::open, HealthCheck::off,
         "while its open time went on: lower CircuitBreakerOpenTime, or let CircuitBreakerHealthCheck Early end it"},
        {WaitedIn::open, HealthCheck::gate,
         "while its open time went on: lower CircuitBreakerOpenTime, or write CircuitBreakerHealthCheck Both"},
        {WaitedIn::open, HealthCheck::early, "while its open time went on: lower min= of CircuitBreakerOpenTime"},
        {WaitedIn::open, HealthCheck::both, "while its open time went on: lower min= of CircuitBreakerOpenTime"},
        {WaitedIn::half_open, HealthCheck::off, "waiting for further probes: lower the number of CircuitBreakerProbes"},
        {WaitedIn::recovering, HealthCheck::off, "on its ramp: shorten CircuitBreakerRampUp"},
    };
    for (const auto& line : kLines) {
        core::Policy policy;
        policy.health_check = line.check;
        EXPECT_EQ(std::string(core::OutageText({62'000, 55'100, line.most_in}, policy).text),
                  std::string("of the 62.0 s that it was out, 55.1 s went by after it had shown that it was well, most "
                              "of them ") +
                      line.end);
    }
}

}  // namespace
}  // namespace cb::test
