// CircuitBreakerHealthCheck Gate: no probe before a check of mod_proxy_hcheck has passed that began after the opening.
// And what its failing checks do by themselves.
#include "manager.hpp"

namespace cb::test {
namespace {

/// mod_proxy_hcheck asks the members for /health every 100 ms. The open time is short.
class HealthGate : public TrafficTest {
  protected:
    /// `hcfails`: failing checks until mod_proxy_hcheck sets its own flag.
    HttpdOptions checked(const std::string& policy, const std::string& hcfails = "100000") {
        const std::string check = "hcmethod=GET hcuri=/health hcinterval=100ms hcpasses=1 hcfails=" + hcfails;
        HttpdOptions options =
            site(std::string(quick_policy) + "CircuitBreakerOpenTime 300ms factor=1 jitter=0 min=100ms\n" + policy,
                 balancer_of(member_line(one_, check) + more_));
        options.add_modules = {"proxy_hcheck"};
        return options;
    }
    static void make_ill(Backend& member) {
        member.answer_path("/x", Reply::status(502));
        member.answer_path("/health", Reply::status(503));
    }
    void trip(const Httpd& httpd) {
        make_ill(one_);
        ASSERT_TRUE(wait_for_checks(1));
        EXPECT_EQ(statuses(3, httpd.url("/app/x")), "502 502 502");
        ASSERT_EQ(block(httpd).at("State"), "open");
    }
    /// The member may be probed when its open time is over, without a check.
    void expect_no_gate(const std::string& proxied) {
        HttpdOptions options = site(std::string(quick_policy) + "CircuitBreakerHealthCheck Gate\n", proxied);
        options.add_modules = {"proxy_hcheck"};
        Httpd httpd(options);
        httpd.start();
        one_.answer(Reply::status(502));
        EXPECT_EQ(statuses(3, httpd.url("/app/x")), "502 502 502");
        one_.answer_as_usual();
        ASSERT_TRUE(wait_for_end_of_open_time(httpd, one_));
        EXPECT_EQ(block(httpd).number("Awaits-check"), 0U);
        EXPECT_EQ(answerers(1, httpd.url("/app/x")), "one");
    }
    [[nodiscard]] bool wait_for_checks(unsigned more) {
        const unsigned wanted = one_.requests_for("/health") + more;
        return wait_until([&] { return one_.requests_for("/health") >= wanted; }, patience, "health checks");
    }
    [[nodiscard]] BreakerBlock block(const Httpd& httpd) const { return BreakerPage(httpd).member(one_); }

    Backend one_{"one"};
    std::string more_;
};
INSTANTIATE_TEST_SUITE_P(Mpms, HealthGate, any_mpm, mpm_name);

TEST_P(HealthGate, KeepsProbesAwayUntilACheckHasPassedHoweverLongTheOpenTimeIsOver) {
    Httpd httpd(checked("CircuitBreakerHealthCheck Gate\n"));
    httpd.start();
    trip(httpd);
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, one_));
    for (int looks = 0; looks < 3; ++looks) {
        ASSERT_TRUE(wait_for_checks(1));
        const Response refusal = get(httpd.url("/app/x"));
        EXPECT_EQ(refusal.status, 503);
        EXPECT_EQ(refusal.header("Retry-After"), "1");
    }
    EXPECT_EQ(one_.requests_for("/x"), 3U);
    EXPECT_EQ(block(httpd).at("State"), "open");
    EXPECT_EQ(block(httpd).number("Awaits-check"), 1U);
    EXPECT_NE(get(httpd.url("/breakers")).body.find("will be probed once a health check has passed"),
              std::string::npos);

    one_.answer_as_usual();
    ASSERT_TRUE(wait_until([&] { return block(httpd).number("Awaits-check") == 0; }, patience, "a passing check"));
    EXPECT_EQ(block(httpd).at("State"), "open") << "a check is no probe";
    EXPECT_EQ(answerers(1, httpd.url("/app/x")), "one");
    EXPECT_EQ(block(httpd).at("State"), "closed");
}

