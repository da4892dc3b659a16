// How many calls one request can cause: `tries` for failing answers, `maxattempts` for connections that fail, and no
// more than one a member whatever these say. A budget of 0 leaves nothing of the first.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "traffic.hpp"

namespace cb::test {
namespace {

constexpr std::size_t kTen = 10;

class Tries : public TrafficTest {
  protected:
    Tries() {
        for (std::size_t i = 0; i < kTen; ++i)
            members_.push_back(std::make_unique<Backend>("m" + std::to_string(i)));
    }
    void all_answer(const Reply& reply) {
        for (const auto& member : members_)
            member->answer(reply);
    }
    void all_refuse() {
        for (const auto& member : members_)
            member->refuse();
    }
    /// Ten members in one balancer; those before `first_set` are asked before the others.
    void start(const std::string& failover, const std::string& more = "", std::size_t first_set = kTen) {
        std::string lines;
        for (std::size_t i = 0; i < kTen; ++i)
            lines += member_line(*members_[i], i < first_set ? "" : "lbset=1");
        start_with(failover, balancer_of(lines + more));
    }
    void start_with(const std::string& failover, const std::string& proxied) {
        if (httpd_ != nullptr) httpd_->stop();
        httpd_ = std::make_unique<Httpd>(
            site(std::string(counting_policy) + "CircuitBreakerFailover " + failover + "\n", proxied));
        httpd_->start();
    }
    /// The calls of one request, as each member counts them. More than one to a member is a failure.
    std::uint64_t calls_of_a_request(int status, const RequestOptions& options = {}) {
        const std::vector<std::uint64_t> before = calls();
        EXPECT_EQ(get(httpd_->url("/app/x"), options).status, status) << httpd_->describe();
        for (const auto& member : members_)
            EXPECT_TRUE(wait_for_no_permits(*httpd_, *member));
        std::uint64_t sum = 0;
        const std::vector<std::uint64_t> after = calls();
        for (std::size_t i = 0; i < kTen; ++i) {
            EXPECT_LE(after[i] - before[i], 1U) << members_[i]->name() << " was asked twice";
            sum += after[i] - before[i];
        }
        return sum;
    }
    [[nodiscard]] std::vector<std::uint64_t> calls() const {
        const BreakerPage page(*httpd_);
        std::vector<std::uint64_t> each;
        for (const auto& member : members_)
            each.push_back(page.member(*member).number("Calls"));
        return each;
    }

