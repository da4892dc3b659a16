// Statuses from 600 to 999, which httpd passes on: they are the member's own, wherever they are counted or shown.
#include "events.hpp"
#include "metrics_page.hpp"
#include "outcomes.hpp"
#include "pages.hpp"

namespace cb::test {
namespace {

TEST(HighStatus, IsTheMembersOwnOnEveryPageAndInRules) {
    Backend app("app");
    Httpd httpd(site(Mpm::event,
                     std::string(quick_policy) + long_open + metrics_location +
                         "CircuitBreakerEventLog events.json probes=Off\nCircuitBreakerVerdict failure 700-799 999\n",
                     plain_worker(app)));
    httpd.start();
    for (const int status : {600, 601, 699, 800, 998}) {
        app.answer(Reply::status(status));
        EXPECT_EQ(get(httpd.url("/app/x")).status, status);
    }
    ASSERT_TRUE(wait_for_counter(httpd, app, "Calls", 5));
    EXPECT_EQ(state_of(httpd, app), "closed");
    for (const int status : {700, 799, 999}) {
        app.answer(Reply::status(status));
        EXPECT_EQ(get(httpd.url("/app/x")).status, status);
    }
    ASSERT_TRUE(wait_for_state(httpd, app, "open"));
    EXPECT_TRUE(httpd.wait_for_access_line("verdict=failure:700"));
    EXPECT_TRUE(httpd.wait_for_access_line("verdict=failure:999"));

    const BreakerBlock block = BreakerPage(httpd).member(app);
    const MetricsPage metrics(httpd);
    const std::string json = get(httpd.url("/breakers?format=json")).body;
    const std::string html = page(httpd);
    for (const auto& [hundred, count] :
         std::map<std::string, unsigned>{{"5xx", 0}, {"6xx", 3}, {"7xx", 2}, {"8xx", 1}, {"9xx", 2}}) {
        EXPECT_EQ(block.number("Outcome-" + hundred), count);
        EXPECT_EQ(metrics.value("outcomes_total", app, {"outcome=\"" + hundred + "\"", "probe=\"0\""}), count);
        EXPECT_TRUE(has(json, "\"" + hundred + "\":" + std::to_string(count))) << json;
        EXPECT_EQ(has(html, "answered " + hundred), count > 0) << html;
    }
    EXPECT_EQ(block.number("Outcome-protocol") + block.number("Outcome-connect"), 0U);
    const std::vector<Event> events = read_events(httpd.root() / "events.json");
    ASSERT_EQ(events.size(), 1U);
    const std::vector<Event> recent = events[0].list("recent");
    ASSERT_EQ(recent.size(), 3U) << events[0].line();
    const char* const outcomes[] = {"700", "799", "999"};
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(recent[i].text("outcome"), outcomes[i]);
        EXPECT_TRUE(has(json, "\"outcome\":\"" + std::string(outcomes[i]) + "\"")) << json;
    }
}

TEST(HighStatus, IsNoneBelowAHundred) {
    Backend app("app");
    Httpd httpd(site(Mpm::event, counting_policy, plain_worker(app)));
    httpd.start();
    app.answer(Reply::raw("HTTP/1.1 099 None\r\nContent-Length: 0\r\n\r\n"));
    (void)get(httpd.url("/app/x"));
    EXPECT_TRUE(wait_for_counter(httpd, app, "Outcome-protocol", 1));
}

}  // namespace
}  // namespace cb::test
