// Probes that don't come back as they should: the breaker is never stuck in half-open, and a slot never taken twice.
#include <algorithm>

#include "events.hpp"
#include "metrics_page.hpp"
#include "support/fcgi.hpp"
#include "trip.hpp"

namespace cb::test {
namespace {

/// Answers 502, until `drip`: then each request gets its status line byte by byte, so slowly that it takes longer than
/// any probe may, but no read ever times out; after `finish` the rest of a 200.
class DrippingServer {
  public:
    DrippingServer() : server_([this](Connection& connection) { serve(connection); }) {}

    [[nodiscard]] std::string member() const { return "http://127.0.0.1:" + std::to_string(server_.port()); }
    void drip() { dripping_ = true; }
    void finish() {
        finished_ = true;
        server_.wake_all();
    }

  private:
    void serve(Connection& connection) {
        std::string request;
        while (request.find("\r\n\r\n") == std::string::npos) {
            char piece[1024];
            const std::size_t count = connection.receive(piece, sizeof piece);
            if (count == 0) return;
            request.append(piece, count);
        }
        if (!dripping_) {
            connection.send("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            return;
        }
        connection.send("HTTP/1.1 200 ");
        while (!finished_) {
            if (!connection.send("O")) return;
            const auto woken = connection.wait([&] { return finished_.load(); }, Connection::Clock::now() + 200ms);
            if (woken == Connection::Woken::by_peer_leaving || woken == Connection::Woken::by_stop) return;
        }
        connection.send("K\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    }

    std::atomic<bool> dripping_{false};
    std::atomic<bool> finished_{false};
    ConnectionServer server_;
};

class LostProbe : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, LostProbe, each_mpm, mpm_name);

TEST_P(LostProbe, ThatTheBackendNeverAnswersIsAFailureAndItsSlotIsBack) {
    Backend app("app");
    Httpd httpd(site(quick_policy, plain_worker(app, "timeout=1")));
    httpd.start();
    trip(httpd, app);
    app.answer(Reply::hang());
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "502");
    BreakerBlock block = BreakerPage(httpd).member(app);
    EXPECT_EQ(block.at("State"), "open");
    EXPECT_EQ(block.number("Level"), 1U);
    EXPECT_EQ(block.number("Outcome-timeout"), 1U);
    EXPECT_TRUE(wait_for_no_permits(httpd, app));
    app.answer_as_usual();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    EXPECT_EQ(statuses(2, httpd.url("/app/x")), "200 200");
    EXPECT_EQ(state_of(httpd, app), "closed");
}

// Two members at once, as each has to wait for the same deadline: 1 s to connect + 1 s timeout + 1 s. (Of an upload
// that its client stalls: probe_body_test.cpp.)
TEST_P(LostProbe, IsJudgedAtItsDeadlineByTheSameRuleWhoeverAppliesIt) {
    DrippingServer asked;    // after the deadline another request comes by
    DrippingServer unasked;  // nobody but the holder itself
    const std::string worker = " timeout=1\n";
    HttpdOptions options = site(
        std::string(quick_policy) + "CircuitBreakerSettle 0s\nCircuitBreakerEventLog events.json\n" + metrics_location,
        "ProxyPass /asked " + asked.member() + worker + "ProxyPass /unasked " + unasked.member() + worker);
    options.children = 4;
    Httpd httpd(options);
    httpd.start();
    const auto number = [&](const DrippingServer& server, const std::string& key) {
        return BreakerPage(httpd).member(server.member()).number(key);
    };
    const auto state = [&](const std::string& member) { return state_of(httpd, member); };
    const auto is_probeable = [&](const std::string& member) {
        return wait_until([&] { return BreakerPage(httpd).member(member).number("Next-probe-ms") == 0; }, patience,
                          member);
    };
    (void)statuses(3, httpd.url("/asked/x"));
    (void)statuses(3, httpd.url("/unasked/x"));
    asked.drip();
    unasked.drip();
    ASSERT_TRUE(is_probeable(asked.member()) && is_probeable(unasked.member()));
    std::future<Response> of_asked = get_later(httpd.url("/asked/x"));
    std::future<Response> of_unasked = get_later(httpd.url("/unasked/x"));
    ASSERT_TRUE(wait_until(
        [&] {
            const BreakerPage page(httpd);  // one look at all: their deadline comes closer
            const std::string members[] = {asked.member(), unasked.member()};
            return std::ranges::all_of(members,
                                       [&](const auto& each) { return page.member(each).at("State") == "half-open"; });
        },
        patience, "two probes under way"));
    EXPECT_EQ(statuses(1, httpd.url("/asked/x")), "503") << "the slot is taken";
    const std::uint64_t deadline = 3000;
    EXPECT_LT(number(unasked, "Since-ms"), deadline) << "the machine is too slow for this test";
    ASSERT_TRUE(wait_until(
        [&] { return number(unasked, "Since-ms") > deadline + 200 && number(asked, "Since-ms") > deadline + 200; },
        patience, "the deadline to pass"));

    // Sent: a failure. (Found when somebody asks, or by the parent's look every ten seconds, should one fall into
    // this.)
    EXPECT_EQ(statuses(1, httpd.url("/asked/x")), "503");
    EXPECT_EQ(state(asked.member()), "open");
    asked.finish();
    EXPECT_EQ(of_asked.get().status, 200);
    unasked.finish();
    EXPECT_EQ(of_unasked.get().status, 200);
    for (const DrippingServer* server : {&asked, &unasked}) {
        ASSERT_TRUE(wait_until([&] { return number(*server, "Leases") == 0 && number(*server, "In-flight") == 0; },
                               patience, "the permits to come back"));
        EXPECT_EQ(state(server->member()), "open");
        EXPECT_EQ(number(*server, "Level"), 1U);
        EXPECT_EQ(number(*server, "Probes-lost"), 1U);
        EXPECT_EQ(number(*server, "Outcome-2xx"), 1U) << "what it was counts in the totals";
    }
    EXPECT_EQ(httpd.error_lines_with("probe-lost").size(), 2U) << httpd.describe();
    const std::vector<Event> events = read_events(httpd.root() / "events.json");
    const std::vector<std::string> kinds = summary(events);
    EXPECT_EQ(std::ranges::count(kinds, "probe-lost"), 2);
    EXPECT_EQ(std::ranges::count(kinds, "half-open -> open"), 2);
    EXPECT_EQ(std::ranges::count(kinds, "probe"), 2) << "both";
    for (const Event& event : events) {
        if (event.text("event") != "probe") continue;
        EXPECT_EQ(event.text("reason"), "deadline");
        EXPECT_EQ(event.text("verdict"), "failure");
        EXPECT_EQ(event.text("result"), "lost");
        EXPECT_EQ(event.number_in("probes", "failed"), 1);
        if (event.text("member") == asked.member()) {
            EXPECT_TRUE(event.is_null("outcome"));
        }
    }
    const MetricsPage metrics(httpd);
    EXPECT_EQ(metrics.value("probes_total", asked.member(), {"result=\"lost\""}), 1);
    EXPECT_EQ(metrics.value("probes_total", asked.member(), {"result=\"success\""}), 0) << "though it came, later";
}

TEST_P(LostProbe, ThatARuleIgnoresIsNeutralAndAtFifteenOfThemTheMemberOpensAgainAtTheSameLevel) {
    Backend app("app");
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerProbes 2\nCircuitBreakerVerdict ignore 404\n",
                     plain_worker(app)));
    httpd.start();
    trip(httpd, app);
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    app.answer(Reply::status(404));
    for (std::uint64_t i = 1; i <= 15; ++i) {
        EXPECT_EQ(BreakerPage(httpd).member(app).number("Probes"), i - 1);
        EXPECT_EQ(statuses(1, httpd.url("/app/x")), "404");
        ASSERT_TRUE(wait_for_counter(httpd, app, "Outcome-4xx", i));
        ASSERT_TRUE(wait_for_no_permits(httpd, app));
        EXPECT_EQ(state_of(httpd, app), i < 15 ? "half-open" : "open");
    }
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Level"), 0U);
    EXPECT_TRUE(httpd.wait_for_error_line("half-open -> open: probes proved nothing"));
    app.answer_as_usual();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "200 200 200");
    EXPECT_EQ(state_of(httpd, app), "closed");
}

