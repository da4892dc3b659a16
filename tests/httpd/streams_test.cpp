// Responses without an end in sight: tunnels, long polls, server-sent events, long downloads. Each is judged when its
// headers have settled, holds no probe slot after that, and breaks off later without a consequence.
#include "metrics_page.hpp"
#include "outcomes.hpp"

namespace cb::test {
namespace {

constexpr milliseconds settle_time{300};

/// One failure trips; judged that long after the headers.
const std::string settling_policy =
    std::string(quick_policy) +
    "CircuitBreakerConsecutiveFailures 1\nCircuitBreakerSettle 300ms\nCircuitBreakerOpenTime 500ms jitter=0 factor=1\n";

/// Events of 50 bytes, one every 20 ms, for longer than a test takes.
Reply events() {
    return Reply::of_size(1'000'000).header("Content-Type", "text/event-stream").in_chunks().dripping(50, 20ms);
}

/// One event, then nothing more until the backend is released.
Reply silent_events() {
    return Reply::of_size(100).header("Content-Type", "text/event-stream").in_chunks().stalling(50);
}

std::string get_request(const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: me\r\n\r\n";
}

class Stream : public TrafficTest {
  protected:
    /// Opens the breaker by its one failure, and waits until it may be probed.
    static void trip_until_probeable(const Httpd& httpd, Backend& app) {
        app.answer_next(1, Reply::status(502));
        EXPECT_EQ(statuses(1, httpd.url("/app/trip")), "502");
        EXPECT_EQ(state_of(httpd, app), "open");
        ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    }
    /// What the page says of its state, its calls and what they hold.
    static std::string summary(const Httpd& httpd, const std::string& member) {
        const BreakerBlock block = BreakerPage(httpd).member(member);
        return block.at("State") + non_zero(block, {"Calls", "Verdict-success", "Verdict-failure", "Verdict-ignore",
                                                    "Outcome-truncated", "In-flight", "Leases", "Consecutive"});
    }
    /// A stream that was asked for then.
    static bool may_have_settled(std::chrono::steady_clock::time_point begin) {
        return std::chrono::steady_clock::now() - begin >= settle_time;
    }
    static bool wait_for_summary(const Httpd& httpd, const Backend& app, const std::string& expected) {
        return wait_for_text([&] { return summary(httpd, app.member()); }, expected);
    }
};
INSTANTIATE_TEST_SUITE_P(Mpms, Stream, any_mpm, mpm_name);

TEST_P(Stream, ThatIsATunnelIsJudgedAtOnceHoldsNothingAndMayBreakAtAnyTime) {
    Backend app("app");
    const std::string ws = "ws://127.0.0.1:" + std::to_string(app.port());
    struct Way {
        std::string member;
        std::string parameters;
        std::vector<std::string> modules;
    };
    for (const Way& way : {Way{app.member(), "upgrade=websocket", {}}, Way{app.member(), "upgrade=ANY", {}},
                           Way{ws, "", {}}, Way{ws, "", {"proxy_wstunnel"}}}) {
        SCOPED_TRACE(way.member + " " + way.parameters + (way.modules.empty() ? "" : " with mod_proxy_wstunnel"));
        HttpdOptions options = site(settling_policy + "CircuitBreakerSettle 1h\n",
                                    "ProxyPass /app " + way.member + " connectiontimeout=60 " + way.parameters + "\n");
        options.add_modules = way.modules;
        options.children = 4;
        Httpd httpd(options);
        httpd.start();
        const auto is_now = [&](const std::string& expected) {
            return wait_until([&] { return summary(httpd, way.member) == expected; }, patience, expected);
        };
        const std::string handshake =
            "GET /app/t HTTP/1.1\r\nHost: me\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        app.answer(Reply::upgrade());
        RawClient tunnel(httpd.port());
        ASSERT_TRUE(tunnel.send(handshake));
        EXPECT_NE(tunnel.read_until("\r\n\r\n").find(" 101 "), std::string::npos);
        EXPECT_TRUE(is_now("closed Calls=1 Verdict-success=1"));
        EXPECT_EQ(BreakerPage(httpd).member(way.member).number("Outcome-1xx"), 1U);

        // A refused one is a call like any other.
        app.answer_next(1, Reply::status(502));
        RawClient refused(httpd.port());
        ASSERT_TRUE(refused.send(handshake));
        EXPECT_NE(refused.read_until("\r\n\r\n").find(" 502 "), std::string::npos);
        EXPECT_TRUE(is_now("open Calls=2 Verdict-success=1 Verdict-failure=1"));
        ASSERT_TRUE(wait_until([&] { return BreakerPage(httpd).member(way.member).number("Next-probe-ms") == 0; },
                               patience, "the end of the open time"));
        RawClient probe(httpd.port());
        ASSERT_TRUE(probe.send(handshake));
        EXPECT_NE(probe.read_until("\r\n\r\n").find(" 101 "), std::string::npos);
        EXPECT_TRUE(is_now("closed Calls=3 Verdict-success=2 Verdict-failure=1"));

        for (RawClient* one : {&tunnel, &probe}) {
            ASSERT_TRUE(one->send("still there"));
            EXPECT_EQ(one->read_until("there"), "still there");
        }
        tunnel.reset();
        probe.close();
        EXPECT_TRUE(app.wait_until_quiet());
        EXPECT_TRUE(httpd.wait_for_access_line("verdict=success probe=1"));
        EXPECT_EQ(summary(httpd, way.member), "closed Calls=3 Verdict-success=2 Verdict-failure=1");
        app.forget();
    }
}

TEST_P(Stream, ThatIsALongPollIsJudgedWhenItIsAnsweredHoweverLongThatTakes) {
    Backend app("app");
    Httpd httpd(site(settling_policy, plain_worker(app)));
    httpd.start();
    trip_until_probeable(httpd, app);
    app.answer(Reply::ok("news").when_released());
    std::future<Response> poll = get_later(httpd.url("/app/poll"));
    ASSERT_TRUE(app.wait_for_concurrent(1));
    const auto long_enough = std::chrono::steady_clock::now() + 2 * settle_time;
    do {
        EXPECT_EQ(BreakerPage(httpd).member(app).number("Leases"), 1U) << "a probe that has not been answered";
        EXPECT_EQ(statuses(1, httpd.url("/app/x")), "503");
    } while (std::chrono::steady_clock::now() < long_enough);
    app.release();
    EXPECT_EQ(poll.get().body, "news");
    EXPECT_EQ(summary(httpd, app.member()), "closed Calls=2 Verdict-success=1 Verdict-failure=1");
}

TEST_P(Stream, OfEventsIsJudgedWhileItGoesOnAndCountsOnce) {
    Backend app("app");
    Httpd httpd(site(settling_policy, plain_worker(app)));
    httpd.start();
    trip_until_probeable(httpd, app);
    app.answer_path("/events", events());
    RawClient client(httpd.port());
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(client.send(get_request("/app/events")));
    EXPECT_NE(client.read_until("\r\n\r\n").find("text/event-stream"), std::string::npos);
    const std::string state = state_of(httpd, app);
    if (!may_have_settled(begin)) {
        EXPECT_EQ(state, "half-open") << "not before its headers have settled";
    }
    EXPECT_TRUE(wait_for_summary(httpd, app, "closed Calls=2 Verdict-success=1 Verdict-failure=1"));
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "200");
    client.reset();
    EXPECT_TRUE(app.wait_until_quiet());
    EXPECT_TRUE(httpd.wait_for_access_line("path=/app/events"));
    EXPECT_EQ(summary(httpd, app.member()), "closed Calls=3 Verdict-success=2 Verdict-failure=1");
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Outcome-client"), 0U);
}

TEST_P(Stream, ThatFallsSilentAfterItsHeadersHoldsNoSlotLongerThanThatAndOthersFindOut) {
    Backend app("app");
    Httpd httpd(site(settling_policy, plain_worker(app)));
    httpd.start();
    for (const bool is_well : {true, false}) {
        SCOPED_TRACE(is_well ? "200" : "502");
        trip_until_probeable(httpd, app);
        app.forget();
        app.answer_path("/events", is_well ? silent_events() : Reply::status(502, "sorry, sorry").stalling(4));
        RawClient client(httpd.port());
        const auto begin = std::chrono::steady_clock::now();
        ASSERT_TRUE(client.send(get_request("/app/events")));
        EXPECT_NE(client.read_until("\r\n\r\n").find(is_well ? " 200 " : " 502 "), std::string::npos);
        const std::uint64_t leases = BreakerPage(httpd).member(app).number("Leases");
        const std::string another = statuses(1, httpd.url("/app/x"));
        if (!may_have_settled(begin)) {
            EXPECT_EQ(leases, 1U);
            EXPECT_EQ(another, "503") << "the slot is taken";
        }
        ASSERT_TRUE(
            wait_until([&] { return get(httpd.url("/app/x")).status == 200; }, patience, "the slot, or the next"));
        EXPECT_EQ(app.concurrent(), 1U) << "it is still there, and silent";
        EXPECT_EQ(state_of(httpd, app), "closed");
        EXPECT_EQ(transitions(httpd, "half-open", "open"), is_well ? 0U : 1U);
        const std::uint64_t calls = BreakerPage(httpd).member(app).number("Calls");
        app.release();
        EXPECT_TRUE(wait_for_counter(httpd, app, "Calls", calls + 1)) << "it counts in the totals all the same";
        EXPECT_TRUE(wait_for_no_permits(httpd, app));
        EXPECT_EQ(BreakerPage(httpd).member(app).number("Probes-lost"), 0U);
        EXPECT_EQ(state_of(httpd, app), "closed");
    }
}

TEST_P(Stream, ThatItsClientDoesNotReadHoldsNoSlotEither) {
    Backend app("app");
    Httpd httpd(site(settling_policy + small_buffers, plain_worker(app)));
    httpd.start();
    trip_until_probeable(httpd, app);
    app.answer_path("/big", Reply::of_size(30'000'000));
    RawClient client(httpd.port());
    ASSERT_TRUE(client.send(get_request("/app/big")));
    EXPECT_NE(client.read_until("\r\n\r\n").find(" 200 "), std::string::npos);
    ASSERT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).status == 200; }, patience, "the member's recovery"));
    EXPECT_EQ(app.concurrent(), 1U) << "it is stuck in the download";
    client.reset();
    EXPECT_TRUE(wait_for_no_permits(httpd, app));
    EXPECT_EQ(state_of(httpd, app), "closed");
}

