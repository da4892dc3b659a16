// The condition `slow` of verdict rules, and the time to the end of the response (CircuitBreakerSlowCall until=end).
#include <jansson.h>

#include "config_check.hpp"
#include "pages.hpp"
#include "protocols.hpp"
#include "slow.hpp"

namespace cb::test {
namespace {

/// Nothing trips, but a slow call is one from half a second on.
const std::string limit = std::string(counting_policy) + "CircuitBreakerSlowCall 500ms rate=Off";
/// Trips on a 503, and has one probe.
const std::string probing =
    "CircuitBreaker On\nCircuitBreakerFailureRate Off\nCircuitBreakerConsecutiveFailures 1\n"
    "CircuitBreakerOpenTime 300ms jitter=0 factor=1 min=10min\nCircuitBreakerProbes 1\n"
    "CircuitBreakerSlowCall 500ms rate=Off";

std::string summary(const Httpd& httpd, const std::string& member) {
    return non_zero(BreakerPage(httpd).member(member),
                    {"Calls", "Slow", "Verdict-success", "Verdict-failure", "Verdict-ignore", "Window-calls",
                     "Window-failures", "Window-timed-calls", "Window-slow"});
}

class SlowRules : public TrafficTest {
  protected:
    void start(const std::string& policy, const std::string& proxied = "") {
        httpd_ = std::make_unique<Httpd>(site(policy + "\n", plain_worker(app_) + proxied));
        httpd_->start();
    }
    [[nodiscard]] int status(const std::string& path = "/app/x") { return get(httpd_->url(path)).status; }
    void expect_summary(const std::string& expected) {
        EXPECT_TRUE(wait_for_text([&] { return summary(*httpd_, app_.member()); }, expected));
    }
    /// The verdict on one more request.
    std::string verdict(const Reply& reply) {
        app_.answer(reply);
        const std::string path = "/app/x?" + std::to_string(++requests_);
        EXPECT_GT(status(path), 0);
        EXPECT_TRUE(httpd_->wait_for_access_line("path=" + path + " "));
        return first_match(httpd_->access_lines_with("path=" + path + " ").at(0), "verdict=(.*) probe=");
    }
    /// Opens the breaker, and waits until it may be probed.
    void trip() {
        app_.answer_next(1, Reply::status(503));
        EXPECT_EQ(status("/app/trip"), 503);
        ASSERT_TRUE(wait_for_state(*httpd_, app_, "open"));
        ASSERT_TRUE(wait_for_end_of_open_time(*httpd_, app_));
    }
    /// A client that reads the head of a long answer, and the rest after a pause.
    void read_slowly(milliseconds pause) {
        RawClient client(httpd_->port());
        ASSERT_TRUE(client.send(get_request("/app/x")));
        EXPECT_NE(client.read_until("\r\n\r\n").find(" 200 "), std::string::npos);
        dawdle(pause);
        EXPECT_EQ(app_.concurrent(), 1U) << "or all of it has gone into buffers";
        EXPECT_GT(client.read_to_end().size(), 16'000'000U);
    }
    /// Of the member's last failing call, in ms.
    [[nodiscard]] long long recorded_latency() const {
        const std::unique_ptr<json_t, decltype(&json_decref)> root(
            json_loads(page(*httpd_, "/breakers?format=json").c_str(), 0, nullptr), json_decref);
        const json_t* const calls =
            json_object_get(json_array_get(json_object_get(root.get(), "members"), 0), "failed_calls");
        const json_t* const last = json_array_get(calls, json_array_size(calls) - 1);
        return json_integer_value(json_object_get(last, "latency_ms"));
    }

    Backend app_{"app"};
    std::unique_ptr<Httpd> httpd_;