    std::vector<std::unique_ptr<Backend>> members_;
    std::unique_ptr<Httpd> httpd_;
};
INSTANTIATE_TEST_SUITE_P(Mpms, Tries, any_mpm, mpm_name);

TEST_P(Tries, FailingAnswersTakeAsManyCallsAsTriesSaysAndAtMostOneAMember) {
    all_answer(Reply::status(503, "no"));
    start("All budget=100 tries=100");
    EXPECT_EQ(calls_of_a_request(503), kTen);
    EXPECT_EQ(calls_of_a_request(503, {.method = "PUT", .body = "small"}), kTen);
    EXPECT_EQ(calls_of_a_request(503, {.method = "POST", .body = "small"}), 1U) << "a POST is never made again";
    start("All budget=100 tries=4");
    EXPECT_EQ(calls_of_a_request(503), 4U);
    start("All budget=100");
    EXPECT_EQ(calls_of_a_request(503), 2U);
    start("All budget=100 tries=4", "    ProxySet maxattempts=9\n");
    EXPECT_EQ(calls_of_a_request(503), 4U) << "maxattempts is not about answers";
}

TEST_P(Tries, ConnectionsThatFailTakeAsManyAsMaxattemptsSaysAndTriesOnTop) {
    all_refuse();
    for (const char* failover : {"Off", "All budget=0 tries=100"}) {
        start(failover);
        EXPECT_EQ(calls_of_a_request(503), kTen) << failover << ": by default all members";
        start(failover, "    ProxySet maxattempts=2\n");
        EXPECT_EQ(calls_of_a_request(503), 3U) << failover;
        start(failover, "    ProxySet maxattempts=50\n");
        EXPECT_EQ(calls_of_a_request(503), kTen) << failover;
    }
    start("All budget=100 tries=2");
    EXPECT_EQ(calls_of_a_request(503), kTen);
    start("All budget=100 tries=2", "    ProxySet maxattempts=2\n");
    EXPECT_EQ(calls_of_a_request(503), 4U) << "the first two are none of the two";
    start("All budget=100 tries=5", "    ProxySet maxattempts=2\n");
    EXPECT_EQ(calls_of_a_request(503), 7U) << "the first two are none of the five";
}

TEST_P(Tries, OfBothKindsCountTogether) {
    // Nine that can't be reached come first, which are no tries; what the tenth says is the end, as there is no other.
    all_refuse();
    members_[9]->accept_again();
    members_[9]->answer(Reply::status(503, "no"));
    start("All budget=100 tries=2", "", 9);
    EXPECT_EQ(calls_of_a_request(503), kTen);
    // One that can't be reached comes first, which is no try: two others are asked.
    for (const auto& member : members_) {
        member->accept_again();
        member->answer(Reply::status(503, "no"));
    }
    members_[0]->refuse();
    start("All budget=100 tries=2", "", 1);
    EXPECT_EQ(calls_of_a_request(503), 3U);
    // Two failing answers of three tries come first; the third call fails to connect, and goes on by maxattempts.
    for (const auto& member : members_)
        member->accept_again();
    all_refuse();
    for (const std::size_t i : {0U, 1U}) {
        members_[i]->accept_again();
        members_[i]->answer(Reply::status(503, "no"));
    }
    start("All budget=100 tries=3", "", 2);
    EXPECT_EQ(calls_of_a_request(503), kTen);
    start("All budget=100 tries=3", "    ProxySet maxattempts=4\n", 2);
    EXPECT_EQ(calls_of_a_request(503), 5U);
}

TEST_P(Tries, GoOnCountingInAFallback) {
    all_refuse();
    const auto balancers = [&](const std::string& of_first, const std::string& of_spare) {
        std::string first;
        std::string spare;
        for (std::size_t i = 0; i < kTen; ++i)
            (i < 3 ? first : spare) += member_line(*members_[i]);
        return "CircuitBreakerFallback balancer://spare\n" + balancer_of(first + of_first) +
               "<Proxy balancer://spare>\n" + spare + of_spare + "</Proxy>\n";
    };
    start_with("Off", balancers("", ""));
    EXPECT_EQ(calls_of_a_request(503), 3U) << "each of its own members has been asked: no fallback after that";
    start_with("Off", balancers("    ProxySet maxattempts=9\n", ""));
    EXPECT_EQ(calls_of_a_request(503), 7U) << "by the fallback's maxattempts of 6";
    start_with("Off", balancers("    ProxySet maxattempts=9\n", "    ProxySet maxattempts=50\n"));
    EXPECT_EQ(calls_of_a_request(503), kTen) << "at most the members of both";
}

TEST_P(Tries, WithABudgetOfNothingNoAnswerIsMadeAgain) {
    members_[0]->answer(Reply::status(503, "its own"));
    const auto two = [&](const std::string& more = "") {
        return balancer_of(member_line(*members_[0], "loadfactor=100") + member_line(*members_[1]) + more) +
               "<Location /app/some>\n    CircuitBreakerFailover All budget=1\n</Location>\n";
    };
    start_with("All budget=0 tries=100", two());
    for (int i = 0; i < 20; ++i) {
        const Response response = get(httpd_->url("/app/x"));
        EXPECT_EQ(response.backend(), "m0");
        EXPECT_EQ(response.body, "its own");
    }
    EXPECT_EQ(BreakerPage(*httpd_).member(*members_[0]).number("Failovers"), 0U);
    EXPECT_EQ(get(httpd_->url("/app/some/x")).backend(), "m1") << "one that is small is another thing";
    // A connection that fails costs no retry, up to maxattempts; beyond it would.
    members_[0]->refuse();
    EXPECT_EQ(get(httpd_->url("/app/x")).backend(), "m1");
    EXPECT_EQ(get(httpd_->url("/app/x"), {.method = "POST", .body = "whole"}).backend(), "m1");
    EXPECT_EQ(members_[1]->last_request()->body, "whole");
    start_with("All budget=0 tries=100", two("    ProxySet maxattempts=0\n"));
    EXPECT_EQ(get(httpd_->url("/app/x")).status, 503);
    EXPECT_EQ(get(httpd_->url("/app/some/x")).backend(), "m1");
}

TEST_P(Tries, AHandshakeThatFailsCostsNoRetry) {
    // It talks no TLS.
    const std::string lines = "    BalancerMember https://127.0.0.1:" + std::to_string(members_[0]->port()) +
                              " loadfactor=100\n" + member_line(*members_[1]);
    const auto start = [&](const std::string& failover) {
        HttpdOptions options =
            site(std::string(counting_policy) + "SSLProxyEngine On\nCircuitBreakerFailover " + failover + "\n",
                 balancer_of(lines));
        options.add_modules = {"ssl"};
        if (httpd_ != nullptr) httpd_->stop();
        httpd_ = std::make_unique<Httpd>(options);
        httpd_->start();
    };
    for (const char* failover : {"Off", "All budget=0", "All budget=100"}) {
        start(failover);
        EXPECT_EQ(get(httpd_->url("/app/x")).backend(), "m1") << failover;
    }
}

TEST_P(Tries, WithABudgetOfNothingAClientIsAGuineaPig) {
    httpd_ = std::make_unique<Httpd>(
        site(std::string(quick_policy) + "CircuitBreakerFailover Probes budget=0\n",
             balancer_of(member_line(*members_[0], "loadfactor=100") + member_line(*members_[1]))));
    httpd_->start();
    members_[0]->answer(Reply::status(503, "its own"));
    EXPECT_EQ(statuses(3, httpd_->url("/app/x")), "503 503 503");
    ASSERT_TRUE(wait_for_end_of_open_time(*httpd_, *members_[0]));
    const Response probe = get(httpd_->url("/app/x"));
    EXPECT_EQ(probe.backend(), "m0");
    EXPECT_EQ(probe.body, "its own");
}

}  // namespace
}  // namespace cb::test
