// Clients that want to keep a member out that is well again: by giving up their probes, by taking answers slowly, by
// uploads that stall where the body was to be here.
#include "trip.hpp"

namespace cb::test {
namespace {

const std::string one_probe = std::string(quick_policy) + "CircuitBreakerConsecutiveFailures 1\n";
constexpr std::size_t more_than_buffers_hold = 40'000'000;

class AttackOnProbes : public testing::Test {
  protected:
    void start(const std::string& policy, const std::string& proxied) {
        HttpdOptions options = site(Mpm::event, one_probe + policy, proxied);
        options.threads = 32;
        httpd_ = std::make_unique<Httpd>(options);
        httpd_->start();
    }
    void start(const std::string& policy = "") { start(policy, plain_worker(app_)); }
    void make_due() {
        test::make_due(*httpd_, app_, {.failures = 1});
        app_.answer_path("/big", Reply::of_size(more_than_buffers_hold));
    }
    std::unique_ptr<RawClient> send(const std::string& bytes) {
        auto client = std::make_unique<RawClient>(httpd_->port());
        EXPECT_TRUE(client->send(bytes));
        return client;
    }
    [[nodiscard]] std::uint64_t number(const std::string& key) const {
        return BreakerPage(*httpd_).member(app_).number(key);
    }

    Backend app_{"app"};
    std::unique_ptr<Httpd> httpd_;
};

TEST_F(AttackOnProbes, ClientsThatGiveUpTheirProbesDoNotOpenAMemberThatIsWell) {
    start();
    make_due();
    for (std::uint64_t i = 1; i <= 20; ++i) {
        auto client = send("GET /app/big HTTP/1.1\r\nHost: me\r\n\r\n");
        ASSERT_NE(client->read_until("\r\n\r\n").find(" 200 "), std::string::npos) << i;
        client->reset();
        ASSERT_TRUE(wait_for_counter(*httpd_, app_, "Outcome-client", i));
        ASSERT_TRUE(wait_for_no_permits(*httpd_, app_)) << "a call is counted before its slot is free";
    }
    EXPECT_EQ(transitions(*httpd_, "half-open", "open"), 0U);
    EXPECT_EQ(get(httpd_->url("/app/x")).status, 200);
}

TEST_F(AttackOnProbes, AClientThatTakesItsAnswerSlowlyHoldsASlotNoLongerThanTheAnswerNeedsToSettle) {
    start("CircuitBreakerSettle 500ms\n");
    make_due();
    auto slow = send("GET /app/big HTTP/1.1\r\nHost: me\r\n\r\n");
    ASSERT_NE(slow->read_until("\r\n\r\n").find(" 200 "), std::string::npos);
    EXPECT_TRUE(wait_until([&] { return get(httpd_->url("/app/x")).status == 200; }, patience, "the member's return"));
}

TEST_F(AttackOnProbes, AnUploadThatBeganWhileTheMemberWasWellTakesNoSlotBeforeItIsHere) {
    start("CircuitBreakerMaxConcurrent 50\n");
    // The first 16 KB are waited for in any case; the rest only if it is to be a probe.
    auto stalling =
        send("POST /app/x HTTP/1.1\r\nHost: me\r\nContent-Length: 50000\r\n\r\n" + std::string(16'000, 'x'));
    make_due();
    ASSERT_TRUE(stalling->send(std::string(1'000, 'x')));
    EXPECT_TRUE(wait_until([&] { return get(httpd_->url("/app/y")).status == 200; }, patience, "the member's return"));
    EXPECT_EQ(number("Probes-in-flight"), 0U);
    ASSERT_TRUE(stalling->send(std::string(33'000, 'x')));
    EXPECT_NE(stalling->read_until("\r\n\r\n").find(" 200 "), std::string::npos);
}

TEST_F(AttackOnProbes, ObserveEndsNoUploadForBeingALateProbe) {
    // The lease: 1 s to connect + 100 ms + 1 s.
    start("CircuitBreaker Observe\nCircuitBreakerProbeTimeout 100ms\nCircuitBreakerSettle 0s\n",
          plain_worker(app_, "connectiontimeout=1"));
    make_due();
    auto client = send("POST /app/x HTTP/1.1\r\nHost: me\r\nContent-Length: 50000\r\n\r\n" + std::string(49'000, 'x'));
    ASSERT_TRUE(wait_until([&] { return number("Probes") == 1; }, patience, "a probe"));
    std::this_thread::sleep_for(2500ms);  // its lease has run out; nothing tells so in Observe
    ASSERT_TRUE(client->send(std::string(1'000, 'x')));
    const std::string answer = client->read_until("\r\n\r\n");
    EXPECT_NE(answer.find(" 200 "), std::string::npos) << answer;
}

}  // namespace
}  // namespace cb::test
