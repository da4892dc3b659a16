// The number of an event ("generation"): each change has its own, they are consecutive, and a reset of a closed breaker
// is an event too. From every child, and over restarts.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "events.hpp"
#include "metrics_page.hpp"
#include "pages.hpp"
#include "restarts.hpp"
#include "runbook.hpp"

namespace cb::test {
namespace {

constexpr const char* to_file = "CircuitBreakerEventLog events.json probes=Off\n";

std::vector<Event> events_of(const Httpd& httpd) {
    return read_events(httpd.root() / "events.json");
}

bool is_numbered(const Event& event) {
    return event.text("event") == "transition" || event.text("event") == "reset";
}

std::vector<std::string> numbers(const std::vector<Event>& events) {
    std::vector<std::string> lines;
    for (const Event& event : events) {
        const std::string what = event.text("event") == "transition" ? event.text("to") : event.text("event");
        lines.push_back(std::to_string(static_cast<int>(event.number("generation"))) + " " + what);
    }
    return lines;
}

class EventNumbers : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, EventNumbers, each_mpm, mpm_name);

TEST_P(EventNumbers, AreConsecutiveThroughARampAndAResetAndOverARestart) {
    Backend app("app");
    const std::string policy = std::string(quick_policy) + to_file + control_location;
    Httpd httpd({.mpm = GetParam(), .config = policy + "CircuitBreakerRampUp 100ms from=100\n" + plain_worker(app)});
    httpd.start();
    open_breaker(httpd, app);
    app.answer_as_usual();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "200");
    ASSERT_TRUE(wait_until(
        [&] {
            (void)get(httpd.url("/app/x"));
            return state_of(httpd, app) == "closed";
        },
        patience, "the end of the ramp"));
    EXPECT_EQ(post(httpd, form(httpd, app, "reset")).status, 303);
    EXPECT_EQ(post(httpd, form(httpd, app, "force-open")).status, 303);
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Generation"), 6U) << "the page counts the same";
    // Another shape of the window is no change and has no number.
    ASSERT_TRUE(graceful_to_the_end(httpd, policy + "CircuitBreakerWindow 50calls\n" + plain_worker(app)));
    EXPECT_EQ(post(httpd, form(httpd, app, "reset")).status, 303);
    const std::vector<Event> events = events_of(httpd);
    EXPECT_EQ(numbers(events), (std::vector<std::string>{"1 open", "2 half-open", "3 recovering", "4 closed", "5 reset",
                                                         "6 forced-open", "7 closed"}));
    EXPECT_EQ(wrong_with_numbers(events), "");
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Generation"), 7U);
    EXPECT_TRUE(has(page(httpd, "/breakers?format=json"), "\"generation\":7")) << httpd.describe();
}

TEST_P(EventNumbers, OfWhatIsNoChangeIsThatOfTheLastOne) {
    Backend one("one");
    Backend two("two");
    Httpd httpd(site(std::string(quick_policy) + long_open + to_file + "CircuitBreakerMaxOpen 50\n",
                     balancer_of(member_line(one) + member_line(two))));
    httpd.start();
    one.answer(Reply::status(503));
    two.answer(Reply::status(503));
    for (int i = 0; i < 8; ++i)
        (void)get(httpd.url("/app/x"));
    ASSERT_TRUE(wait_for_events(httpd.root() / "events.json", 2)) << httpd.describe();
    EXPECT_EQ(numbers(events_of(httpd)), (std::vector<std::string>{"1 open", "0 suppressed"}))
        << "that member has never changed";
}

