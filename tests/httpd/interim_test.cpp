// Interim responses: what comes before the answer is no answer, and an upload that goes on after a `100 Continue` is
// the client's affair.
#include "outcomes.hpp"

namespace cb::test {
namespace {

/// One failure or slow call trips.
const std::string touchy_policy = std::string(quick_policy) +
                                  "CircuitBreakerConsecutiveFailures 1\nCircuitBreakerSlowCall 600ms rate=1\n"
                                  "CircuitBreakerMinimumCalls 1\n";
constexpr milliseconds too_slow{800};

/// Answers with these pieces, a pause before each but the first; the last one is followed by silence.
class PiecewiseServer {
  public:
    explicit PiecewiseServer(std::vector<std::string> pieces)
        : pieces_(std::move(pieces)), server_([this](Connection& connection) { serve(connection); }) {}
    [[nodiscard]] std::string member() const { return "http://127.0.0.1:" + std::to_string(server_.port()); }

  private:
    void serve(Connection& connection) const {
        std::string request;
        char piece[1024];
        while (request.find("\r\n\r\n") == std::string::npos) {
            const std::size_t count = connection.receive(piece, sizeof piece);
            if (count == 0) return;
            request.append(piece, count);
        }
        for (std::size_t i = 0; i < pieces_.size(); ++i) {
            if (i > 0) connection.wait({}, Connection::Clock::now() + too_slow);
            if (!connection.send(pieces_[i])) return;
        }
        connection.wait([] { return false; });
    }

