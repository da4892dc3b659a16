// CircuitBreakerMaxConcurrent, and a backend's own Retry-After as the least open time.
#include "traffic.hpp"

namespace cb::test {
namespace {

class Limits : public TrafficTest {
  protected:
    Backend app_{"app"};
};
INSTANTIATE_TEST_SUITE_P(Mpms, Limits, each_mpm, mpm_name);

TEST_P(Limits, AMemberNeverHasMoreCallsAtOnceOverAllProcesses) {
    Httpd httpd(crowded(std::string(counting_policy) + "CircuitBreakerMaxConcurrent 3\n", plain_worker(app_)));
    httpd.start();
    app_.hold();
    BackgroundLoad clients(httpd.url("/app/x"), {.threads = 12, .keep_connections = false});
    ASSERT_TRUE(app_.wait_for_concurrent(3)) << httpd.describe();
    ASSERT_TRUE(clients.wait_for_answers(200));
    EXPECT_EQ(app_.requests(), 3U);
    const Response refused = get(httpd.url("/app/one"));
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(refused.headers.get("Retry-After"), "1");
    ASSERT_TRUE(httpd.wait_for_access_line("path=/app/one "));
    EXPECT_NE(httpd.access_lines_with("path=/app/one ").at(0).find("rejected=max-concurrent"), std::string::npos);
    app_.release();
    ASSERT_TRUE(app_.wait_for_requests(200));
    (void)clients.finish();
    EXPECT_LE(app_.peak(), 3U);
    EXPECT_TRUE(wait_for_no_permits(httpd, app_));
    EXPECT_EQ(state_of(httpd, app_), "closed") << "refusals are no failures";
}

TEST_P(Limits, WhatIsTooMuchForOneMemberGoesToAnother) {
    Backend other("other");
    Httpd httpd(crowded(std::string(counting_policy), balancer_of(member_line(app_) + member_line(other)) +
                                                          "<Proxy \"" + app_.member() +
                                                          "\">\n    CircuitBreakerMaxConcurrent 1\n</Proxy>\n"));
    httpd.start();
    app_.hold();
    std::vector<std::future<Response>> held;
    for (int i = 0; i < 2 && app_.concurrent() == 0; ++i) {
        held.push_back(get_later(httpd.url("/app/held")));
        EXPECT_TRUE(wait_until([&] { return app_.concurrent() + other.requests() > static_cast<unsigned>(i); },
                               patience, "the request"));
    }
    ASSERT_TRUE(app_.wait_for_concurrent(1));
    for (int i = 0; i < 10; ++i)
        EXPECT_EQ(get(httpd.url("/app/x")).backend(), "other");
    app_.release();
    for (auto& response : held)
        EXPECT_EQ(response.get().status, 200);
    EXPECT_EQ(app_.peak(), 1U);
}

TEST_P(Limits, AKilledChildGivesItsPlacesBack) {
    Httpd httpd(crowded(std::string(counting_policy) + "CircuitBreakerMaxConcurrent 2\n", plain_worker(app_)));
    httpd.start();
    app_.hold();
    auto first = get_later(httpd.url("/app/x"));
    auto second = get_later(httpd.url("/app/x"));
    ASSERT_TRUE(app_.wait_for_concurrent(2));
    EXPECT_EQ(get(httpd.url("/app/y")).status, 503);
    for (const pid_t child : httpd.children())
        (void)httpd.kill_child(child);
    (void)first.get();
    (void)second.get();
    app_.release();
    EXPECT_TRUE(wait_until([&] { return get(httpd.url("/app/y")).status == 200; }, patience, "a place"));
    EXPECT_TRUE(wait_for_no_permits(httpd, app_));
}

TEST_P(Limits, KillsUnderLoadLetNoMoreInThanTheLimitAndLoseNoPlace) {
    HttpdOptions options = few_threads_each(
        site(std::string(counting_policy) + "CircuitBreakerMaxConcurrent 3\n", plain_worker(app_)), 12);
    Httpd httpd(options);
    httpd.start();
    ASSERT_TRUE(httpd.wait_for_children(12));
    app_.answer(Reply::ok().after(2ms));
    BackgroundLoad clients(httpd.url("/app/x"), {.threads = 10, .keep_connections = false});
    const std::vector<pid_t> children = httpd.children();
    for (unsigned i = 0; i < 8; ++i) {
        ASSERT_TRUE(clients.wait_for_answers(10)) << httpd.describe();
        EXPECT_TRUE(httpd.kill_child(children[i]));
    }
    ASSERT_TRUE(httpd.wait_for_end_of({children.begin(), children.begin() + 8}));
    EXPECT_LE(app_.peak(), 3U);
    app_.hold();
    ASSERT_TRUE(app_.wait_for_concurrent(3)) << "each place can be taken again";
    ASSERT_TRUE(clients.wait_for_answers(50));
    EXPECT_TRUE(app_.wait_for_concurrent(3)) << "those on their way when the gate closed have made room for others";
    app_.release();
    (void)clients.finish();
    EXPECT_LE(app_.peak(), 3U);
    EXPECT_TRUE(wait_for_no_permits(httpd, app_));
}

TEST_P(Limits, ABackendThatAsksForTimeGetsItUpToTheMaximum) {
    // In seconds, to the next hundred: a test that is held up sees a little less.
    const auto open_for = [&](const std::string& open_time, const std::string& retry_after) {
        Backend app("app");
        Httpd httpd(
            site(std::string(quick_policy) + "CircuitBreakerOpenTime " + open_time + " jitter=0\n", plain_worker(app)));
        httpd.start();
        app.answer(Reply::status(503).header("Retry-After", retry_after));
        (void)statuses(3, httpd.url("/app/x"));
        return (std::stoul(get(httpd.url("/app/x")).headers.get("Retry-After")) + 99) / 100 * 100;
    };
    EXPECT_EQ(open_for("100s max=3000s retry-after=On", "1000"), 1000U);
    EXPECT_EQ(open_for("100s max=3000s retry-after=On", "1"), 100U) << "no less than the open time";
    EXPECT_EQ(open_for("100s max=1500s retry-after=On", "50000"), 1500U);
    EXPECT_EQ(open_for("100s max=3000s retry-after=Off", "1000"), 100U);
    EXPECT_EQ(open_for("100s max=3000s", "1000"), 100U);
    EXPECT_EQ(open_for("100s max=3000s retry-after=On", "soon"), 100U);
    EXPECT_EQ(open_for("100s max=3000s retry-after=On", "1000 seconds"), 100U);
    EXPECT_EQ(open_for("100s max=3000s retry-after=On", "Sun, 06 Nov 1994 08:49:37 GMT"), 100U) << "long past";
    EXPECT_EQ(open_for("100s max=3000s retry-after=On", "Wed, 06 Nov 2199 08:49:37 GMT"), 3000U);
    EXPECT_EQ(open_for("100s max=3000s retry-after=On", "99999999999999999999999"), 3000U);
}

}  // namespace
}  // namespace cb::test