TEST_P(EventNumbers, HaveNoGapAndNoRepeatAlsoWhenManyChildrenChangeTheStateAtOnce) {
    Backend app("app");
    app.answer(Reply::status(503));
    Httpd httpd(
        crowded("CircuitBreaker On\nCircuitBreakerFailureRate Off\nCircuitBreakerConsecutiveFailures 1\n"
                "CircuitBreakerOpenTime 100ms factor=1 jitter=0\nCircuitBreakerProbes 2\n"
                "CircuitBreakerRampUp 100ms from=100\n" +
                    std::string(to_file) + status_location,
                plain_worker(app)));
    httpd.start();
    {
        BackgroundLoad load(httpd.url("/app/x"), {.threads = 12, .time_limit = 60s, .keep_connections = false});
        for (std::size_t events = 20; events <= 100; events += 20) {
            ASSERT_TRUE(wait_for_events(httpd.root() / "events.json", events)) << httpd.describe();
            // Well for a while, so that ramps end as well.
            app.answer_as_usual();
            ASSERT_TRUE(wait_for_state(httpd, app, "closed")) << httpd.describe();
            app.answer(Reply::status(503));
        }
        (void)load.finish();
    }
    ASSERT_TRUE(wait_for_no_permits(httpd, app));
    std::vector<Event> changes;
    std::set<double> pids;
    for (const Event& event : events_of(httpd)) {
        if (is_numbered(event)) {
            changes.push_back(event);
            pids.insert(event.number("pid"));
        } else {
            EXPECT_LE(event.number("generation"), BreakerPage(httpd).member(app).number("Generation"));
        }
    }
    EXPECT_GE(changes.size(), 90U);
    EXPECT_GE(pids.size(), 2U) << "of one child alone this proves nothing";
    EXPECT_EQ(wrong_with_numbers(changes), "") << httpd.describe();
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Generation"), changes.size());
}

TEST_P(EventNumbers, AResetOfAClosedBreakerIsAnEventALineAndARunbooksFolder) {
    Backend app("app");
    const Runbook runbook;
    runbook.program("on-reset.d/10",
                    "printf '%s %s>%s %s %s %s\\n' \"$CB_EVENT\" \"$CB_FROM\" \"$CB_TO\" \"$CB_REASON\" "
                    "\"$CB_GENERATION\" \"$CB_TEXT\" >> $T/told; cat >> $T/read");
    runbook.program("on-closed.d/10", "echo >> $T/closed");
    Httpd httpd({.mpm = GetParam(),
                 .config = std::string(quick_policy) + runbook.directive() + control_location + plain_worker(app)});
    httpd.start();
    app.answer_next(1, Reply::status(503));
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "503");
    ASSERT_TRUE(wait_for_counter(httpd, app, "Window-failures", 1));
    EXPECT_EQ(post(httpd, form(httpd, app, "reset")).status, 303);
    ASSERT_TRUE(runbook.wait_for_lines("read", 1)) << httpd.describe();
    EXPECT_EQ(runbook.text("told"),
              "reset closed> operator reset 1 circuit breaker: " + app.member() + ": reset: operator reset\n");
    const Event event = read_events(runbook.path("read")).at(0);
    EXPECT_EQ(event.text("event"), "reset");
    EXPECT_EQ(event.text("from"), "closed");
    EXPECT_TRUE(event.is_null("to"));
    EXPECT_EQ(event.text("reason"), "operator reset");
    EXPECT_EQ(event.text("member"), app.member());
    EXPECT_EQ(event.list("recent").size(), 1U) << "what the operator has cleared";
    EXPECT_EQ(
        httpd.error_lines_with("member " + app.member() + ": reset: it was closed already, and counts anew").size(), 1U)
        << httpd.describe();
    EXPECT_EQ(transition_lines(httpd).size(), 0U);
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Transitions"), 0U) << "no change of state";
    EXPECT_EQ(runbook.text("closed"), "");
}

TEST(EventNumbersOfAKilledChild, AreSaidToBeMissingAndCountAsLostLinesWhereThereIsAnEventLog) {
    Backend app("app");
    app.answer(Reply::status(503));
    std::vector<std::unique_ptr<Httpd>> servers;  // at once: the parent looks every ten seconds, and twice
    for (const std::string log : {"", to_file}) {
        servers.push_back(std::make_unique<Httpd>(
            site(Mpm::event, quick_policy + std::string("CircuitBreakerConsecutiveFailures 1\n") + long_open + log,
                 metrics_location + load_test_module("deadly_log") + plain_worker(app))));
        servers.back()->start();
        (void)get(servers.back()->url("/app/x"));
    }
    for (const auto& server : servers) {
        EXPECT_TRUE(server->wait_for_error_line(
            "1 change(s) of state were not reported, as a child was killed; it is now open", 1, 4 * patience))
            << server->describe();
        EXPECT_EQ(MetricsPage(*server).series().at("httpd_circuitbreaker_events_lost_total"),
                  server == servers.front() ? 0 : 1);
    }
}

}  // namespace
}  // namespace cb::test
