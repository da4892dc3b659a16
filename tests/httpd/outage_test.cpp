// What is said before an open time ends, and after an outage that was longer than it had to be.
#include "event_log.hpp"
#include "events.hpp"
#include "metrics_page.hpp"
#include "traffic.hpp"

namespace cb::test {
namespace {

std::vector<Event> events_named(const Httpd& httpd, const std::string& name) {
    std::vector<Event> named;
    for (const Event& event : read_events(httpd.root() / "events.json"))
        if (event.text("event") == name) named.push_back(event);
    return named;
}

class Notice : public TrafficTest {
  protected:
    HttpdOptions announcing(const std::string& open_time) {
        HttpdOptions options = site(std::string(quick_policy) + "CircuitBreakerEventLog events.json\n" +
                                        "CircuitBreakerOpenTime " + open_time + " jitter=0 factor=1 min=10min\n",
                                    plain_worker(app_));
        options.log_level = "info";
        return options;
    }
    void trip(const Httpd& httpd) {
        app_.answer(Reply::status(502));
        EXPECT_EQ(statuses(3, httpd.url("/app/x")), "502 502 502");
    }
    [[nodiscard]] static bool wait_for_notices(const Httpd& httpd, std::size_t count) {
        return wait_until([&] { return events_named(httpd, "probe-soon").size() >= count; }, patience, "probe-soon");
    }
    Backend app_{"app"};
};
INSTANTIATE_TEST_SUITE_P(Mpms, Notice, any_mpm, mpm_name);

TEST_P(Notice, ComesOnceBeforeEachOpenTimeEndsWithoutAnyRequest) {
    Httpd httpd(few_threads_each(announcing("3s notice=2s"), 3));
    httpd.start();
    trip(httpd);
    for (std::size_t round = 1; round <= 2; ++round) {
        ASSERT_TRUE(wait_for_notices(httpd, round)) << httpd.describe();
        ASSERT_TRUE(wait_for_end_of_open_time(httpd, app_));
        EXPECT_EQ(statuses(1, httpd.url("/app/x")), "502") << "a probe that fails";
    }
    ASSERT_TRUE(wait_for_notices(httpd, 3));
    const std::vector<Event> notices = events_named(httpd, "probe-soon");
    ASSERT_EQ(notices.size(), 3U);
    for (const Event& notice : notices) {
        EXPECT_EQ(notice.text("from"), "open");
        EXPECT_TRUE(notice.is_null("to"));
        EXPECT_GT(notice.number("open_for_ms"), 0);
        EXPECT_LE(notice.number("open_for_ms"), 2100) << "a look every 100 ms";
        EXPECT_EQ(notice.text("member"), app_.member());
    }
    EXPECT_EQ(httpd.error_lines_with("probe-soon: it may be probed in ").size(), 3U);
    EXPECT_EQ(app_.requests(), 5U);
}

TEST_P(Notice, ComesAtOnceIfTheOpenTimeIsNotLonger) {
    Httpd httpd(announcing("10min notice=24h"));
    httpd.start();
    trip(httpd);
    ASSERT_TRUE(wait_for_notices(httpd, 1));
    EXPECT_GT(events_named(httpd, "probe-soon").at(0).number("open_for_ms"), 500'000);
}

TEST_P(Notice, SurvivesTheChildThatWasToGiveIt) {
    Httpd httpd(few_threads_each(announcing("4s notice=1s"), 3));
    httpd.start();
    trip(httpd);
    const std::vector<pid_t> children = httpd.children();
    ASSERT_FALSE(children.empty());
    for (const pid_t child : children)
        EXPECT_TRUE(httpd.kill_child(child));
    ASSERT_TRUE(wait_for_notices(httpd, 1)) << httpd.describe();
    EXPECT_EQ(app_.requests(), 3U);
}

TEST_P(Notice, IsOffByDefault) {
    Httpd httpd(announcing("300ms"));
    httpd.start();
    trip(httpd);
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app_));
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "502");
    ASSERT_TRUE(wait_for_events(httpd.root() / "events.json", 3));
    EXPECT_TRUE(events_named(httpd, "probe-soon").empty());
}

TEST(Outage, ThatWasMostlyItsRampIsSaidOnceAndShownWithTheDirectiveToChange) {
    Backend app("app");
    HttpdOptions options =
        site(Mpm::event,
             std::string(quick_policy) + "CircuitBreakerRampUp 6s from=100\n" + "CircuitBreakerEventLog events.json\n",
             metrics_location + plain_worker(app));
    Httpd httpd(options);
    httpd.start();
    app.answer(Reply::status(502));
    EXPECT_EQ(statuses(3, httpd.url("/app/trip")), "502 502 502");
    app.answer_as_usual();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    ASSERT_TRUE(wait_until(
        [&] {
            EXPECT_EQ(get(httpd.url("/app/x")).status, 200);
            return BreakerPage(httpd).member(app).at("State") == "closed";
        },
        patience, "the end of the ramp"));
    const std::vector<std::string> lines = httpd.error_lines_with("too cautious: of the ");
    ASSERT_EQ(lines.size(), 1U) << httpd.describe();
    EXPECT_NE(lines[0].find(":notice]"), std::string::npos) << lines[0];
    EXPECT_TRUE(lines[0].ends_with("most of them on its ramp: shorten CircuitBreakerRampUp")) << lines[0];
    ASSERT_EQ(events_named(httpd, "too-cautious").size(), 1U);
    EXPECT_NE(get(httpd.url("/breakers")).body.find("too cautious: of the "), std::string::npos);
    const MetricsPage page(httpd);
    EXPECT_EQ(page.value("too_cautious", app), 1);
    EXPECT_EQ(page.value("outage_duration_seconds_count", app), 1);
    const double lasted = page.value("outage_duration_seconds_sum", app);
    const double waited = page.value("outage_waiting_seconds_sum", app);
    EXPECT_GE(lasted, 6.4);
    EXPECT_GE(waited, 5.9);
    EXPECT_LT(waited, lasted);
    EXPECT_EQ(page.value("outage_duration_seconds_bucket", app, {"le=\"5\""}), 0);
    EXPECT_EQ(page.value("outage_duration_seconds_bucket", app, {"le=\"+Inf\""}), 1);
    const BreakerBlock block = BreakerPage(httpd).member(app);
    EXPECT_EQ(block.number("Outages"), 1U);
    EXPECT_NEAR(static_cast<double>(block.number("Outage-waiting-ms")), waited * 1000, 1);
}

}  // namespace
}  // namespace cb::test