TEST_P(HealthGate, StandsBeforeEarlyProbesToo) {
    Backend two("two");
    more_ = member_line(two, "hcmethod=GET hcuri=/health hcinterval=100ms hcfails=100000");
    Httpd httpd(checked("CircuitBreakerHealthCheck Gate\nCircuitBreakerOpenTime 10min jitter=0 min=100ms\n"));
    httpd.start();
    make_ill(one_);
    make_ill(two);
    ASSERT_TRUE(wait_until(
        [&] {
            (void)get(httpd.url("/app/x"));
            const BreakerPage page(httpd);
            return page.member(one_).at("State") == "open" && page.member(two).at("State") == "open";
        },
        patience, "both to open"));
    const unsigned calls = one_.requests_for("/x") + two.requests_for("/x");
    ASSERT_TRUE(wait_for_checks(3));  // longer than `min`
    EXPECT_EQ(answerers(4, httpd.url("/app/x")), "httpd httpd httpd httpd");
    EXPECT_EQ(one_.requests_for("/x") + two.requests_for("/x"), calls);
    two.answer_as_usual();
    EXPECT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).backend() == "two"; }, patience, "an early probe"));
}

TEST_P(HealthGate, IsOpenForAMemberThatIsNotChecked) {
    expect_no_gate(balancer_of(member_line(one_)));
}

TEST_P(HealthGate, AndEarlyTogetherMakeThePassingCheckTheStartOfTheProbes) {
    Httpd httpd(checked("CircuitBreakerHealthCheck Both\nCircuitBreakerOpenTime 10min jitter=0 min=100ms\n"));
    httpd.start();
    trip(httpd);
    EXPECT_EQ(block(httpd).number("Awaits-check"), 1U);
    EXPECT_GT(block(httpd).number("Next-probe-ms"), 500'000U);
    one_.answer_as_usual();
    ASSERT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).status == 200; }, patience, "a probe"));
    EXPECT_EQ(httpd.error_lines_with("may be probed now").size(), 1U) << httpd.describe();
}

TEST_P(HealthGate, RefusesNothingInObserve) {
    Httpd httpd(checked("CircuitBreaker Observe\nCircuitBreakerHealthCheck Gate\n"));
    httpd.start();
    trip(httpd);
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, one_));
    EXPECT_EQ(statuses(2, httpd.url("/app/x")), "502 502");
    EXPECT_EQ(block(httpd).number("Probes"), 0U);
    one_.answer_as_usual();
    EXPECT_TRUE(wait_until(
        [&] {
            (void)get(httpd.url("/app/x"));
            return block(httpd).at("State") == "closed";
        },
        patience, "a probe"));
}

TEST_P(HealthGate, HasNoSayOnceACheckHasPassedEvenIfTheNextOneFails) {
    Httpd httpd(checked("CircuitBreakerHealthCheck Gate\nCircuitBreakerOpenTime 2s jitter=0\n"));
    httpd.start();
    trip(httpd);
    one_.answer_path("/health", Reply::ok());
    ASSERT_TRUE(wait_until([&] { return block(httpd).number("Awaits-check") == 0; }, patience, "a passing check"));
    one_.answer_path("/health", Reply::status(503));
    one_.answer_path("/x", Reply::ok());
    ASSERT_TRUE(wait_for_checks(2));
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, one_));
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "200");
}

TEST_P(HealthGate, IsForMembersThatModProxyHcheckChecksAndThatIsNoWorkerWithoutABalancer) {
    expect_no_gate(plain_worker(one_, "hcmethod=TCP"));
}

// It walks through the servers that have hcmethod= in their configuration.
TEST_P(HealthGate, IsOpenWhereModProxyHcheckDoesNotCheckThoughTheMemberHasAMethod) {
    HttpdOptions options = site("", "");
    options.add_modules = {"proxy_hcheck"};
    options.config += "<VirtualHost *>\n" + std::string(quick_policy) + "CircuitBreakerHealthCheck Gate\n" +
                      managed_balancer(member_line(one_)) + "</VirtualHost>\n";
    Httpd httpd(options);
    httpd.start();
    EXPECT_EQ(post_to_manager(httpd, "w=" + escaped_for_manager(one_.member()) +
                                         "&w_hm=GET&w_hu=/health&w_hi=100&w_hp=1&w_hf=1000"),
              200);
    one_.answer(Reply::status(502));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "502 502 502");
    one_.answer_as_usual();
    EXPECT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).status == 200; }, patience, "a probe"));
    EXPECT_EQ(one_.requests_for("/health"), 0U);
}

