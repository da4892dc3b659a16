// Connections to members that are kept: which of them the member has closed while it was idle (`stale`), and on which
// it has died over a request (`reset`); and what is said when `stale` goes on.
#include <sys/socket.h>

#include "evidence.hpp"
#include "real_servers.hpp"

namespace cb::test {
namespace {

using Clock = std::chrono::steady_clock;

/// How a member ends a connection on which it has answered before, over the next request.
struct Death {
    milliseconds after{0};
    Ending ending = Ending::fin;
};

/// A member that answers the first request of each connection.
class Mortal {
  public:
    virtual ~Mortal() = default;
    [[nodiscard]] virtual std::string url() const = 0;
    /// From now on it dies over the next request on every connection that it has.
    virtual void die(const Death& death) = 0;
};

class PlainMember final : public Mortal {
  public:
    [[nodiscard]] std::string url() const override { return app_->member(); }
    void die(const Death& death) override {
        app_->answer([death](const Request& request) {
            return request.nth_on_connection > 1 ? Reply::nothing(death.ending).after(death.after) : Reply::ok();
        });
    }

    explicit PlainMember(bool on_unix_socket) {
        app_ = on_unix_socket ? std::make_unique<Backend>("app", OnUnixSocket{}) : std::make_unique<Backend>("app");
    }

  private:
    std::unique_ptr<Backend> app_;
};

/// An httpd over TLS. Its bytes pass through here; when it dies, the request is not passed on.
class TlsMember final : public Mortal {
  public:
    TlsMember() {
        const std::string port = std::to_string(port_.number());
        HttpdOptions options{.config = "Listen 127.0.0.1:" + port + "\n<VirtualHost *:" + port +
                                       ">\n    SSLEngine On\n    SSLCertificateFile " +
                                       certificates_.certificate_file("known") + "\n    SSLCertificateKeyFile " +
                                       certificates_.certificate_file("known.key") + "\n</VirtualHost>\n"};
        options.add_modules = {"socache_shmcb", "ssl"};
        server_ = std::make_unique<Httpd>(options);
        server_->put_document("x", "ok");
        server_->start();
    }
    [[nodiscard]] std::string url() const override { return "https://127.0.0.1:" + std::to_string(relay_.port()); }
    void die(const Death& death) override {
        const std::lock_guard lock(mutex_);
        death_ = death;
        dying_ = relay_.accepted();
    }

  private:
    void relay(Connection& connection) {
        const Socket server = connect_to_port(port_.number());
        std::thread answers([&] {
            char piece[8192];
            ssize_t count = 0;
            while ((count = ::recv(server.fd(), piece, sizeof piece, 0)) > 0) {
                if (!connection.send({piece, static_cast<std::size_t>(count)})) break;
            }
        });
        char piece[8192];
        std::size_t count = 0;
        std::optional<Death> death;
        while ((count = connection.receive(piece, sizeof piece)) > 0) {
            death = death_of(connection);
            if (death) {
                (void)connection.wait([] { return false; }, Clock::now() + death->after);
                break;
            }
            if (!send_all(server.fd(), {piece, count})) break;
        }
        ::shutdown(server.fd(), SHUT_RDWR);
        answers.join();
        if (death && death->ending == Ending::reset) connection.reset();
    }
    [[nodiscard]] std::optional<Death> death_of(const Connection& connection) {
        const std::lock_guard lock(mutex_);
        return connection.number() <= dying_ ? std::optional(death_) : std::nullopt;
    }

    TlsServer certificates_;
    ReservedPort port_;
    std::unique_ptr<Httpd> server_;
    std::mutex mutex_;  // guards the next two
    Death death_;
    unsigned dying_ = 0;
    ConnectionServer relay_{[this](Connection& connection) { relay(connection); }};
};

class KeptConnection : public testing::TestWithParam<std::string> {
  protected:
    KeptConnection() {
        if (GetParam() == "https") {
            member_ = std::make_unique<TlsMember>();
        } else {
            member_ = std::make_unique<PlainMember>(GetParam() == "http_unix");
        }
    }
    void start(const std::string& policy, const std::string& parameters = "") {
        HttpdOptions options = one_child(site(
            Mpm::event, policy, "SSLProxyEngine On\nProxyPass /app \"" + member_->url() + "\" " + parameters + "\n"));
        options.add_modules = {"socache_shmcb", "ssl"};
        httpd_ = std::make_unique<Httpd>(options);
        httpd_->start();
    }
    [[nodiscard]] int ask() const { return get(httpd_->url("/app/x")).status; }
    /// A connection that is kept, and has been idle or not; and the request over which the member dies.
    std::string death_over_next(const Death& death, bool is_idle) {
        EXPECT_EQ(ask(), 200);
        const OutcomeCounters before(*httpd_, member_->url());
        member_->die(death);
        if (is_idle) let_connections_idle();
        const Stopwatch stopwatch;
        EXPECT_NE(ask(), 200);
        was_at_once_ = stopwatch.was_at_once();
        return OutcomeCounters::of_next_call(*httpd_, member_->url(), before) - before;
    }
    /// The same of an idle one, at once: once more where the machine stood still meanwhile.
    std::string death_at_once(const Death& death) {
        std::string outcomes;
        const auto is_at_once = [&] {
            outcomes = death_over_next(death, true);
            return was_at_once_;
        };
        EXPECT_TRUE(wait_until(is_at_once, patience, "a death at once"));
        return outcomes;
    }

