// The breaker's whole course over every protocol of mod_proxy: trip, refuse, probe, recover; full pools; what is sent
// once and what goes on to another member.
#include "protocols.hpp"

namespace cb::test {
namespace {

class ProtocolBreaker : public testing::TestWithParam<Protocol> {
  protected:
    static std::unique_ptr<WireBackend> new_backend(const std::string& name) {
        return std::make_unique<WireBackend>(name, GetParam().dialect(), GetParam().on_unix_socket);
    }
    /// mod_proxy_http2 sends a GET once more by itself, within the same call, when the connection breaks.
    static bool is_asked_again() { return GetParam().name == "h2c"; }
    static std::uint64_t sent_by(std::uint64_t broken_calls) { return broken_calls * (is_asked_again() ? 2 : 1); }
    static std::uint64_t number(const Httpd& httpd, const WireBackend& backend, const std::string& key) {
        return BreakerPage(httpd).member(backend.member()).number(key);
    }
};
INSTANTIATE_TEST_SUITE_P(All, ProtocolBreaker, testing::ValuesIn(protocols()), protocol_name);

TEST_P(ProtocolBreaker, TripsRefusesProbesAndRecovers) {
    const auto app = new_backend("app");
    Httpd httpd(wire_site(quick_policy, worker_at("/app", *app, GetParam(), "timeout=5")));
    httpd.start();
    const auto state = [&] { return BreakerPage(httpd).member(app->member()).at("State"); };

    app->refuse();
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "503 503 503");
    EXPECT_EQ(state(), "open");
    app->accept_again();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app->member()));
    app->answer(WireReply::nothing(Ending::reset));
    EXPECT_NE(get(httpd.url("/app/x")).status, 200);
    EXPECT_EQ(state(), "open") << "a failed probe";
    // At once, or after one more probe on a machine that stands still just then.
    EXPECT_TRUE(wait_until(
        [&] {
            const Response refusal = get(httpd.url("/app/x"));
            return refusal.status == 503 && refusal.headers.has("Retry-After");
        },
        patience, "a refusal"));
    EXPECT_EQ(app->requests(), sent_by(number(httpd, *app, "Probes"))) << "probes alone";

    app->answer(WireReply::status(200));
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app->member()));
    EXPECT_EQ(get(httpd.url("/app/x")).backend(), "app");
    EXPECT_EQ(state(), "closed");
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "200 200 200");

    const unsigned asked = app->requests();
    app->answer(WireReply::status(503));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "503 503 503");
    EXPECT_EQ(app->requests(), asked + 3);
    EXPECT_EQ(state(), "open");
    EXPECT_EQ(transitions(httpd, "closed", "open"), 2U);
    EXPECT_EQ(number(httpd, *app, "In-flight") + number(httpd, *app, "Leases"), 0U);
}

/// mod_proxy puts the fields of a script's answer where it puts those of no other.
class ScriptAnswer : public testing::TestWithParam<Protocol> {
  protected:
    static std::vector<Protocol> of_scripts() {
        std::vector<Protocol> some;
        std::copy_if(protocols().begin(), protocols().end(), std::back_inserter(some), [](const Protocol& protocol) {
            return protocol.name.starts_with("fcgi") || protocol.name.starts_with("scgi") ||
                   protocol.name.starts_with("uwsgi");
        });
        return some;
    }
    void answer(int status, const std::string& body, const std::string& fields) {
        WireReply reply = WireReply::status(status, body);
        reply.more_fields = fields;
        app_.answer(reply);
    }
    WireBackend app_{"app", GetParam().dialect(), GetParam().on_unix_socket};

  public:
    static inline const auto scripts = of_scripts();
};
INSTANTIATE_TEST_SUITE_P(Protocols, ScriptAnswer, testing::ValuesIn(ScriptAnswer::scripts), protocol_name);