TEST_P(HealthGate, TakesARestartForNoCheck) {
    Httpd httpd(checked("CircuitBreakerHealthCheck Both\nCircuitBreakerOpenTime 10min jitter=0 min=100ms\n"));
    httpd.start();
    trip(httpd);
    const std::vector<pid_t> children = httpd.children();
    ASSERT_TRUE(httpd.graceful());
    ASSERT_TRUE(httpd.wait_for_end_of(children));
    ASSERT_TRUE(wait_for_checks(4));
    EXPECT_EQ(block(httpd).number("Awaits-check"), 1U);
    EXPECT_GT(block(httpd).number("Next-probe-ms"), 500'000U);
    EXPECT_TRUE(httpd.error_lines_with("may be probed now").empty()) << httpd.describe();
}

TEST_P(HealthGate, TakesACheckWhoseChildWasKilledForNoCheck) {
    std::atomic<bool> hangs{false};
    std::atomic<bool> is_over{false};
    std::atomic<unsigned> hanging{0};
    one_.answer([&](const Request& request) {
        if (request.path != "/health") return Reply::status(502);
        if (hangs) {
            ++hanging;
            (void)wait_until([&] { return is_over.load(); }, patience, "the end of the test");
        }
        return Reply::status(503);
    });
    Httpd httpd(checked("CircuitBreakerHealthCheck Both\nCircuitBreakerOpenTime 10min jitter=0 min=100ms\n"));
    httpd.start();
    ASSERT_TRUE(wait_for_checks(1));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "502 502 502");
    ASSERT_TRUE(wait_for_checks(2));
    hangs = true;
    for (unsigned deaths = 0; deaths < 2; ++deaths) {
        ASSERT_TRUE(wait_until([&] { return hanging > deaths; }, patience, "a check that hangs"));
        const std::vector<pid_t> children = httpd.children();
        for (const pid_t child : children)
            EXPECT_TRUE(httpd.kill_child(child));
        ASSERT_TRUE(httpd.wait_for_end_of(children));
    }
    ASSERT_TRUE(wait_until([&] { return hanging > 2; }, patience, "a check by a child that came later"));
    EXPECT_EQ(block(httpd).number("Awaits-check"), 1U);
    EXPECT_TRUE(httpd.error_lines_with("may be probed now").empty()) << httpd.describe();
    is_over = true;
}

TEST_P(HealthGate, AndEarlyTogetherSayWhenTheNextCheckIsDue) {
    Httpd httpd(checked("CircuitBreakerHealthCheck Both\nCircuitBreakerOpenTime 10min jitter=0 min=100ms\n"));
    httpd.start();
    trip(httpd);
    EXPECT_EQ(get(httpd.url("/app/x")).header("Retry-After"), "1");
    EXPECT_NE(get(httpd.url("/breakers")).body.find("will be probed once a health check has passed"),
              std::string::npos);
    EXPECT_EQ(httpd.error_lines_with(", or later: a health check has to pass first").size(), 1U);
}

// mod_proxy's own doing: the breaker need not know of it.
TEST_P(HealthGate, IsNotNeededWhereFailingChecksBarTheMember) {
    Httpd httpd(checked("", "1"));
    httpd.start();
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "200");
    one_.answer_path("/x", Reply::status(502));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "502 502 502");
    one_.answer_path("/health", Reply::status(503));
    ASSERT_TRUE(wait_for_checks(2));
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, one_));
    const unsigned calls = one_.requests_for("/x");
    for (int looks = 0; looks < 3; ++looks) {
        EXPECT_EQ(answerers(2, httpd.url("/app/x")), "httpd httpd");
        ASSERT_TRUE(wait_for_checks(1));
    }
    EXPECT_EQ(one_.requests_for("/x"), calls) << "no probe while its checks fail";
    one_.answer_as_usual();
    EXPECT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).backend() == "one"; }, patience, "a probe"));
}

}  // namespace
}  // namespace cb::test