TEST_P(LostProbe, WhoseClientLeavesInTheMiddleOfTheDownloadIsNeutral) {
    Backend app("app");
    Httpd httpd(site(quick_policy, plain_worker(app)));
    httpd.start();
    trip(httpd, app);
    app.answer(Reply::of_size(8'000'000).stalling(4'000'000));
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    RawClient client(httpd.port());
    ASSERT_TRUE(client.send("GET /app/x HTTP/1.1\r\nHost: me\r\n\r\n"));
    EXPECT_NE(client.read_until("\r\n\r\n").find(" 200 "), std::string::npos);
    client.reset();
    app.release();
    ASSERT_TRUE(wait_for_counter(httpd, app, "Outcome-client", 1));
    ASSERT_TRUE(wait_for_no_permits(httpd, app));
    EXPECT_EQ(state_of(httpd, app), "half-open");
    app.answer_as_usual();
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "200");
    EXPECT_EQ(state_of(httpd, app), "closed");
}

TEST_P(LostProbe, ThatStreamsForEverIsJudgedByItsHeadersWhenItHasSettled) {
    Backend app("app");
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerSettle 300ms\n" + metrics_location,
                     plain_worker(app, "upgrade=websocket")));
    httpd.start();
    trip(httpd, app);
    app.answer_path("/stream", Reply::of_size(1'000'000).in_chunks().dripping(50, 20ms));
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    RawClient client(httpd.port());
    ASSERT_TRUE(client.send("GET /app/stream HTTP/1.1\r\nHost: me\r\n\r\n"));
    EXPECT_NE(client.read_until("\r\n\r\n").find(" 200 "), std::string::npos);
    EXPECT_TRUE(wait_for_state(httpd, app, "closed"));
    EXPECT_GE(MetricsPage(httpd).value("state_seconds_total", app, {"state=\"half-open\""}), 0.3)
        << "not before it has settled";
    EXPECT_TRUE(wait_for_no_permits(httpd, app));
    EXPECT_EQ(app.concurrent(), 1U) << "it goes on";

    // A tunnel is judged at once: nothing ever passes through it here.
    trip(httpd, app);
    app.answer(Reply::upgrade());
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    RawClient tunnel(httpd.port());
    ASSERT_TRUE(tunnel.send("GET /app/t HTTP/1.1\r\nHost: me\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
    EXPECT_NE(tunnel.read_until("\r\n\r\n").find(" 101 "), std::string::npos);
    EXPECT_TRUE(wait_for_state(httpd, app, "closed"));
    EXPECT_TRUE(wait_for_no_permits(httpd, app));
    ASSERT_TRUE(tunnel.send("still there"));
    EXPECT_EQ(tunnel.read_until("there"), "still there");
}

TEST_P(LostProbe, OfAKilledChildIsNeutralAndItsSlotIsTakenAgainButNeverTwice) {
    Backend app("app");
    HttpdOptions options = site(std::string(quick_policy) + "CircuitBreakerProbes 3 concurrent=2\n", plain_worker(app));
    options.children = 4;
    Httpd httpd(options);
    httpd.start();
    trip(httpd, app);
    app.hold();
    BackgroundLoad clients(httpd.url("/app/x"), {.threads = 12, .keep_connections = false});
    for (unsigned round = 1; round <= 3; ++round) {
        ASSERT_TRUE(app.wait_for_requests(2 * round)) << httpd.describe();
        ASSERT_TRUE(app.wait_for_concurrent(2));
        EXPECT_EQ(BreakerPage(httpd).member(app).number("Probes-in-flight"), 2U);
        for (const pid_t child : httpd.children())
            EXPECT_TRUE(httpd.kill_child(child));
    }
    ASSERT_TRUE(app.wait_for_requests(8)) << httpd.describe();
    EXPECT_EQ(app.peak(), 2U);
    EXPECT_EQ(transition_lines(httpd).size(), 2U) << "a killed child proves nothing\n" << httpd.describe();
    app.release();
    EXPECT_TRUE(wait_for_state(httpd, app, "closed"));
    EXPECT_TRUE(app.wait_for_requests(50)) << "it has its traffic back";
    (void)clients.finish();
    EXPECT_TRUE(wait_for_no_permits(httpd, app));
    EXPECT_EQ(transition_lines(httpd).size(), 3U) << httpd.describe();
}

TEST_P(LostProbe, OfChildrenKilledAtAnyMomentNeverWedgesTheBreaker) {
    Backend app("app");
    HttpdOptions options = site(std::string(quick_policy) +
                                    "CircuitBreakerProbes 3 concurrent=2 tolerate=1\n"
                                    "CircuitBreakerOpenTime 100ms jitter=0 factor=1\n",
                                plain_worker(app));
    options.children = 4;
    Httpd httpd(options);
    httpd.start();
    trip(httpd, app);
    std::atomic<unsigned> turn{0};
    app.answer([&](const Request&) { return (++turn % 3 == 0 ? Reply::ok() : Reply::status(502)).after(4ms); });
    BackgroundLoad clients(httpd.url("/app/x"), {.threads = 12, .keep_connections = false});
    for (unsigned i = 0; i < 8; ++i) {
        ASSERT_TRUE(clients.wait_for_answers(20)) << httpd.describe();
        const std::vector<pid_t> children = httpd.children();
        if (!children.empty()) (void)httpd.kill_child(children[i % children.size()]);
    }
    EXPECT_LE(app.peak(), 2U);
    EXPECT_GT(app.requests(), 0U);
    app.answer_as_usual();
    EXPECT_TRUE(wait_for_state(httpd, app, "closed")) << httpd.describe();
    app.forget();
    EXPECT_TRUE(app.wait_for_requests(100)) << "it has its traffic back";
    (void)clients.finish();
    EXPECT_TRUE(wait_for_no_permits(httpd, app));
}

TEST(LostProbesLease, HasTimeForTheConnectAndThenForTheAnswer) {
    WireBackend app("app", fcgi());
    HttpdOptions options = site(Mpm::event,
                                std::string(quick_policy) + "CircuitBreakerConsecutiveFailures 1\n" +
                                    "CircuitBreakerProbeTimeout 3s\nCircuitBreakerSettle 0s\n",
                                "ProxyPass /app " + app.member() + " timeout=20 connectiontimeout=3\n");
    options.add_modules = {"proxy_fcgi"};
    Httpd httpd(options);
    httpd.start();
    app.answer(WireReply::status(503));
    EXPECT_EQ(statuses(1, httpd.url("/app/trip")), "503");
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app.member()));
    app.answer(WireReply::nothing(Ending::silence));
    auto probe = get_later(httpd.url("/app/x"));
    ASSERT_TRUE(app.wait_for_hanging(1));
    std::this_thread::sleep_for(4500ms);  // more than either and the second on top, and less than both
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "503");
    const BreakerBlock block = BreakerPage(httpd).member(app.member());
    EXPECT_EQ(block.at("State"), "half-open");
    EXPECT_EQ(block.number("Probes-lost"), 0U);
    app.release();
    (void)probe.get();
}

}  // namespace
}  // namespace cb::test