TEST_P(Stream, ThatIsALongDownloadIsJudgedBeforeItsEnd) {
    Backend app("app");
    Httpd httpd(site(settling_policy, plain_worker(app)));
    httpd.start();
    // It flows for more than a second, and waits before its end.
    app.answer(Reply::of_size(100'000).dripping(1'000, 20ms).stalling(75'000));
    std::future<Response> download = get_later(httpd.url("/app/x"));
    EXPECT_TRUE(wait_for_summary(httpd, app, "closed Calls=1 Verdict-success=1"));
    EXPECT_EQ(app.concurrent(), 1U);
    app.release();
    EXPECT_EQ(download.get().body.size(), 100'000U);
    EXPECT_EQ(summary(httpd, app.member()), "closed Calls=1 Verdict-success=1");
}

TEST_P(Stream, ThatBreaksOffAfterItHasSettledCountsAsTruncatedAndChangesNothingElse) {
    Backend app("app");
    Httpd httpd(site(settling_policy, plain_worker(app, "timeout=3") +
                                          "<Location /app/unsettled>\n    CircuitBreakerSettle 1h\n</Location>\n"));
    httpd.start();
    // Each lasts a good second longer than it takes to settle, for a machine that stands still for a moment.
    const std::vector<Reply> streams{
        events().cut_after(3'500, Ending::reset),                             // something passes until then
        Reply::of_size(60).pausing(40, 1400ms).cut_after(41, Ending::reset),  // silent until then
        Reply::of_size(60).pausing(40, 1400ms).cut_after(41, Ending::fin),    // the same
        Reply::of_size(100).in_chunks().between_chunks().cut_after(50, Ending::silence)};  // and httpd loses patience
    std::uint64_t count = 0;
    for (const Reply& stream : streams) {
        ++count;
        app.answer_next(1, stream);
        const Response response = get(httpd.url("/app/x"));
        EXPECT_EQ(response.status, 200);
        EXPECT_FALSE(response.complete());
        const std::string n = std::to_string(count);
        EXPECT_TRUE(
            wait_for_summary(httpd, app, "closed Calls=" + n + " Verdict-success=" + n + " Outcome-truncated=" + n));
        EXPECT_EQ(BreakerPage(httpd).member(app).number("Outcome-2xx"), count);
        EXPECT_EQ(BreakerPage(httpd).member(app).number("Window-failures"), 0U);
        EXPECT_EQ(BreakerPage(httpd).member(app).number("Window-calls"), count);
    }
    // Before it has settled it is a failure, and counts once too.
    app.answer_next(1, Reply::of_size(1000).cut_after(500, Ending::reset));
    EXPECT_FALSE(get(httpd.url("/app/unsettled")).complete());
    EXPECT_TRUE(wait_for_summary(httpd, app, "open Calls=5 Verdict-success=4 Verdict-failure=1 Outcome-truncated=5"));
}

TEST_P(Stream, ThatWasAProbeAndBreaksOffLaterLeavesTheBreakerClosed) {
    Backend app("app");
    Httpd httpd(site(settling_policy + std::string(metrics_location), plain_worker(app)));
    httpd.start();
    trip_until_probeable(httpd, app);
    app.answer_path("/events", events().stalling(3'500).cut_after(3'550, Ending::reset));
    std::future<Response> probe = get_later(httpd.url("/app/events"));
    EXPECT_TRUE(wait_for_summary(httpd, app, "closed Calls=2 Verdict-success=1 Verdict-failure=1"));
    app.release();
    EXPECT_FALSE(probe.get().complete());
    EXPECT_TRUE(wait_for_summary(httpd, app, "closed Calls=2 Verdict-success=1 Verdict-failure=1 Outcome-truncated=1"));
    const MetricsPage metrics(httpd);
    EXPECT_EQ(metrics.value("outcomes_total", app, {"outcome=\"truncated\"", "probe=\"1\""}), 1);
    EXPECT_EQ(metrics.value("outcomes_total", app, {"outcome=\"truncated\"", "probe=\"0\""}), 0);
    EXPECT_EQ(transition_lines(httpd).size(), 3U) << httpd.describe();
}

TEST_P(Stream, ThatWasAProbeAndIsSilentUntilItBreaksOffIsCountedAmongTheProbes) {
    Backend app("app");
    Httpd httpd(site(settling_policy + std::string(metrics_location), plain_worker(app)));
    httpd.start();
    trip_until_probeable(httpd, app);
    app.answer_path("/events", Reply::of_size(60).pausing(40, 1400ms).cut_after(41, Ending::reset));
    EXPECT_FALSE(get(httpd.url("/app/events")).complete());
    const auto truncated = [&](const char* probe) {
        return MetricsPage(httpd).value("outcomes_total", app, {"outcome=\"truncated\"", probe});
    };
    EXPECT_TRUE(wait_until([&] { return truncated("probe=\"1\"") == 1; }, patience, "the end"));
    EXPECT_EQ(truncated("probe=\"0\""), 0);
}

}  // namespace
}  // namespace cb::test
