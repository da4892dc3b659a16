// Members that the parent does not know: added in balancer-manager, or removed by a reload. What it does for children
// that have died or stalled goes by the member's own policy.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <string>
#include <vector>

#include "manager.hpp"
#include "restarts.hpp"
#include "traffic.hpp"

namespace cb::test {
namespace {

constexpr unsigned fifteen = 15;  // probes that prove nothing end a round

class UnknownMember : public TrafficTest {
  protected:
    static std::string policy() { return quick_policy + std::string("CircuitBreakerProbes 15 concurrent=15\n"); }

    [[nodiscard]] static HttpdOptions site_for_fifteen(const std::string& proxied) {
        HttpdOptions options = site(policy(), proxied);
        options.children = GetParam() == Mpm::prefork ? fifteen + 3 : 2;
        options.threads = fifteen + 3;
        return options;
    }

    /// Opens the breaker; then fifteen probes are at the member, which does not answer.
    void probe_fifteen_times(const Httpd& httpd, const std::string& url) {
        app_.answer(Reply::status(503));
        EXPECT_EQ(statuses(3, url), "503 503 503");
        EXPECT_EQ(BreakerPage(httpd).member(app_).at("State"), "open") << httpd.describe();
        app_.hold();
        EXPECT_TRUE(wait_for_end_of_open_time(httpd, app_));
        for (unsigned i = 0; i < fifteen; ++i)
            clients_.push_back(get_later(url));
        EXPECT_TRUE(app_.wait_for_concurrent(fifteen)) << httpd.describe();
    }

    /// Kills these children and expects that the breaker opens again for the configured time.
    void expect_own_open_time_after_the_end_of(const Httpd& httpd, const std::vector<pid_t>& children) {
        for (const pid_t child : children)
            EXPECT_TRUE(httpd.kill_child(child));
        EXPECT_TRUE(httpd.wait_for_error_line("half-open -> open")) << httpd.describe();
        const std::vector<std::string> lines = httpd.error_lines_with("half-open -> open");
        ASSERT_EQ(lines.size(), 1U) << httpd.describe();
        const std::string wanted =
            "probes proved nothing, 0 succeeded, 0 failed, 15 proved nothing; next probe in 0.5 s (level 0)";
        EXPECT_NE(lines[0].find(wanted), std::string::npos) << lines[0];
        app_.release();
    }

    Backend first_{"first"};
    Backend app_{"app"};
    std::vector<std::future<Response>> clients_;
};

INSTANTIATE_TEST_SUITE_P(Httpd, UnknownMember, each_mpm, mpm_name);

TEST_P(UnknownMember, ThatWasAddedAtRunTimeOpensForItsOwnTimeWhenTheChildrenThatProbeItAreKilled) {
    Httpd httpd(site_for_fifteen(managed_balancer(member_line(first_, "status=+D"))));
    httpd.start();
    add_member(httpd, app_);
    enable_member(httpd, app_);
    probe_fifteen_times(httpd, httpd.url("/app/x"));
    expect_own_open_time_after_the_end_of(httpd, httpd.children());
}

TEST_P(UnknownMember, ThatWasRemovedByAReloadKeepsThePolicyThatItsOldChildrenGoBy) {
    Httpd httpd(site_for_fifteen(plain_worker(app_)));
    httpd.start();
    probe_fifteen_times(httpd, httpd.url("/app/x"));
    const std::vector<pid_t> old = httpd.children();
    httpd.set_config("CircuitBreaker On\n" + std::string(status_location) + "ProxyPass /other " + first_.member());
    ASSERT_TRUE(httpd.graceful()) << httpd.describe();
    // An old child may answer for a moment: it knows the member still.
    ASSERT_TRUE(wait_until([&] { return BreakerPage(httpd).member(app_).at("Mode") == "unknown"; }, patience,
                           "a page of a new child"))
        << httpd.describe();
    EXPECT_EQ(BreakerPage(httpd).member(app_).at("Probes-limit"), "15") << "as its old children see it";
    std::vector<pid_t> probing;  // idle ones have ended
    for (const pid_t child : httpd.children()) {
        if (std::ranges::count(old, child) > 0) probing.push_back(child);
    }
    expect_own_open_time_after_the_end_of(httpd, probing);
}

TEST(UnknownMembersLostProbe, ThatTheParentFindsIsToleratedAsConfigured) {
    Backend first("first");
    Backend app("app");
    Httpd httpd(site(Mpm::event,
                     std::string(quick_policy) +
                         "ProxyTimeout 1\nCircuitBreakerSettle 0s\nCircuitBreakerProbes 3 tolerate=1 concurrent=1\n",
                     managed_balancer(member_line(first, "status=+D"))));
    httpd.start();
    add_member(httpd, app);
    enable_member(httpd, app);
    app.answer(Reply::status(503));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "503 503 503");
    app.hold();
    EXPECT_TRUE(wait_for_end_of_open_time(httpd, app));
    std::future<Response> client = get_later(httpd.url("/app/x"));
    ASSERT_TRUE(app.wait_for_concurrent(1));
    // Nobody but the parent is left to find that its deadline has passed.
    const std::vector<pid_t> children = httpd.children();
    for (const pid_t child : children)
        EXPECT_TRUE(httpd.kill_child(child, SIGSTOP));
    EXPECT_TRUE(httpd.wait_for_error_line("probe-lost")) << httpd.describe();
    for (const pid_t child : children)
        EXPECT_TRUE(httpd.kill_child(child, SIGCONT));
    app.answer_as_usual();
    app.release();
    (void)client.get();
    EXPECT_EQ(BreakerPage(httpd).member(app).at("State"), "half-open") << httpd.describe();
    EXPECT_EQ(transitions(httpd, "half-open", "open"), 0U);
    EXPECT_TRUE(wait_for_no_permits(httpd, app));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "200 200 200");
    EXPECT_EQ(BreakerPage(httpd).member(app).at("State"), "closed");
}

}  // namespace
}  // namespace cb::test
