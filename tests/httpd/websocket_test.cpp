// WebSocket, over http:// with upgrade=websocket, over ws:// (mod_proxy_http again, or mod_proxy_wstunnel by itself).
#include "outcomes.hpp"

namespace cb::test {
namespace {

struct Way {
    std::string name;
    std::string scheme;
    std::string parameters;
    std::string lines;
};
void PrintTo(const Way& way, std::ostream* out) {
    *out << way.name;
}

class WebSocket : public testing::TestWithParam<Way> {
  protected:
    WebSocket() {
        HttpdOptions options = site(Mpm::event, std::string(quick_policy) + GetParam().lines,
                                    "ProxyPass /brief " + brief_member() + " timeout=1 " + GetParam().parameters +
                                        "\nProxyPass /app " + member() + " " + GetParam().parameters + "\n");
        options.add_modules = {"proxy_wstunnel"};
        httpd_ = std::make_unique<Httpd>(options);
        httpd_->start();
        app_.answer(Reply::upgrade());
    }

    std::string member() const { return GetParam().scheme + "://127.0.0.1:" + std::to_string(app_.port()); }
    BreakerBlock block() const { return BreakerPage(*httpd_).member(member()); }
    bool wait_for_calls(std::uint64_t calls) const {
        return wait_until([&] { return block().number("Calls") == calls; }, patience, "the verdict");
    }
    /// Asks for a tunnel; what came back up to the end of the headers.
    static std::string upgrade(RawClient& client) {
        if (!client.send("GET /app/chat HTTP/1.1\r\nHost: me\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"))
            return "";
        return client.read_until("\r\n\r\n");
    }
    std::string upgrade() const {
        RawClient client(httpd_->port());
        return upgrade(client);
    }
    /// The same backend with a timeout of a second; a tunnel that is idle for as long ends, too.
    std::string brief_member() const { return member() + "/brief"; }