TEST_P(ScriptAnswer, IsReadForTheTimeThatItAsksFor) {
    Httpd httpd(wire_site(std::string(quick_policy) + "CircuitBreakerOpenTime 100s max=3000s jitter=0 retry-after=On\n",
                          worker_at("/app", app_, GetParam())));
    httpd.start();
    answer(503, "", "Retry-After: 1000\r\n");
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "503 503 503");
    EXPECT_GT(BreakerPage(httpd).member(app_.member()).number("Next-probe-ms"), 900'000U) << httpd.describe();
}

TEST_P(ScriptAnswer, ThatIsCompressedIsLookedAtByNoRule) {
    Httpd httpd(wire_site(std::string(counting_policy) + "CircuitBreakerVerdict failure 200 json=/error:7\n",
                          worker_at("/app", app_, GetParam())));
    httpd.start();
    const auto failures = [&] { return BreakerPage(httpd).member(app_.member()).number("Verdict-failure"); };
    const std::string body = R"({"error": 7})";
    // Over SCGI no body can be looked at.
    const std::uint64_t of_plain = GetParam().name.starts_with("scgi") ? 0 : 1;
    answer(200, body, "Content-Type: application/json\r\n");
    EXPECT_EQ(get(httpd.url("/app/x")).status, 200);
    EXPECT_EQ(failures(), of_plain);
    answer(200, body, "Content-Type: application/json\r\nContent-Encoding: gzip\r\n");
    EXPECT_EQ(get(httpd.url("/app/x")).status, 200);
    EXPECT_EQ(failures(), of_plain) << "so it says";
}

TEST_P(ProtocolBreaker, AProbeThatIsNeverAnsweredIsLostAtTheEndOfItsLease) {
    const auto app = new_backend("app");
    Httpd httpd(wire_site(std::string(quick_policy) + "CircuitBreakerProbeTimeout 100ms\nCircuitBreakerSettle 0s\n",
                          worker_at("/app", *app, GetParam(), "timeout=20 connectiontimeout=100ms")));
    httpd.start();
    app->answer(WireReply::status(503));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "503 503 503");
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app->member()));
    app->answer(WireReply::nothing(Ending::silence));
    auto probe = get_later(httpd.url("/app/x"));
    ASSERT_TRUE(app->wait_for_hanging(1));
    // Whoever asks for the slot then finds it expired.
    EXPECT_TRUE(wait_until(
        [&] { return get(httpd.url("/app/x")).status == 503 && transitions(httpd, "half-open", "open") == 1; },
        patience, "the lease's end"));
    EXPECT_EQ(number(httpd, *app, "Probes-lost"), 1U);
    app->release();
    (void)probe.get();
}

TEST_P(ProtocolBreaker, ARuleLooksIntoTheBody) {
    const auto app = new_backend("app");
    Httpd httpd(wire_site(std::string(counting_policy) + "CircuitBreakerVerdict failure 200 json=/state:down\n",
                          worker_at("/app", *app, GetParam())));
    httpd.start();
    app->answer(WireReply::status(200, "{\"state\": \"down\"}"));
    const Response response = get(httpd.url("/app/x"));
    EXPECT_EQ(response.body, "{\"state\": \"down\"}");
    EXPECT_TRUE(wait_until([&] { return number(httpd, *app, "Calls") == 1; }, patience, "its verdict"));
    // SCGI's body is read from the socket while it is passed on, and by nobody before.
    const bool is_seen = app->dialect().scheme != "scgi";
    EXPECT_EQ(number(httpd, *app, "Verdict-failure"), is_seen ? 1U : 0U);
}

TEST_P(ProtocolBreaker, AFullPoolIsLocalAndTripsNothing) {
    const auto app = new_backend("app");
    HttpdOptions options = wire_site(std::string(quick_policy) + "CircuitBreakerConsecutiveFailures 1\n",
                                     worker_at("/app", *app, GetParam(), "max=1 acquire=10 timeout=5"));
    options.children = 1;
    options.mpm_directives = {"ServerLimit 1", "MaxRequestWorkers " + std::to_string(options.threads)};
    Httpd httpd(options);
    httpd.start();
    app->answer(WireReply::nothing(Ending::silence));
    std::future<Response> holder = get_later(httpd.url("/app/x"));
    ASSERT_TRUE(app->wait_for_hanging(1));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "503 503 503");
    EXPECT_EQ(number(httpd, *app, "Outcome-local"), 3U);
    EXPECT_EQ(BreakerPage(httpd).member(app->member()).at("State"), "closed");
    app->answer(WireReply::status(200));
    app->release();
    EXPECT_EQ(holder.get().status == 200, is_asked_again());
}