  private:
    unsigned requests_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Mpms, SlowRules, any_mpm, mpm_name);

TEST_P(SlowRules, DecideAllThatASlowCallCountsAs) {
    start(std::string(counting_policy) +
          "CircuitBreakerSlowCall 500ms\nCircuitBreakerVerdict ignore slow \"expr=resp('X-Report') == 'yes'\"\n"
          "CircuitBreakerVerdict failure 2xx slow timeout");
    EXPECT_EQ(verdict(Reply::ok()), "success");
    EXPECT_EQ(verdict(Reply::ok().after(too_slow)), "failure:slow");
    EXPECT_EQ(verdict(Reply::ok().after(too_slow).header("X-Report", "yes")), "ignore:expr=resp('X-Report') == 'yes'");
    expect_summary(
        " Calls=3 Slow=2 Verdict-success=1 Verdict-failure=1 Verdict-ignore=1 Window-calls=2 "
        "Window-failures=1 Window-timed-calls=2");
    // Without such a rule it counts as a slow call, beside its verdict.
    EXPECT_EQ(verdict(Reply::status(404).after(too_slow)), "success");
    expect_summary(
        " Calls=4 Slow=3 Verdict-success=2 Verdict-failure=1 Verdict-ignore=1 Window-calls=3 "
        "Window-failures=1 Window-timed-calls=3 Window-slow=1");
    EXPECT_GE(recorded_latency(), 500) << "the last failing call: no less than the limit";
}

TEST_P(SlowRules, MayMakeAFailureOfAnySlowCallThatConcernsTheMember) {
    start(limit + "\nCircuitBreakerVerdict failure SLOW");
    EXPECT_EQ(verdict(Reply::status(404)), "success");
    EXPECT_EQ(verdict(Reply::status(404).after(too_slow)), "failure:slow");
    expect_summary(" Calls=2 Slow=1 Verdict-success=1 Verdict-failure=1 Window-calls=2 Window-failures=1");
}

TEST_P(SlowRules, WithoutARateOfTheirOwnSlowCallsOpenNothing) {
    start("CircuitBreaker On\nCircuitBreakerMinimumCalls 1\nCircuitBreakerSlowCall 500ms rate=Off");
    EXPECT_EQ(verdict(Reply::ok().after(too_slow)), "success");
    expect_summary(" Calls=1 Slow=1 Verdict-success=1 Window-calls=1");
    EXPECT_EQ(state_of(*httpd_, app_), "closed");
}

TEST_P(SlowRules, SayWhatASlowProbeCountsAs) {
    struct Case {
        const char* rule;
        const char* state;
    };
    for (const Case& each : {Case{"", "open"}, Case{"CircuitBreakerProbeVerdict success slow", "closed"},
                             Case{"CircuitBreakerProbeVerdict failure slow", "open"},
                             Case{"CircuitBreakerVerdict success 200 slow", "closed"},
                             Case{"CircuitBreakerProbeVerdict success 404 slow", "open"},
                             Case{"CircuitBreakerProbeVerdict tolerate slow", "half-open"}}) {
        SCOPED_TRACE(each.rule);
        start(probing + "\n" + each.rule);
        trip();
        app_.answer(Reply::ok().after(too_slow));
        EXPECT_EQ(status(), 200);
        EXPECT_TRUE(wait_for_state(*httpd_, app_, each.state));
        EXPECT_EQ(BreakerPage(*httpd_).member(app_).number("Slow"), 1U);
        httpd_->stop();
    }
}

TEST_P(SlowRules, NeverWithholdAnAnswerThatIsGoodButSlow) {
    Backend good("good");
    httpd_ = std::make_unique<Httpd>(
        site(limit + "\nCircuitBreakerFailover All timeout=20s\nCircuitBreakerVerdict failure slow\n",
             balancer_of(member_line(app_, "loadfactor=100 timeout=2") + member_line(good))));
    httpd_->start();
    const auto ask = [&](const Reply& reply) {
        app_.answer(reply);
        return get(httpd_->url("/app/x")).backend();
    };
    // By its headers, and by its end (the body is kept back until a rule has seen it).
    EXPECT_EQ(ask(Reply::ok().after(too_slow)), "app");
    EXPECT_EQ(ask(Reply::status(204).after(too_slow)), "app");
    expect_summary(" Calls=2 Slow=2 Verdict-failure=2 Window-calls=2 Window-failures=2");
    EXPECT_EQ(good.requests(), 0U);
    // What fails anyway is made again, slow or not.
    EXPECT_EQ(ask(Reply::status(503).after(too_slow)), "good");
    EXPECT_EQ(ask(Reply::hang()), "good");
    app_.release();
    expect_summary(" Calls=4 Slow=4 Verdict-failure=4 Window-calls=4 Window-failures=4");
    EXPECT_EQ(BreakerPage(*httpd_).member(app_).number("Failovers"), 2U);
}

TEST_P(SlowRules, NeverWithholdAGoodAnswerThatIsHeldBackToItsEnd) {
    Backend good("good");
    httpd_ = std::make_unique<Httpd>(site(limit + " until=end\nCircuitBreakerFailover All\n" +
                                              "CircuitBreakerVerdict failure body=/bad/\n"
                                              "CircuitBreakerVerdict failure slow\n",
                                          balancer_of(member_line(app_, "loadfactor=100") + member_line(good))));
    httpd_->start();
    const auto ask = [&](const std::string& body, milliseconds delay) {
        app_.answer(Reply::ok(body).header("Content-Type", "text/plain").after(delay));
        return get(httpd_->url("/app/x")).backend();
    };
    EXPECT_EQ(ask("fine", too_slow), "app");
    EXPECT_EQ(ask("bad", 0ms), "good");
    EXPECT_EQ(ask("bad", too_slow), "good");
    expect_summary(" Calls=3 Slow=2 Verdict-failure=3 Window-calls=3 Window-failures=3");
}

TEST_P(SlowRules, AboutGoodAnswersMakeNoSuccessOfATimeout) {
    for (const std::string rule : {"success slow", "ignore slow", "tolerate slow"}) {
        SCOPED_TRACE(rule);
        httpd_ = std::make_unique<Httpd>(
            site(probing + "\nCircuitBreakerProbeVerdict " + rule + "\n", plain_worker(app_, "timeout=1")));
        httpd_->start();
        trip();
        EXPECT_EQ(verdict(Reply::hang()), "failure:timeout");
        EXPECT_EQ(transitions(*httpd_, "half-open", "open"), 1U);
        ASSERT_TRUE(wait_for_end_of_open_time(*httpd_, app_));
        EXPECT_EQ(verdict(Reply::status(503).after(too_slow)), "failure:503");
        httpd_->stop();
    }
    // Where the rule names it, that is what the administrator wants.
    start(probing + "\nCircuitBreakerProbeVerdict success 503 slow");
    trip();
    EXPECT_EQ(verdict(Reply::status(503).after(too_slow)), "success:slow");
}

// ---- To the end of the response.

constexpr milliseconds long_pause{1200};
/// For what a client does: a member on a busy machine needs some time for its 16 MB.
const std::string patient_limit = std::string(counting_policy) + "CircuitBreakerSlowCall 2s rate=Off until=end\n";

TEST_P(SlowRules, AnAnswerIsSlowByItsEndOnlyIfTheLimitIsForThat) {
    for (const bool until_end : {false, true}) {
        start(limit + (until_end ? " until=end" : " until=first-byte"));
        for (Reply reply : {Reply::of_size(2000), Reply::of_size(2000).in_chunks(), Reply::of_size(2000).until_close()})
            EXPECT_EQ(verdict(reply.pausing(1000, long_pause)), "success");
        expect_summary(until_end ? " Calls=3 Slow=3 Verdict-success=3 Window-calls=3"
                                 : " Calls=3 Verdict-success=3 Window-calls=3");
        EXPECT_TRUE(!until_end || recorded_latency() >= long_pause.count());
        httpd_->stop();
    }
}

TEST_P(SlowRules, AProbeMayFailByTheEndOfItsAnswer) {
    for (const bool until_end : {false, true}) {
        start(probing + (until_end ? " until=end" : ""));
        trip();
        EXPECT_EQ(verdict(Reply::of_size(2000).pausing(1000, long_pause)), "success");
        EXPECT_TRUE(wait_for_state(*httpd_, app_, until_end ? "open" : "closed"));
        httpd_->stop();
    }
}

TEST_P(SlowRules, ASlowClientMakesNoMemberSlowByItsEnd) {
    start(patient_limit + small_buffers);
    for (Reply reply : {Reply::ok(long_body()), Reply::ok(long_body()).in_chunks()}) {
        app_.answer(reply);
        read_slowly(2 * long_pause);
    }
    expect_summary(" Calls=2 Verdict-success=2 Window-calls=2");
}

TEST_P(SlowRules, AnAnswerThatGoesOnAfterSettleIsSlowIfItHasTakenLongerByThen) {
    for (const auto& [settle, slow] :
         std::vector<std::pair<std::string, std::string>>{{"100ms", ""}, {"700ms", " Slow=1"}}) {
        start(limit + " until=end\nCircuitBreakerSettle " + settle);
        EXPECT_EQ(verdict(Reply::of_size(2000).pausing(1000, long_pause)), "success");
        expect_summary(" Calls=1" + slow + " Verdict-success=1 Window-calls=1");
        httpd_->stop();
    }
}

TEST_P(SlowRules, AClientThatStallsAfterSettleHidesNoSlowMember) {
    start(limit + " until=end\nCircuitBreakerSettle 900ms\n" + small_buffers);
    // Silent for longer than the limit, then more than the client takes.
    app_.answer(Reply::ok(long_body()).pausing(1000, milliseconds(800)));
    read_slowly(3 * long_pause);
    expect_summary(" Calls=1 Slow=1 Verdict-success=1 Window-calls=1");
}

/// Its thread is blocked, so another request finds that its time is up.
TEST_P(SlowRules, AProbeThatIsSettledByAnotherRequestIsSlowIfItsMemberIsSilentAndNotIfItsClientIs) {
    struct Case {
        bool is_member_silent;
        const char* rule;
        const char* state;
    };
    for (const Case& each : {Case{true, "", "open"}, Case{false, "", "closed"},
                             Case{true, "CircuitBreakerProbeVerdict success slow\n", "closed"}}) {
        SCOPED_TRACE(std::string(each.is_member_silent ? "member " : "client ") + each.rule);
        // A member on a busy machine needs some time for what its client does not read.
        start(probing +
              (each.is_member_silent ? " until=end\nCircuitBreakerSettle 900ms\n"
                                     : "\nCircuitBreakerSlowCall 2s until=end\nCircuitBreakerSettle 3s\n") +
              small_buffers + each.rule);
        trip();
        app_.answer_path("/x", each.is_member_silent ? Reply::of_size(2000).stalling(1000) : Reply::ok(long_body()));
        RawClient client(httpd_->port());
        ASSERT_TRUE(client.send(get_request("/app/x")));
        EXPECT_NE(client.read_until("\r\n\r\n").find(" 200 "), std::string::npos);
        ASSERT_TRUE(wait_for_state(*httpd_, app_, "half-open"));
        EXPECT_TRUE(wait_until(
            [&] {
                (void)status("/app/other");
                return state_of(*httpd_, app_) != "half-open";
            },
            patience, "another request to settle the probe"));
        EXPECT_EQ(transitions(*httpd_, "half-open", each.state), 1U);
        app_.release();
        EXPECT_GT(client.read_to_end().size(), 900U);
        EXPECT_TRUE(wait_for_no_permits(*httpd_, app_));
        httpd_->stop();
    }
}

class SlowToItsEnd : public testing::TestWithParam<Protocol> {};
INSTANTIATE_TEST_SUITE_P(Protocols, SlowToItsEnd, testing::ValuesIn(protocols()), protocol_name);

TEST_P(SlowToItsEnd, IsAMemberAndNoneWhoseClientReadsSlowly) {
    const Protocol& protocol = GetParam();
    WireBackend app("app", protocol.dialect(), protocol.on_unix_socket);
    Httpd httpd(wire_site(limit + " until=end\n" + small_buffers, worker_at("/app", app, protocol)));
    httpd.start();
    app.answer(WireReply::status(200, std::string(2000, 'x')).pausing(long_pause));
    EXPECT_EQ(get(httpd.url("/app/x")).body.size(), 2000U);
    // mod_proxy_scgi hands on one bucket, which is read while it is passed on.
    const std::string slow = protocol.name.starts_with("scgi") ? "" : " Slow=1";
    EXPECT_TRUE(wait_for_text([&] { return summary(httpd, app.member()); },
                              " Calls=1" + slow + " Verdict-success=1 Window-calls=1"));
    if (protocol.name == "h2c") return;  // the scripted one knows nothing of flow control
    httpd.stop();
    httpd.set_config(wire_site(patient_limit + small_buffers, worker_at("/app", app, protocol)).config);
    httpd.start();
    app.answer(WireReply::status(200, long_body()));
    RawClient client(httpd.port());
    ASSERT_TRUE(client.send(get_request("/app/x")));
    EXPECT_NE(client.read_until("\r\n\r\n").find(" 200 "), std::string::npos);
    dawdle(2 * long_pause);
    EXPECT_EQ(BreakerPage(httpd).member(app.member()).number("In-flight"), 1U);
    EXPECT_GT(client.read_to_end().size(), 16'000'000U);
    EXPECT_TRUE(
        wait_for_text([&] { return summary(httpd, app.member()); }, " Calls=1 Verdict-success=1 Window-calls=1"));
}

// ---- At the start.

TEST(SlowLimit, ToTheEndThatSettleComesBeforeIsTold) {
    ConfigCheck check("ProxyPass / http://127.0.0.1:9001/\n");
    const std::string on = "CircuitBreaker On\n";
    check.expect_warned(on + "CircuitBreakerSlowCall 15s until=end", "CircuitBreakerSlowCall 15s until=end",
                        {"looks no further than CircuitBreakerSettle 10s", "http://127.0.0.1:9001"});
    check.expect_accepted(on + "CircuitBreakerSlowCall 15s");
    check.expect_accepted(on + "CircuitBreakerSlowCall 9s until=end");
    check.expect_accepted(on + "CircuitBreakerSlowCall 15s until=end\nCircuitBreakerSettle 20s");
}

TEST(SlowRule, ThatNeverHoldsIsTold) {
    ConfigCheck check(
        "<Proxy balancer://app>\n    BalancerMember http://127.0.0.1:9001\n    BalancerMember http://127.0.0.1:9002\n"
        "</Proxy>\nProxyPass / balancer://app/\n");
    const std::string on = "CircuitBreaker On\n";
    const std::string rule = "CircuitBreakerVerdict failure 200 slow";
    const std::vector<std::string> says{"http://127.0.0.1:9001 of balancer://app", "and 1 more", "slow\" on line",
                                        "never holds", "CircuitBreakerSlowCall is Off"};
    check.expect_warned(on + rule, rule, says);
    check.expect_warned(on + "CircuitBreakerProbeVerdict success slow", "CircuitBreakerProbeVerdict", says);
    check.expect_warned(on + rule + "\nCircuitBreakerVerdict failure 500", rule, says);
    check.expect_warned(on + "<Location /x>\n" + rule + "\nCircuitBreakerVerdict failure 500\n</Location>", rule,
                        {"never holds for any member"});
    check.expect_warned(on + rule + "\n<Proxy http://127.0.0.1:9002>\nCircuitBreakerSlowCall 1s\n</Proxy>", rule,
                        {"http://127.0.0.1:9001 of balancer://app"});
    check.expect_accepted(rule);  // Off
    check.expect_accepted(on + rule + "\nCircuitBreakerSlowCall 1s rate=Off");
    check.expect_accepted(on + "CircuitBreakerSlowCall 1s\n<Location /x>\n" + rule + "\n</Location>");
}

}  // namespace
}  // namespace cb::test
