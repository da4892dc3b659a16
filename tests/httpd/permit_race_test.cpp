// Between choosing a member and taking its permit: requests are stopped right there, all at once, and the breaker moves
// on before they do.
#include <fcntl.h>
#include <unistd.h>

#include "traffic.hpp"

namespace cb::test {
namespace {

/// The error log through a program that can be stopped. mod_proxy_balancer writes one line a request when it has chosen
/// (and nothing before, at the level set here); once the pipe is full, requests wait in that line.
class Barrier {
  public:
    /// For a server that has not been started yet.
    static void configure(Httpd& httpd) {
        httpd.options().log_level = "notice proxy_balancer:debug";
        httpd.options().config +=
            "ErrorLog \"|/usr/bin/tee -a " + (httpd.root() / "error.log").string() +
            "\"\nExtendedStatus Off\nProxyPass /busy !\n<Location /busy>\n    SetHandler server-status\n"
            "</Location>\n";
        httpd.write_config();
    }

    explicit Barrier(const Httpd& httpd) : httpd_(httpd) {
        for (const ProcessInfo& info : all_processes()) {
            if (info.parent == httpd.parent() && info.name == "tee") logger_ = info.pid;
        }
        if (logger_ == 0) throw std::runtime_error("no logger\n" + httpd.describe());
        ::kill(logger_, SIGSTOP);
        EXPECT_TRUE(wait_until([&] { return process_info(logger_)->state == 'T'; }, patience, "the logger to stop"));
        const Socket pipe(
            ::open(("/proc/" + std::to_string(logger_) + "/fd/0").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
        EXPECT_TRUE(pipe.valid());
        // To the last byte, as a short line would still find room.
        const std::string filling(4096, '\n');
        for (std::size_t size = filling.size(); size > 0; size /= 2) {
            while (::write(pipe.fd(), filling.data(), size) > 0) {
            }
        }
    }
    ~Barrier() { open(); }
    Barrier(const Barrier&) = delete;
    Barrier& operator=(const Barrier&) = delete;

    /// That many workers are busy, the one that answers this included.
    [[nodiscard]] bool wait_for_busy(unsigned workers) const {
        return wait_until(
            [&] {
                const std::string page = get(httpd_.url("/busy?auto")).body;
                const std::size_t at = page.find("BusyWorkers: ");
                return at != std::string::npos && std::stoul(page.substr(at + 13)) >= workers;
            },
            patience, "requests at the barrier");
    }
    void open() { ::kill(logger_, SIGCONT); }

  private:
    const Httpd& httpd_;
    pid_t logger_ = 0;
};

class PermitRace : public TrafficTest {
  protected:
    [[nodiscard]] static HttpdOptions roomy(const std::string& policy, const std::string& proxied) {
        HttpdOptions options = site(policy, proxied);
        options.children = GetParam() == Mpm::prefork ? 24 : 3;
        options.threads = 10;
        return options;
    }
};
INSTANTIATE_TEST_SUITE_P(Mpms, PermitRace, each_mpm, mpm_name);

TEST_P(PermitRace, OfThoseWhoHaveChosenAMemberThatMayBeProbedOnlyTheRoundGetsToIt) {
    Backend app("app");
    Httpd httpd(
        roomy(std::string(quick_policy) + "CircuitBreakerProbes 3 concurrent=2\n", balancer_of(member_line(app))));
    Barrier::configure(httpd);
    httpd.start();
    app.answer(Reply::status(502));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "502 502 502");
    app.answer_as_usual();
    app.forget();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    app.hold();
    std::vector<std::future<Response>> clients;
    {
        Barrier barrier(httpd);
        for (int i = 0; i < 16; ++i)
            clients.push_back(get_later(httpd.url("/app/x")));
        ASSERT_TRUE(barrier.wait_for_busy(17)) << httpd.describe();
        EXPECT_EQ(state_of(httpd, app), "open") << "nobody has a permit yet";
    }
    ASSERT_TRUE(app.wait_for_concurrent(2));
    ASSERT_TRUE(httpd.wait_for_access_line("status=503 method=GET path=/app/x", 14)) << httpd.describe();
    EXPECT_EQ(app.requests(), 2U);
    EXPECT_EQ(app.peak(), 2U);
    app.release();
    std::size_t served = 0;
    for (auto& client : clients) {
        const Response response = client.get();
        served += response.status == 200 ? 1U : 0U;
        EXPECT_EQ(response.status == 503, response.headers.has("Retry-After"));
    }
    EXPECT_EQ(served, 2U);
    EXPECT_EQ(transitions(httpd, "open", "half-open"), 1U);
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Probes"), 2U);
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Refused"), 14U);
    EXPECT_TRUE(wait_for_no_permits(httpd, app));
}

TEST_P(PermitRace, ThoseWhoHaveChosenAMemberThatOpensBeforeTheyAskAreServedByAnotherOneUnderItsOwnPath) {
    Backend ill("ill");
    Backend good("good");
    Httpd httpd(roomy(std::string(quick_policy) + long_open,
                      "<Proxy balancer://app>\n    BalancerMember " + ill.member() +
                          "/sick loadfactor=100\n"
                          "    BalancerMember " +
                          good.member() + "/well\n</Proxy>\nProxyPass /app balancer://app\n"));
    Barrier::configure(httpd);
    httpd.start();
    const std::string member = ill.member() + "/sick";
    ill.hold();
    ill.answer(Reply::status(502));
    std::vector<std::future<Response>> evidence;
    for (int i = 0; i < 3; ++i)
        evidence.push_back(get_later(httpd.url("/app/x?q=1")));
    ASSERT_TRUE(ill.wait_for_concurrent(3));
    std::vector<std::future<Response>> clients;
    {
        Barrier barrier(httpd);
        for (int i = 0; i < 10; ++i)
            clients.push_back(get_later(httpd.url("/app/x?q=1")));
        ASSERT_TRUE(barrier.wait_for_busy(14)) << httpd.describe();
        ill.release();
        ASSERT_TRUE(wait_until([&] { return state_of(httpd, member) == "open"; }, patience, "the trip"));
    }
    for (auto& response : evidence)
        EXPECT_EQ(response.get().status, 502);
    for (auto& client : clients)
        EXPECT_EQ(client.get().backend(), "good");
    EXPECT_EQ(ill.requests(), 3U);
    EXPECT_EQ(good.requests(), 10U);
    for (const Request& request : good.log())
        EXPECT_EQ(request.target, "/well/x?q=1");
    EXPECT_GE(BreakerPage(httpd).member(member).number("Refused"), 8U) << "or this test proves nothing";
}

}  // namespace
}  // namespace cb::test
