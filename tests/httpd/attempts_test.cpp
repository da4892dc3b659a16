// CIRCUIT_BREAKER_ATTEMPTS: all calls of a request, and what the event of a probe says where mod_proxy itself makes the
// next one (Observe).
#include "probe_events.hpp"

namespace cb::test {
namespace {

class Attempts : public ProbeEventsTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, Attempts, any_mpm, mpm_name);

TEST_P(Attempts, AreInTheAnswerOnlyIfThereWereEarlierOnes) {
    start("Header always set X-Calls \"%{CIRCUIT_BREAKER_ATTEMPTS}e\"\n");
    EXPECT_EQ(ask("/app/well").header("X-Calls"), "(null)");
    EXPECT_EQ(calls_of("/app/well"), bad_.member() + " success|-|-");
    make_due();
    EXPECT_EQ(ask("/app/x").header("X-Calls"), bad_.member() + " probe failure:503, " + good_.member());
}

TEST_P(Attempts, HaveAProbeThatARuleTakesForOneOnlyInThatCall) {
    start("CircuitBreakerVerdict failure 404 \"expr=-n reqenv('CIRCUIT_BREAKER_PROBE')\"\n");
    make_due();
    good_.answer(Reply::status(404));
    EXPECT_EQ(ask("/app/x").status, 404);
    EXPECT_EQ(calls_of("/app/x"), bad_.member() + " probe failure:503, " + good_.member() + " success|1|-");
}

TEST_P(Attempts, HaveEachConnectionThatFailed) {
    start("");
    bad_.refuse();
    EXPECT_EQ(ask("/app/x").backend(), "good");
    EXPECT_EQ(calls_of("/app/x"), bad_.member() + " failure:connect, " + good_.member() + " success|-|-");
    EXPECT_EQ(ask("/none").status, 404);
    EXPECT_EQ(calls_of("/none"), "-|-|-");
}

TEST_P(Attempts, AreThoseBeforeWhereNobodyElseTakesTheRequest) {
    start(std::string("CircuitBreakerFailover Off\n<Proxy \"") + good_.member() +
          "\">\n    CircuitBreakerMaxConcurrent 1\n</Proxy>\n");
    bad_.refuse();
    good_.hold();
    auto holder = get_later(httpd_->url("/app/held"));
    ASSERT_TRUE(good_.wait_for_concurrent(1));
    EXPECT_EQ(ask("/app/x").status, 503);
    good_.release();
    EXPECT_EQ(holder.get().backend(), "good");
    EXPECT_EQ(calls_of("/app/x"), bad_.member() + " failure:connect|-|-");
    EXPECT_TRUE(httpd_->wait_for_access_line(" state=closed verdict=failure:connect probe=- ", 1))
        << httpd_->access_log();
}

class ObservedProbeEvents : public ProbeEventsTest {
  protected:
    void expect_to_follow_mod_proxys_own_failover();
};
INSTANTIATE_TEST_SUITE_P(Mpms, ObservedProbeEvents, any_mpm, mpm_name);

constexpr const char* show_calls =
    "Header always set X-Calls \"%{CIRCUIT_BREAKER_ATTEMPTS}e%{CIRCUIT_BREAKER_PROBE}e\"\n"
    "CircuitBreakerConsecutiveFailures 1\n";

TEST_P(ObservedProbeEvents, FollowModProxysOwnFailover) {
    start(std::string(show_calls) + "CircuitBreaker Observe\n");
    expect_to_follow_mod_proxys_own_failover();
}

TEST_P(ObservedProbeEvents, DoSoWhereOnlyThatMemberIsObserved) {
    start(std::string(show_calls) + "<Proxy \"" + bad_.member() + "\">\n    CircuitBreaker Observe\n</Proxy>\n");
    expect_to_follow_mod_proxys_own_failover();
}

void ObservedProbeEvents::expect_to_follow_mod_proxys_own_failover() {
    bad_.refuse();
    EXPECT_EQ(ask("/app/trip").backend(), "good");
    ASSERT_EQ(state_of(*httpd_, bad_), "open");
    ASSERT_TRUE(wait_for_end_of_open_time(*httpd_, bad_));
    // mod_proxy asks it again after its own time (retry=).
    ASSERT_TRUE(wait_until(
        [&] {
            const Response response = ask("/app/x");
            EXPECT_EQ(response.backend(), "good");
            EXPECT_EQ(response.header("X-Calls"), "(null)(null)") << "nothing shows in the answer";
            return !probe_events().empty();
        },
        patience, "the probe"));
    const Event event = the_probe_event();
    EXPECT_EQ(event.text("reason"), "failure:connect");
    EXPECT_NE(event.line().find("\"failover\":true"), std::string::npos) << event.line();
    const std::string calls = bad_.member() + " probe failure:connect, " + good_.member() + " success|1|-";
    EXPECT_TRUE(wait_until([&] { return calls_of("/app/x") == calls; }, patience, calls)) << calls_of("/app/x");
}

}  // namespace
}  // namespace cb::test
