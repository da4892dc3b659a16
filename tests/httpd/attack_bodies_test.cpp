// Bodies that are read before the member is asked, or sent a second time: the member gets the request that it would
// have got without the module.
#include <fstream>

#include "trip.hpp"

namespace cb::test {
namespace {

const std::string one_probe = std::string(quick_policy) + "CircuitBreakerConsecutiveFailures 1\n";
const std::string with_trailer =
    "PUT /app/x HTTP/1.1\r\nHost: me\r\nX-User: in the head\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    "3\r\nabc\r\n0\r\nX-User: in the trailer\r\n\r\n";
const std::string merging = "MergeTrailers On\nRequestHeader unset X-User\n";

class AttackOnBodies : public testing::Test {
  protected:
    void start(const std::string& policy, const std::string& proxied) {
        HttpdOptions options = site(Mpm::event, policy, proxied);
        options.add_modules = {"headers"};
        httpd_ = std::make_unique<Httpd>(options);
        httpd_->start();
    }

    Backend app_{"app"};
    std::unique_ptr<Httpd> httpd_;
};

TEST_F(AttackOnBodies, ATrailerGetsIntoTheHeadOfNoProbe) {
    start(one_probe, plain_worker(app_) + merging);
    make_due(*httpd_, app_, {.failures = 1});
    EXPECT_EQ(answer_to(*httpd_, with_trailer).substr(9, 3), "200");
    EXPECT_EQ(BreakerPage(*httpd_).member(app_).number("Probes"), 1U);
    EXPECT_EQ(app_.last_request()->headers.get("X-User"), "");
    EXPECT_EQ(app_.last_request()->body, "abc");
}

TEST_F(AttackOnBodies, ATrailerGetsIntoTheHeadOfNoRequestWhosePlaceIsWaitedFor) {
    start(one_probe + "CircuitBreakerMaxConcurrent 5\n", plain_worker(app_) + merging);
    EXPECT_EQ(answer_to(*httpd_, with_trailer).substr(9, 3), "200");
    EXPECT_EQ(app_.last_request()->headers.get("X-User"), "");
}

TEST_F(AttackOnBodies, ATrailerGetsIntoTheHeadOfNoRequestThatIsMadeAgain) {
    Backend other("other");
    start(counting_policy + std::string("CircuitBreakerFailover All\n"),
          balancer_of(member_line(app_) + member_line(other)) + merging);
    app_.answer(Reply::status(503));
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(answer_to(*httpd_, with_trailer).substr(9, 3), "200");
    EXPECT_GT(app_.requests(), 0U);
    for (const Request& request : other.log()) {
        EXPECT_EQ(request.headers.get("X-User"), "");
        EXPECT_EQ(request.body, "abc");
    }
}

TEST_F(AttackOnBodies, AChunkedBodyThatJustFitsIsFramedAsWithoutTheModule) {
    const std::string body(16'340, 'x');
    const std::string request =
        "PUT /app/x HTTP/1.1\r\nHost: me\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3fd4\r\n" + body +
        "\r\n0\r\n\r\n";
    HttpdOptions options = site(Mpm::event, "", plain_worker(app_));
    options.circuitbreaker = false;
    options.config = plain_worker(app_);
    Httpd without(options);
    without.start();
    EXPECT_EQ(answer_to(without, request).substr(9, 3), "200");
    EXPECT_EQ(app_.last_request()->headers.get("Transfer-Encoding"), "chunked");
    start(one_probe, plain_worker(app_));
    make_due(*httpd_, app_, {.failures = 1});
    EXPECT_EQ(answer_to(*httpd_, request).substr(9, 3), "200");
    EXPECT_EQ(app_.last_request()->headers.get("Transfer-Encoding"), "chunked");
    EXPECT_EQ(app_.last_request()->body_size, body.size());
}

TEST_F(AttackOnBodies, ACallToAMemberWithoutABreakerHasNoDeadlineOfTheProbeBefore) {
    Backend other("other");
    // The lease: 1 s to connect + 100 ms + 1 s. Both members are in one balancer, and `other` has no breaker.
    start("",
          "<Proxy \"" + app_.member() + "\">\n" + one_probe +
              "CircuitBreakerProbeTimeout 100ms\nCircuitBreakerSettle 0s\nCircuitBreakerProbeBody 1000\n</Proxy>\n" +
              balancer_of(member_line(app_, "connectiontimeout=1") + member_line(other, "status=+H")));
    make_due(*httpd_, app_, {.failures = 1});
    app_.refuse();
    std::unique_ptr<RawClient> client;
    // A long body is a probe when nothing else has come for an open time.
    ASSERT_TRUE(wait_until(
        [&] {
            client = std::make_unique<RawClient>(httpd_->port());
            EXPECT_TRUE(client->send("POST /app/x HTTP/1.1\r\nHost: me\r\nContent-Length: 100000\r\n\r\n" +
                                     std::string(50'000, 'x')));
            return wait_until([&] { return other.concurrent() == 1; }, patience, "the other member") &&
                   BreakerPage(*httpd_).member(app_).number("Probes") == 1;
        },
        patience, "a probe that can't connect"));
    std::this_thread::sleep_for(2500ms);  // the probe's lease has run out
    ASSERT_TRUE(client->send(std::string(50'000, 'x')));
    const std::string answer = client->read_until("\r\n\r\n");
    EXPECT_NE(answer.find(" 200 "), std::string::npos) << answer;
}

std::size_t peak_kib(pid_t pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6));
    }
    return 0;
}

TEST_F(AttackOnBodies, ABodyInChunksOfOneByteTakesNoMoreMemoryThanItHolds) {
    constexpr int size = 50'000;
    HttpdOptions options = site(Mpm::event, one_probe, plain_worker(app_));
    options.children = 1;
    options.mpm_directives = {"ServerLimit 1", "MaxRequestWorkers 8"};
    httpd_ = std::make_unique<Httpd>(options);
    httpd_->start();
    make_due(*httpd_, app_, {.failures = 1});
    const pid_t child = httpd_->children().front();
    const std::size_t before = peak_kib(child);
    RawClient client(httpd_->port());
    ASSERT_TRUE(client.send("PUT /app/x HTTP/1.1\r\nHost: me\r\nTransfer-Encoding: chunked\r\n\r\n"));
    for (int i = 0; i < size; ++i) {
        ASSERT_TRUE(client.send("1\r\nx\r\n"));
        if (i % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));  // each read as it comes
    }
    ASSERT_TRUE(client.send("0\r\n\r\n"));
    EXPECT_NE(client.read_until("\r\n\r\n").find(" 200 "), std::string::npos);
    EXPECT_EQ(app_.last_request()->body_size, static_cast<std::size_t>(size));
    EXPECT_LT(peak_kib(child), before + 70'000);
}

}  // namespace
}  // namespace cb::test