    const std::vector<std::string> pieces_;
    ConnectionServer server_;
};

class Interim : public TrafficTest {
  protected:
    static std::string expecting(std::size_t length) {
        return "POST /app/x HTTP/1.1\r\nHost: me\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: " +
               std::to_string(length) + "\r\n\r\n";
    }
    /// A client whose head has got its 100; the body is still to come.
    static std::unique_ptr<RawClient> continued(const Httpd& httpd, std::size_t length) {
        auto client = std::make_unique<RawClient>(httpd.port());
        EXPECT_TRUE(client->send(expecting(length)));
        EXPECT_NE(client->read_until("\r\n\r\n").find(" 100 "), std::string::npos);
        return client;
    }
    static std::string summary(const Httpd& httpd, const std::string& member) {
        const BreakerBlock block = BreakerPage(httpd).member(member);
        return block.at("State") +
               non_zero(block, {"Calls", "Slow", "Outcome-client", "Outcome-reset", "Outcome-timeout", "Outcome-1xx",
                                "Outcome-2xx", "Outcome-5xx", "Verdict-failure", "In-flight", "Leases", "Probes-lost"});
    }
    static bool wait_for_summary(const Httpd& httpd, const std::string& member, const std::string& expected) {
        return wait_for_text([&] { return summary(httpd, member); }, expected);
    }
};
INSTANTIATE_TEST_SUITE_P(Mpms, Interim, any_mpm, mpm_name);

TEST_P(Interim, ContinueIsNoAnswerAndAClientThatLeavesAfterItIsNeutral) {
    Backend app("app");
    Httpd httpd(few_threads_each(
        site(touchy_policy + "CircuitBreakerSlowCall Off\nTimeout 2\n", plain_worker(app, "timeout=60")), 1));
    httpd.start();
    auto leaving = continued(httpd, 100'000);
    ASSERT_TRUE(leaving->send(std::string(50'000, 'x')));
    leaving->reset();
    EXPECT_TRUE(wait_for_summary(httpd, app.member(), "closed Calls=1 Outcome-client=1"));
    auto stalling = continued(httpd, 100'000);
    ASSERT_TRUE(stalling->send(std::string(50'000, 'x')));
    EXPECT_NE(stalling->read_to_end().find(" 408 "), std::string::npos);
    EXPECT_TRUE(wait_for_summary(httpd, app.member(), "closed Calls=2 Outcome-client=2"));
    auto finishing = continued(httpd, 100'000);
    ASSERT_TRUE(finishing->send(std::string(100'000, 'x')));
    EXPECT_NE(finishing->read_to_end().find(" 200 "), std::string::npos);
    EXPECT_TRUE(wait_for_summary(httpd, app.member(), "closed Calls=3 Outcome-client=2 Outcome-2xx=1"));

    // A kept connection that breaks after its 100 was no keep-alive race, and what comes after it is the member's.
    app.answer(Reply::reset());
    auto reset = continued(httpd, 100'000);
    ASSERT_TRUE(reset->send(std::string(100'000, 'x')));
    EXPECT_NE(reset->read_to_end().find(" 502 "), std::string::npos);
    EXPECT_TRUE(wait_for_summary(httpd, app.member(),
                                 "open Calls=4 Outcome-client=2 Outcome-reset=1 Outcome-2xx=1 Verdict-failure=1"));
}

TEST_P(Interim, ContinueStartsTheTimeWhenTheClientHasSentItsBody) {
    Backend app("app");
    Httpd httpd(site(touchy_policy, plain_worker(app)));
    httpd.start();
    auto slow = continued(httpd, 100'000);
    ASSERT_TRUE(slow->send(std::string(50'000, 'x')));
    std::this_thread::sleep_for(too_slow);
    ASSERT_TRUE(slow->send(std::string(50'000, 'x')));
    EXPECT_NE(slow->read_to_end().find(" 200 "), std::string::npos);
    EXPECT_TRUE(wait_for_summary(httpd, app.member(), "closed Calls=1 Outcome-2xx=1"));
    app.answer(Reply::ok().after(too_slow));
    auto fast = continued(httpd, 100'000);
    ASSERT_TRUE(fast->send(std::string(100'000, 'x')));
    EXPECT_NE(fast->read_to_end().find(" 200 "), std::string::npos);
    EXPECT_TRUE(wait_for_summary(httpd, app.member(), "open Calls=2 Slow=1 Outcome-2xx=2"));
}

TEST_P(Interim, AFinalAnswerInPlaceOfAContinueIsNotSlowByItsEndBecauseItsClientUploadsSlowly) {
    // mod_proxy_http reads the rest of the body all the same, and passes the answer on afterwards. (Where the body's
    // length is known, it gives up at once, with 500.)
    PiecewiseServer app({"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"});
    Httpd httpd(site(touchy_policy + "CircuitBreakerSlowCall 600ms rate=1 until=end\n",
                     "ProxyPass /app " + app.member() + "\n"));
    httpd.start();
    RawClient client(httpd.port());
    ASSERT_TRUE(
        client.send("POST /app/x HTTP/1.1\r\nHost: me\r\nConnection: close\r\nExpect: 100-continue\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n4e20\r\n" +
                    std::string(20'000, 'x') + "\r\n"));
    std::this_thread::sleep_for(too_slow);
    ASSERT_TRUE(client.send("0\r\n\r\n"));
    EXPECT_NE(client.read_to_end().find(" 404 "), std::string::npos);
    EXPECT_TRUE(wait_for_summary(httpd, app.member(), "closed Calls=1"));
}

TEST_P(Interim, ContinueMakesNoProbeOneThatWasSent) {
    Backend app("app");
    Httpd httpd(
        site(touchy_policy + "CircuitBreakerSlowCall Off\nCircuitBreakerSettle 0s\n", plain_worker(app, "timeout=1")));
    httpd.start();
    app.answer_next(1, Reply::status(502));
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "502");
    // It may be a probe once nothing else has been one for a whole open time.
    std::unique_ptr<RawClient> probe;
    ASSERT_TRUE(wait_until(
        [&] {
            probe = std::make_unique<RawClient>(httpd.port());
            return probe->send(expecting(100'000)) && probe->read_until("\r\n\r\n").find(" 100 ") != std::string::npos;
        },
        patience, "its turn"));
    ASSERT_TRUE(probe->send(std::string(50'000, 'x')));
    EXPECT_NE(probe->read_to_end().find(" 408 "), std::string::npos) << "it is due within an open time";
    ASSERT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).status == 200; }, patience, "the slot"));
    EXPECT_EQ(transitions(httpd, "half-open", "open"), 0U) << "the client's stall is no failure of the member";
    EXPECT_TRUE(wait_for_summary(httpd, app.member(),
                                 "closed Calls=3 Outcome-client=1 Outcome-2xx=1 Outcome-5xx=1 Verdict-failure=1"));
}

TEST_P(Interim, HintsAreNoFirstByte) {
    const std::string hints = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n";
    const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    PiecewiseServer fast({hints + hints + ok});
    PiecewiseServer slow({hints, ok});
    PiecewiseServer hinting({hints});
    Httpd httpd(site(touchy_policy, "ProxyPass /fast " + fast.member() + "\nProxyPass /slow " + slow.member() +
                                        "\nProxyPass /hinting " + hinting.member() + " timeout=1\n"));
    httpd.start();
    EXPECT_EQ(get(httpd.url("/fast/x")).status, 200);
    EXPECT_TRUE(wait_for_summary(httpd, fast.member(), "closed Calls=1 Outcome-2xx=1"));
    EXPECT_EQ(get(httpd.url("/slow/x")).status, 200);
    EXPECT_TRUE(wait_for_summary(httpd, slow.member(), "open Calls=1 Slow=1 Outcome-2xx=1"));
    EXPECT_EQ(get(httpd.url("/hinting/x")).status, 502);
    EXPECT_TRUE(wait_for_summary(httpd, hinting.member(), "open Calls=1 Slow=1 Outcome-timeout=1 Verdict-failure=1"));
}

TEST_P(Interim, HintsBeforeATunnelChangeNothingAboutIt) {
    PiecewiseServer app(
        {"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
         "Connection: Upgrade\r\n\r\n"});
    Httpd httpd(site(touchy_policy, "ProxyPass /app " + app.member() + " upgrade=websocket\n"));
    httpd.start();
    RawClient tunnel(httpd.port());
    ASSERT_TRUE(tunnel.send("GET /app/t HTTP/1.1\r\nHost: me\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
    EXPECT_NE(tunnel.read_until("Upgrade: websocket").find(" 101 "), std::string::npos);
    EXPECT_TRUE(wait_for_summary(httpd, app.member(), "closed Calls=1 Outcome-1xx=1"));
    tunnel.close();
}

}  // namespace
}  // namespace cb::test
