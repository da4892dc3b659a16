// The way back, in its details: neutral probes, sessions of a member that is probed, how long open times are, and what
// a fallback takes over.
#include <algorithm>

#include "trip.hpp"

namespace cb::test {
namespace {

class Recovery : public TrafficTest {
  protected:
    [[nodiscard]] BreakerBlock block(const Httpd& httpd) const { return BreakerPage(httpd).member(app_); }
    /// As logged at each opening, in seconds.
    [[nodiscard]] static std::vector<double> open_times(const Httpd& httpd) {
        std::vector<double> times;
        for (const std::string& line : transition_lines(httpd)) {
            const auto at = line.find("next probe in ");
            if (at != std::string::npos) times.push_back(std::stod(line.substr(at + 14)));
        }
        return times;
    }

    Backend app_{"app"};
};
INSTANTIATE_TEST_SUITE_P(Mpms, Recovery, any_mpm, mpm_name);

TEST_P(Recovery, AProbeThatARuleIgnoresIsCountedAsNeitherAndItsPlaceIsFreeAgain) {
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerProbes 2\nCircuitBreakerVerdict ignore 404\n",
                     plain_worker(app_)));
    httpd.start();
    trip(httpd, app_);
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app_));
    app_.answer_path("/nothing", Reply::status(404));
    EXPECT_EQ(statuses(5, httpd.url("/app/nothing")), "404 404 404 404 404") << "more than the round";
    EXPECT_EQ(block(httpd).at("State"), "half-open");
    EXPECT_EQ(statuses(2, httpd.url("/app/x")), "200 200");
    EXPECT_EQ(block(httpd).at("State"), "closed");
    EXPECT_TRUE(httpd.wait_for_error_line("2 succeeded, 0 failed, 5 proved nothing")) << httpd.describe();
    EXPECT_TRUE(wait_for_no_permits(httpd, app_));
}

TEST_P(Recovery, ASessionOfAMemberThatIsProbedGoesElsewhereOrIsRefusedAsItsBalancerSays) {
    for (const bool may_go : {true, false}) {
        Backend other("other");
        const RequestOptions mine{.cookie = "SID=1.app"};
        Httpd httpd(site(quick_policy,
                         balancer_of(member_line(app_, "route=app") + member_line(other, "route=other") +
                                     "    ProxySet stickysession=SID nofailover=" + (may_go ? "Off" : "On") + "\n")));
        httpd.start();
        trip(httpd, app_, {.request = mine});
        ASSERT_TRUE(wait_for_end_of_open_time(httpd, app_));
        app_.hold();
        std::future<Response> probe = get_later(httpd.url("/app/x"), mine);
        ASSERT_TRUE(app_.wait_for_concurrent(1)) << httpd.describe();
        for (int i = 0; i < 4; ++i) {
            const Response response = get(httpd.url("/app/meanwhile"), mine);
            EXPECT_EQ(response.backend(), may_go ? "other" : "");
            EXPECT_EQ(response.status, may_go ? 200 : 503);
            EXPECT_EQ(response.headers.has("Retry-After"), !may_go);
        }
        EXPECT_TRUE(httpd.wait_for_access_line(may_go ? "route_changed=1" : "rejected=half-open ", 4));
        app_.release();
        EXPECT_EQ(probe.get().backend(), "app");
        EXPECT_EQ(get(httpd.url("/app/x"), mine).backend(), "app");
    }
}

TEST_P(Recovery, OpenTimesAreSpreadByTheirJitter) {
    constexpr unsigned kMembers = 12;
    const auto place = [](unsigned i) { return std::string("/app") + static_cast<char>('a' + i); };
    std::string workers;
    for (unsigned i = 0; i < kMembers; ++i) {
        const std::string at = place(i);
        workers += "ProxyPass " + at + " " + app_.member() + at + "\n";
    }
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerOpenTime 100s jitter=40\n", workers));
    httpd.start();
    app_.answer(Reply::status(502));
    for (unsigned i = 0; i < kMembers; ++i)
        EXPECT_EQ(statuses(3, httpd.url(place(i) + "/x")), "502 502 502");
    std::vector<double> times = open_times(httpd);
    ASSERT_EQ(times.size(), kMembers) << httpd.describe();
    std::ranges::sort(times);
    EXPECT_GE(times.front(), 60.0);
    EXPECT_LE(times.back(), 140.0);
    EXPECT_GT(times.back() - times.front(), 8.0) << "a tenth of the range, by twelve draws";
}