TEST_P(ProtocolBreaker, ARequestThatWasSentIsNotSentToAnotherMember) {
    const auto bad = new_backend("bad");
    const auto good = new_backend("good");
    const std::string parameters = " " + GetParam().parameters + " timeout=5";
    Httpd httpd(wire_site(counting_policy, "<Proxy balancer://app>\n    BalancerMember \"" + bad->member() + "\"" +
                                               parameters + "\n    BalancerMember \"" + good->member() + "\"" +
                                               parameters + " status=+H\n</Proxy>\nProxyPass /app balancer://app\n"));
    httpd.start();
    bad->refuse();
    const RequestOptions post{.method = "POST", .body = "an order"};
    EXPECT_EQ(get(httpd.url("/app/x"), post).backend(), "good") << "nothing had been sent";
    bad->accept_again();
    for (const Ending ending : {Ending::fin, Ending::reset}) {
        bad->answer(WireReply::nothing(ending));
        EXPECT_NE(get(httpd.url("/app/x"), post).status, 200);
    }
    EXPECT_EQ(bad->requests(), 2U);
    EXPECT_EQ(good->requests(), 1U);
    EXPECT_EQ(number(httpd, *bad, "Outcome-connect"), 1U);
    EXPECT_EQ(number(httpd, *bad, "Outcome-reset"), 2U);
}

TEST_P(ProtocolBreaker, ObserveJudgesLikeOn) {
    const auto app = new_backend("app");
    Httpd httpd(wire_site(std::string(quick_policy) + long_open + "CircuitBreaker Observe\n",
                          worker_at("/app", *app, GetParam(), "timeout=5 retry=0 status=-I")));
    httpd.start();
    app->answer(WireReply::nothing(Ending::reset));
    EXPECT_NE(get(httpd.url("/app/x")).status, 200);
    app->refuse();
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "503 503 503");
    EXPECT_EQ(number(httpd, *app, "Outcome-reset"), 1U);
    EXPECT_EQ(number(httpd, *app, "Outcome-connect"), 3U);
    EXPECT_EQ(BreakerPage(httpd).member(app->member()).at("State"), "open");
    app->accept_again();
    app->answer(WireReply::status(200));
    EXPECT_EQ(get(httpd.url("/app/x")).backend(), "app");
}

TEST_P(ProtocolBreaker, ASilentErrorLogMakesNothingWorseThanAReset) {
    const auto bad = new_backend("bad");
    const auto good = new_backend("good");
    HttpdOptions options = wire_site(std::string(quick_policy) + long_open,
                                     "<Proxy balancer://app>\n    BalancerMember \"" + bad->member() +
                                         "\" timeout=5\n    BalancerMember \"" + good->member() +
                                         "\" status=+H timeout=5\n</Proxy>\nProxyPass /app balancer://app\n");
    options.log_level = "notice proxy:crit proxy_fcgi:crit proxy_scgi:crit proxy_uwsgi:crit proxy_ajp:crit";
    Httpd httpd(options);
    httpd.start();
    bad->answer(WireReply::nothing(Ending::reset));
    EXPECT_NE(get(httpd.url("/app/x")).status, 200);
    bad->refuse();
    (void)statuses(2, httpd.url("/app/x"));
    EXPECT_EQ(number(httpd, *bad, "Verdict-failure"), 3U);
    EXPECT_EQ(BreakerPage(httpd).member(bad->member()).at("State"), "open");
    EXPECT_EQ(get(httpd.url("/app/x")).backend(), "good");
    EXPECT_EQ(bad->requests(), is_asked_again() ? 2U : 1U);
    EXPECT_EQ(good->requests(), 1U + number(httpd, *bad, "Outcome-connect")) << "never the one that had been sent";
}

}  // namespace
}  // namespace cb::test