    Backend app_{"app"};
    std::unique_ptr<Httpd> httpd_;
};

INSTANTIATE_TEST_SUITE_P(Ways, WebSocket,
                         testing::Values(Way{"http", "http", "upgrade=websocket", ""}, Way{"ws", "ws", "", ""},
                                         Way{"wstunnel", "ws", "", "ProxyWebsocketFallbackToProxyHttp Off\n"}),
                         [](const auto& info) { return info.param.name; });

TEST_P(WebSocket, IsJudgedWhenTheTunnelBeginsAndEchoes) {
    RawClient client(httpd_->port());
    EXPECT_NE(upgrade(client).find(" 101 "), std::string::npos);
    ASSERT_TRUE(wait_for_calls(1)) << "while the tunnel lasts";
    EXPECT_EQ(block().number("Outcome-1xx"), 1U);
    EXPECT_EQ(block().number("Verdict-success"), 1U);
    EXPECT_EQ(block().number("In-flight"), 0U);
    ASSERT_TRUE(client.send("hello"));
    EXPECT_EQ(client.read_until("hello"), "hello");
    client.reset();
    EXPECT_TRUE(app_.wait_until_quiet());
    EXPECT_EQ(block().number("Calls"), 1U) << "a tunnel that breaks is nobody's failure";
}

TEST_P(WebSocket, FailuresAreToldApart) {
    app_.refuse();
    EXPECT_NE(upgrade().find(" 503 "), std::string::npos);
    EXPECT_EQ(block().number("Outcome-connect"), 1U);
    app_.accept_again();
    app_.answer(Reply::reset());
    (void)upgrade();
    ASSERT_TRUE(wait_for_calls(2));
    EXPECT_EQ(block().number("Outcome-reset"), 1U);
    if (GetParam().name == "wstunnel") return;  // it waits without a timeout
    app_.answer(Reply::hang());
    RawClient client(httpd_->port());
    ASSERT_TRUE(
        client.send("GET /brief/chat HTTP/1.1\r\nHost: me\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
    EXPECT_TRUE(wait_until([&] { return BreakerPage(*httpd_).member(brief_member()).number("Outcome-timeout") == 1; },
                           patience, "the verdict"));
}

TEST_P(WebSocket, TripsRefusesProbesAndRecovers) {
    app_.refuse();
    for (int i = 0; i < 3; ++i)
        EXPECT_NE(upgrade().find(" 503 "), std::string::npos);
    EXPECT_EQ(block().at("State"), "open");
    app_.accept_again();
    ASSERT_TRUE(wait_until([&] { return block().number("Next-probe-ms") == 0; }, patience, "the open time"));
    // The probe's tunnel stays, its slot does not.
    RawClient probe(httpd_->port());
    EXPECT_NE(upgrade(probe).find(" 101 "), std::string::npos);
    ASSERT_TRUE(wait_until([&] { return block().at("State") == "closed"; }, patience, "the recovery"));
    EXPECT_EQ(block().number("Leases"), 0U);
    EXPECT_NE(upgrade().find(" 101 "), std::string::npos);
    ASSERT_TRUE(probe.send("still there"));
    EXPECT_EQ(probe.read_until("still there"), "still there");
}

TEST_P(WebSocket, AClientThatLeavesBeforeTheAnswerIsNoFailureOfTheTunnels) {
    if (GetParam().name != "wstunnel") return;  // mod_proxy_http does not look at its client while it waits
    app_.hold();
    RawClient client(httpd_->port());
    ASSERT_TRUE(client.send("GET /app/chat HTTP/1.1\r\nHost: me\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
    ASSERT_TRUE(app_.wait_for_concurrent(1));
    client.close();
    ASSERT_TRUE(wait_for_calls(1));
    EXPECT_EQ(block().number("Outcome-client"), 1U);
    EXPECT_EQ(block().number("Verdict-ignore"), 1U);
}

TEST_P(WebSocket, AMemberThatSaysNothingLeavesTheNextOnesAnswerWhole) {
    Backend other("other");
    httpd_->set_config(httpd_->options().config +
                       "CircuitBreakerFailover All\n<Proxy balancer://both>\n    BalancerMember " + member() +
                       " loadfactor=100 " + GetParam().parameters + "\n    BalancerMember " + other.member() +
                       "\n</Proxy>\nProxyPass /both balancer://both\n");
    ASSERT_TRUE(httpd_->restart());
    app_.answer(Reply::nothing(Ending::fin));
    RawClient client(httpd_->port());
    ASSERT_TRUE(
        client.send("GET /both/chat HTTP/1.1\r\nHost: me\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
    const std::string answer = client.read_until("\r\n\r\n");
    EXPECT_EQ(answer.substr(0, 13), "HTTP/1.1 200 ");
    EXPECT_NE(answer.find("X-Backend: other"), std::string::npos) << answer;
}

TEST_P(WebSocket, AnAnswerThatHasGoneToTheClientIsNotFollowedByAnotherMembers) {
    Backend other("other");
    httpd_->set_config(httpd_->options().config +
                       "CircuitBreakerFailover All\n<Proxy balancer://both>\n    BalancerMember " + member() +
                       " loadfactor=100 " + GetParam().parameters + "\n    BalancerMember " + GetParam().scheme +
                       "://127.0.0.1:" + std::to_string(other.port()) + " " + GetParam().parameters +
                       "\n</Proxy>\nProxyPass /both balancer://both\n");
    ASSERT_TRUE(httpd_->restart());
    const bool is_passed_at_once = GetParam().name == "wstunnel";
    for (Reply reply : {Reply::status(503, "not now").closing(), Reply::garbage()}) {
        app_.answer(reply);
        RawClient client(httpd_->port());
        ASSERT_TRUE(
            client.send("GET /both/chat HTTP/1.1\r\nHost: me\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
        const std::string answer = is_passed_at_once ? client.read_to_end() : client.read_until("\r\n\r\n");
        EXPECT_EQ(answer.find("X-Backend: other") == std::string::npos, is_passed_at_once) << answer;
    }
    EXPECT_EQ(other.requests(), is_passed_at_once ? 0U : 2U);
}

TEST_P(WebSocket, AnswersThatAreNoTunnelAreTheBackendsOwn) {
    httpd_->set_config(httpd_->options().config + long_open);
    ASSERT_TRUE(httpd_->restart());
    app_.answer(Reply::status(503, "not now"));
    for (int i = 0; i < 3; ++i)
        EXPECT_NE(upgrade().find(" 503 "), std::string::npos);
    EXPECT_EQ(block().number("Outcome-5xx"), 3U);
    EXPECT_EQ(block().at("State"), "open");
    EXPECT_NE(upgrade().find("Retry-After"), std::string::npos);
    EXPECT_EQ(app_.requests(), 3U);
}

}  // namespace
}  // namespace cb::test