TEST_P(Recovery, SilenceLowersNoLevel) {
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerOpenTime 100ms max=10s factor=3 jitter=0\n",
                     plain_worker(app_)));
    httpd.start();
    trip(httpd, app_);
    app_.answer(Reply::status(502));
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(wait_for_end_of_open_time(httpd, app_));
        if (i == 1) {
            ASSERT_TRUE(wait_until([&] { return block(httpd).number("Since-ms") > 1'200; }, patience,
                                   "four times the open time"));
        }
        EXPECT_EQ(statuses(1, httpd.url("/app/x")), "502");
    }
    EXPECT_EQ(open_times(httpd), (std::vector<double>{0.1, 0.3, 0.9}));
}

TEST_P(Recovery, AProbeThatAsksForTimeGetsIt) {
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerOpenTime 200ms max=60s jitter=0 retry-after=On\n",
                     plain_worker(app_)));
    httpd.start();
    trip(httpd, app_);
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app_));
    app_.answer(Reply::status(503).header("Retry-After", "20"));
    EXPECT_EQ(answerers(3, httpd.url("/app/x")), "app httpd httpd");
    EXPECT_EQ(open_times(httpd), (std::vector<double>{0.2, 20.0}));
}

TEST_P(Recovery, OfAMemberThatOpensAndComesBackAllTheTimeCostsNoHealthyRequest) {
    Backend good("good");
    HttpdOptions options = site(
        std::string(quick_policy) +
            "CircuitBreakerOpenTime 100ms factor=1 jitter=50\nCircuitBreakerProbes 2\nCircuitBreakerRampUp 150ms\n",
        balancer_of(member_line(app_) + member_line(good)));
    options.children = 4;
    Httpd httpd(options);
    httpd.start();
    app_.answer_path("/bad", Reply::status(503));
    BackgroundLoad bad(httpd.url("/app/bad"), {.threads = 2, .keep_connections = false});
    const auto openings = [&] {
        return transitions(httpd, "closed", "open") + transitions(httpd, "half-open", "open") +
               transitions(httpd, "recovering", "open");
    };
    BackgroundLoad fine(httpd.url("/app/fine"), {.threads = 4, .keep_connections = false});
    EXPECT_TRUE(wait_until([&] { return openings() >= 6; }, 3 * patience, "the member to open again and again"));
    EXPECT_TRUE(fine.wait_for_answers(200));
    const LoadResult result = fine.finish();
    (void)bad.finish();
    EXPECT_TRUE(result.all(200)) << result.describe() << httpd.describe();
    EXPECT_GT(result.from("app"), 0U);
    EXPECT_GT(result.from("good"), 0U);
}

TEST_P(Recovery, AFallbackTakesWhatARampKeepsOut) {
    Backend spare("spare");
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerRampUp 24h from=30\n",
                     "<Proxy balancer://spare>\n" + member_line(spare) + "</Proxy>\n<Proxy balancer://app>\n" +
                         "    CircuitBreakerFallback balancer://spare\n</Proxy>\n" + balancer_of(member_line(app_))));
    httpd.start();
    trip(httpd, app_);
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app_));
    EXPECT_EQ(get(httpd.url("/app/x")).backend(), "app");
    app_.forget();
    const LoadResult result = load(httpd.url("/app/x"), {.threads = 4, .requests_per_thread = 50});
    EXPECT_TRUE(result.all(200)) << result.describe() << httpd.describe();
    EXPECT_NEAR(app_.requests(), 60, 5);
    EXPECT_EQ(spare.requests() + app_.requests(), 200U);
}

}  // namespace
}  // namespace cb::test
