// CircuitBreakerFallback: another balancer when every member of one refuses.
#include "config_check.hpp"
#include "traffic.hpp"

namespace cb::test {
namespace {

class Fallback : public TrafficTest {
  protected:
    /// balancer://app, and balancer://spare, which no path leads to.
    std::string balancers(const std::string& members) {
        return balancer_of(members) + "<Proxy balancer://spare>\n" + member_line(spare_) + "</Proxy>\n";
    }
    static std::string with(const std::string& more) { return std::string(quick_policy) + long_open + more; }

    Backend one_{"one"};
    Backend two_{"two"};
    Backend spare_{"spare"};
};
INSTANTIATE_TEST_SUITE_P(Mpms, Fallback, any_mpm, mpm_name);

TEST_P(Fallback, TakesOverWhenEveryMemberIsRefusedAndNotBefore) {
    Httpd httpd(
        site(with("CircuitBreakerFallback balancer://spare\n"), balancers(member_line(one_) + member_line(two_))));
    httpd.start();
    one_.answer(Reply::status(503));
    for (int i = 0; i < 12; ++i)
        EXPECT_NE(get(httpd.url("/app/x")).backend(), "spare");
    ASSERT_EQ(state_of(httpd, one_), "open");
    two_.answer(Reply::status(503));
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(get(httpd.url("/app/x")).backend(), "two");
    one_.forget();
    two_.forget();
    for (int i = 0; i < 8; ++i) {
        const Response response = get(httpd.url("/app/some/path?query=1"));
        EXPECT_EQ(response.status, 200);
        EXPECT_EQ(response.backend(), "spare");
    }
    EXPECT_EQ(spare_.last_request()->target, "/some/path?query=1");
    EXPECT_EQ(one_.requests() + two_.requests(), 0U);
    EXPECT_EQ(get(httpd.url("/app/upload"), {.method = "POST", .body = "whole"}).status, 200);
    EXPECT_EQ(spare_.last_request()->body, "whole");
    EXPECT_TRUE(wait_for_no_permits(httpd, spare_));
}

TEST_P(Fallback, HasBreakersOfItsOwnWhoseRefusalIsFinal) {
    Httpd httpd(site(with("CircuitBreakerFallback balancer://spare\n"), balancers(member_line(one_))));
    httpd.start();
    one_.answer(Reply::status(503));
    spare_.answer(Reply::status(503));
    EXPECT_EQ(answerers(6, httpd.url("/app/x")), "one one one spare spare spare");
    EXPECT_EQ(state_of(httpd, spare_), "open");
    const Response refused = get(httpd.url("/app/x"));
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(refused.backend(), "");
    EXPECT_TRUE(refused.headers.has("Retry-After"));
    EXPECT_EQ(spare_.requests(), 3U);
    EXPECT_TRUE(httpd.error_lines_with("exit signal").empty()) << httpd.describe();
}

TEST_P(Fallback, ThatRefusesAfterACallThatFailedLeavesNothingOfARefusal) {
    Httpd httpd(site(with("CircuitBreakerFallback balancer://spare\n"),
                     balancers(member_line(one_) + member_line(two_) + "    ProxySet maxattempts=5\n") +
                         "ProxyPass /spare balancer://spare\n"));
    httpd.start();
    spare_.answer(Reply::status(502));
    ASSERT_EQ(statuses(4, httpd.url("/spare/x")), "502 502 502 503");
    one_.refuse();
    two_.refuse();
    const Response response = get(httpd.url("/app/x"));
    EXPECT_EQ(response.status, 503);
    EXPECT_FALSE(response.headers.has("Retry-After")) << "the answer is that of the call that failed";
    ASSERT_TRUE(httpd.wait_for_access_line("path=/app/x "));
    const std::string line = httpd.access_lines_with("path=/app/x ").at(0);
    EXPECT_NE(line.find(" verdict=failure:connect probe=- rejected=- "), std::string::npos) << line;
}

TEST_P(Fallback, ServesAWorkerWithoutABalancerToo) {
    Httpd httpd(site(with("CircuitBreakerFallback balancer://spare\n"),
                     plain_worker(one_) + "<Proxy balancer://spare>\n" + member_line(spare_) + "</Proxy>\n"));
    httpd.start();
    one_.answer(Reply::status(502));
    EXPECT_EQ(statuses(4, httpd.url("/app/a%20b/c%3Fd?e=%26")), "502 502 502 200");
    EXPECT_EQ(one_.last_request()->target, "/a%20b/c%3Fd?e=%26");
    EXPECT_EQ(spare_.last_request()->target, one_.last_request()->target);
    EXPECT_EQ(one_.requests(), 3U);
}

TEST_P(Fallback, CanDependOnTheLocationAndIsNotUsedInObserve) {
    Httpd httpd(site(with(""), balancers(member_line(one_)) +
                                   "<Location /app/kind>\n    CircuitBreakerFallback balancer://spare\n</Location>\n"));
    httpd.start();
    one_.answer(Reply::status(502));
    EXPECT_EQ(statuses(4, httpd.url("/app/x")), "502 502 502 503");
    EXPECT_EQ(get(httpd.url("/app/kind/x")).backend(), "spare");
    httpd.set_config(with("CircuitBreaker Observe\nCircuitBreakerFallback balancer://spare\n") + status_location +
                     balancers(member_line(one_)));
    ASSERT_TRUE(httpd.restart());
    EXPECT_EQ(get(httpd.url("/app/x")).backend(), "one");
}

TEST_P(Fallback, IsTakenTooWhenTheLastMemberCannotBeReached) {
    Httpd httpd(site(with("CircuitBreakerFallback balancer://spare\nCircuitBreakerConsecutiveFailures 1\n"),
                     balancers(member_line(one_) + member_line(two_))));
    httpd.start();
    two_.answer(Reply::status(503));
    EXPECT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).backend() == "two"; }, patience, "the one to open"));
    one_.refuse();
    EXPECT_EQ(answerers(3, httpd.url("/app/x")), "spare spare spare")
        << "the first from the one that could not be reached";
    EXPECT_EQ(BreakerPage(httpd).member(one_).number("Outcome-connect"), 1U);
}

TEST(FallbackDirective, MustNameAnotherBalancerOfTheServer) {
    ConfigCheck check(
        "<Proxy balancer://app>\n    BalancerMember http://127.0.0.1:9001\n</Proxy>\nProxyPass / balancer://app/\n");
    for (const char* wrong : {"spare", "http://spare", "balancer://", "balancer://a/b", "On"}) {
        check.expect_refused("CircuitBreakerFallback " + std::string(wrong),
                             {"CircuitBreakerFallback:", wrong, "balancer://spare"});
    }
    check.expect_refused("CircuitBreakerFallback balancer://nowhere", {"balancer://nowhere", "no such balancer"});
    check.expect_refused("<Location /x>\n    CircuitBreakerFallback balancer://nowhere\n</Location>",
                         {"balancer://nowhere", "no such balancer"}, "CircuitBreakerFallback balancer://nowhere");
    check.expect_refused(
        "<Proxy balancer://app>\n    CircuitBreaker On\n    CircuitBreakerFallback balancer://app\n</Proxy>",
        {"its own fallback"}, "CircuitBreakerFallback balancer://app");
    check.expect_accepted("CircuitBreaker On\nCircuitBreakerFallback balancer://APP\n");
    check.expect_accepted("CircuitBreakerFallback Off\n");
}

}  // namespace
}  // namespace cb::test
