// CircuitBreakerHealthCheck Early: a passing check of mod_proxy_hcheck ends the open time, and that is all it does.
#include "traffic.hpp"

namespace cb::test {
namespace {

/// mod_proxy_hcheck asks for /health, by default every 100 ms, and never sets its own flag.
class HealthCheck : public TrafficTest {
  protected:
    HttpdOptions checked(const std::string& policy) {
        HttpdOptions options =
            site(std::string(quick_policy) +
                     "CircuitBreakerOpenTime 10min jitter=0 min=100ms\nCircuitBreakerHealthCheck Early\n" + policy,
                 balancer_of(member_line(app_, "hcmethod=GET hcuri=/health hcinterval=100ms hcfails=100000")));
        options.add_modules = {"proxy_hcheck"};
        return options;
    }
    void trip(const Httpd& httpd) {
        app_.answer_path("/x", Reply::status(502));
        EXPECT_EQ(answerers(3, httpd.url("/app/x")), "app app app");
    }
    [[nodiscard]] bool wait_for_checks(unsigned more) {
        const unsigned wanted = app_.requests_for("/health") + more;
        return wait_until([&] { return app_.requests_for("/health") >= wanted; }, patience, "health checks");
    }
    [[nodiscard]] BreakerBlock block(const Httpd& httpd) const { return BreakerPage(httpd).member(app_); }

    Backend app_{"app"};
};
INSTANTIATE_TEST_SUITE_P(Mpms, HealthCheck, any_mpm, mpm_name);

TEST_P(HealthCheck, ThatPassesLetsAnOpenMemberBeProbedAtOnceAndClosesNothing) {
    Httpd httpd(checked("CircuitBreakerProbes 2\nCircuitBreakerRampUp 24h from=1\n"));
    httpd.start();
    app_.answer_path("/health", Reply::status(503));
    ASSERT_TRUE(wait_for_checks(1));
    trip(httpd);
    app_.answer_path("/x", Reply::ok());
    for (int looks = 0; looks < 3; ++looks) {
        EXPECT_EQ(answerers(6, httpd.url("/app/x")), "httpd httpd httpd httpd httpd httpd") << "they fail";
        ASSERT_TRUE(wait_for_checks(1));
    }
    EXPECT_GT(block(httpd).number("Next-probe-ms"), 500'000U);

    app_.answer_path("/health", Reply::ok());
    ASSERT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).status == 200; }, patience, "a probe"));
    EXPECT_EQ(httpd.error_lines_with("may be probed now").size(), 1U) << httpd.describe();
    ASSERT_TRUE(wait_for_checks(2));
    EXPECT_EQ(block(httpd).at("State"), "half-open");
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "200");
    ASSERT_TRUE(wait_for_checks(2));
    EXPECT_EQ(block(httpd).at("State"), "recovering") << "nor is a ramp shorter for it";
    EXPECT_EQ(transition_lines(httpd).size(), 3U) << httpd.describe();
}

TEST_P(HealthCheck, ThatPassesWhileRequestsFailMeansOneRoundOfProbesForEachAndNoMore) {
    Httpd httpd(checked(""));
    httpd.start();
    ASSERT_TRUE(wait_for_checks(1));
    trip(httpd);
    const unsigned checks_before = app_.requests_for("/health");
    ASSERT_TRUE(wait_until(
        [&] {
            (void)get(httpd.url("/app/x"));
            return block(httpd).number("Level") >= 3;
        },
        patience, "probes that fail"));
    EXPECT_EQ(transitions(httpd, "half-open", "closed"), 0U);
    const unsigned probes = app_.requests_for("/x") - 3;
    EXPECT_LE(probes, app_.requests_for("/health") - checks_before + 1);
    EXPECT_EQ(probes, block(httpd).number("Probes"));
}

TEST_P(HealthCheck, ThatBeganBeforeTheMemberOpenedDoesNotCount) {
    std::atomic<unsigned> begun{0};
    std::atomic<unsigned> allowed{0};
    app_.answer([&](const Request& request) {
        if (request.path == "/health") {
            const unsigned mine = ++begun;
            (void)wait_until([&] { return allowed >= mine; }, patience, "the test");
        }
        return Reply::ok();
    });
    Httpd httpd(checked(""));
    httpd.start();
    ASSERT_TRUE(wait_until([&] { return begun >= 1; }, patience, "a check to begin"));
    trip(httpd);
    EXPECT_EQ(answerers(10, httpd.url("/app/x")).find("app"), std::string::npos);
    allowed = 1;
    ASSERT_TRUE(wait_until(
        [&] {
            EXPECT_EQ(get(httpd.url("/app/x")).backend(), "") << "the first one has passed";
            return begun >= 2;
        },
        patience, "the second check to begin"));
    EXPECT_GT(block(httpd).number("Next-probe-ms"), 500'000U);
    allowed = 1'000'000;
    EXPECT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).backend() == "app"; }, patience, "a probe"));
}

TEST_P(HealthCheck, ThatPassesChangesNothingWithoutTheDirective) {
    Httpd httpd(checked("CircuitBreakerHealthCheck Off\n"));
    httpd.start();
    trip(httpd);
    for (int looks = 0; looks < 4; ++looks) {
        EXPECT_EQ(answerers(6, httpd.url("/app/x")), "httpd httpd httpd httpd httpd httpd");
        ASSERT_TRUE(wait_for_checks(1));
    }
    EXPECT_GT(block(httpd).number("Next-probe-ms"), 500'000U);
}

}  // namespace
}  // namespace cb::test