    bool was_at_once_ = false;  // the last death
    std::unique_ptr<Mortal> member_;
    std::unique_ptr<Httpd> httpd_;
};
INSTANTIATE_TEST_SUITE_P(Schemes, KeptConnection, testing::Values("http", "http_unix", "https"),
                         [](const auto& info) { return info.param; });

TEST_P(KeptConnection, ThatTheMemberHadClosedWhileItWasIdleIsStale) {
    start(counting_policy);
    for (const Ending ending : {Ending::fin, Ending::reset})
        EXPECT_EQ(death_at_once({.ending = ending}), "Outcome-stale Verdict-ignore");
}

TEST_P(KeptConnection, OnWhichTheMemberDiesAfterAWhileIsReset) {
    start(counting_policy);
    for (const Ending ending : {Ending::fin, Ending::reset})
        EXPECT_EQ(death_over_next({.after = 300ms, .ending = ending}, true), "Outcome-reset Verdict-failure");
}

TEST_P(KeptConnection, ThatHasServedAnotherRequestAMomentAgoWasNotIdle) {
    start(counting_policy);
    for (const Ending ending : {Ending::fin, Ending::reset}) {
        std::string outcomes;
        const auto is_quick = [&] {
            const OutcomeCounters before(*httpd_, member_->url());
            const Stopwatch stopwatch;  // httpd may have given the connection back before the client knows
            EXPECT_EQ(ask(), 200);
            member_->die({.ending = ending});
            EXPECT_NE(ask(), 200);
            const bool was_busy = stopwatch.was_at_once();
            EXPECT_TRUE(wait_for_no_permits(*httpd_, member_->url()));
            outcomes = OutcomeCounters(*httpd_, member_->url()) - before;
            return was_busy;
        };
        // (On a machine that stands still meanwhile it was idle.)
        EXPECT_TRUE(wait_until(is_quick, patience, "two requests at once"));
        EXPECT_EQ(outcomes, "Outcome-2xx Outcome-reset Verdict-failure Verdict-success");
    }
}

TEST_P(KeptConnection, OnWhichEachSecondRequestKillsAWorkerOpensTheBreaker) {
    for (const milliseconds after : {0ms, 300ms}) {
        start(
            "CircuitBreaker On\nCircuitBreakerConsecutiveFailures Off\nCircuitBreakerFailureRate 30\n"
            "CircuitBreakerMinimumCalls 6\n" +
            std::string(long_open));
        const auto is_open = [&] {
            member_->die({.after = after});
            (void)ask();
            return BreakerPage(*httpd_).member(member_->url()).at("State") == "open";
        };
        EXPECT_TRUE(wait_until(is_open, patience, "a trip")) << after.count() << " ms";
    }
}

TEST_P(KeptConnection, ThatIsStaleAgainAndAgainIsSaidOnceWithWhatHelps) {
    start(std::string(counting_policy) + "CircuitBreakerWindow 60s\n");
    const auto lines = [&] { return httpd_->error_lines_with(": stale: "); };
    // Counted from the first stale one on. (Where the machine stood still, the call may be a `reset`.)
    unsigned calls = 0;
    unsigned stale = 0;
    std::string figures;  // when more than half of ten or more were stale
    const auto one_more = [&] {
        const std::string outcomes = death_over_next({}, true);
        if (was_at_once_) {
            EXPECT_EQ(outcomes, "Outcome-stale Verdict-ignore");
        }
        const bool is_stale = outcomes == "Outcome-stale Verdict-ignore";
        stale += is_stale ? 1 : 0;
        calls += stale > 0 ? 1 : 0;
        if (figures.empty() && calls >= 10 && stale * 2 > calls)
            figures = std::to_string(stale) + " of the last " + std::to_string(calls) + " calls";
    };
    constexpr int kMost = 100;
    int deaths = 0;
    for (; calls < 9 && deaths < kMost; ++deaths)
        one_more();
    EXPECT_EQ(lines().size(), 0U);
    for (; (calls < 13 || figures.empty()) && deaths < kMost; ++deaths)
        one_more();
    ASSERT_LT(deaths, kMost) << stale << " of " << calls << " were stale";
    ASSERT_EQ(lines().size(), 1U);
    EXPECT_NE(lines()[0].find("[circuitbreaker:warn]"), std::string::npos) << lines()[0];
    EXPECT_NE(lines()[0].find(": stale: " + figures), std::string::npos) << lines()[0] << figures;
    EXPECT_NE(lines()[0].find("ttl="), std::string::npos);
    EXPECT_NE(lines()[0].find("disablereuse=on"), std::string::npos);
}

TEST(KeptConnections, OfWhichFewAreStaleSayNothing) {
    Backend app("app");
    Httpd httpd(one_child(site(Mpm::event, std::string(counting_policy), plain_worker(app))));
    httpd.start();
    // Every third call on a kept connection.
    app.answer([](const Request& request) {
        return request.nth_on_connection > 3 ? Reply::nothing(Ending::fin) : Reply::ok();
    });
    unsigned deaths_at_once = 0;
    for (int i = 0; i < 48; ++i) {
        if (i % 4 == 3) let_connections_idle();
        const Stopwatch stopwatch;
        EXPECT_EQ(get(httpd.url("/app/x")).status == 200, i % 4 != 3);
        deaths_at_once += i % 4 == 3 && stopwatch.was_at_once() ? 1 : 0;
    }
    const BreakerBlock block = BreakerPage(httpd).member(app);
    EXPECT_EQ(block.number("Outcome-stale") + block.number("Outcome-reset"), 12U);
    EXPECT_GE(block.number("Outcome-stale"), std::max(deaths_at_once, 1U))
        << "the others while the machine stood still";
    EXPECT_EQ(httpd.error_lines_with(": stale: ").size(), 0U);
}

}  // namespace
}  // namespace cb::test
