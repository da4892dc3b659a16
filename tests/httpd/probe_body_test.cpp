// Clients that stall in the middle of their uploads: they hold no probe slot and no place of a member that others wait
// for, and what they have started ends with their next byte.
#include "support/fcgi.hpp"
#include "trip.hpp"

namespace cb::test {
namespace {

/// One failure opens it; one probe at a time.
const std::string one_probe = std::string(quick_policy) + "CircuitBreakerConsecutiveFailures 1\n";

std::string upload(const std::string& length, const std::string& fields = "") {
    return "POST /app/x HTTP/1.1\r\nHost: me\r\nContent-Length: " + length + "\r\n" + fields + "\r\n";
}

class ProbeBody : public TrafficTest {
  protected:
    void start(const std::string& policy, const std::string& proxied) {
        HttpdOptions options =
            crowded(one_probe + policy, proxied + "<Location /busy>\n    SetHandler server-status\n</Location>\n");
        httpd_ = std::make_unique<Httpd>(options);
        httpd_->start();
    }
    void start(const std::string& policy = "") { start(policy, plain_worker(app_)); }
    std::unique_ptr<RawClient> send(const std::string& bytes) {
        auto client = std::make_unique<RawClient>(httpd_->port());
        EXPECT_TRUE(client->send(bytes));
        return client;
    }
    /// That many requests are under way in httpd.
    [[nodiscard]] bool wait_for_busy(unsigned count) const {
        return wait_until(
            [&] {
                const std::string page = get(httpd_->url("/busy?auto")).body;
                const std::size_t at = page.find("BusyWorkers: ");
                return at != std::string::npos && std::stoul(page.substr(at + 13)) > count;  // and the one that asks
            },
            patience, std::to_string(count) + " requests in httpd");
    }
    [[nodiscard]] std::uint64_t number(const std::string& key) const {
        return BreakerPage(*httpd_).member(app_).number(key);
    }
    [[nodiscard]] std::string state() const { return state_of(*httpd_, app_); }

    Backend app_{"app"};
    std::unique_ptr<Httpd> httpd_;
};
INSTANTIATE_TEST_SUITE_P(Mpms, ProbeBody, any_mpm, mpm_name);

TEST_P(ProbeBody, OfClientsThatStallTakesNoSlotFromOthers) {
    start();
    make_due(*httpd_, app_, {.failures = 1});
    std::vector<std::unique_ptr<RawClient>> stalling;
    for (int i = 0; i < 6; ++i)
        stalling.push_back(send(upload("2000") + "half of it"));
    for (int i = 0; i < 3; ++i)
        stalling.push_back(send("GET /app/x HTTP/1.1\r\nHost: me\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"));
    ASSERT_TRUE(wait_for_busy(9));
    ASSERT_TRUE(wait_until([&] { return statuses(1, httpd_->url("/app/x")) == "200"; }, patience, "a probe"));
    EXPECT_EQ(state(), "closed");
    EXPECT_EQ(number("Probes"), 1U);
    EXPECT_EQ(app_.peak(), 1U);
    // What they have begun goes on when they do.
    ASSERT_TRUE(stalling.front()->send(std::string(1990, 'x')));
    const std::string answer = stalling.front()->read_until("\r\n\r\n");
    EXPECT_NE(answer.find(" 200 "), std::string::npos) << answer;
    EXPECT_EQ(app_.last_request()->body_size, 2000U);
}

TEST_P(ProbeBody, ThatIsHereGoesWithTheProbe) {
    start();
    for (const bool is_chunked : {false, true}) {
        make_due(*httpd_, app_, {.failures = 1});
        std::string body;
        while (body.size() < 60'000)
            body += std::to_string(body.size()) + " ";
        RequestOptions options{.method = "PUT", .body = body};
        if (is_chunked) options.headers.add("Transfer-Encoding", "chunked");
        EXPECT_EQ(get(httpd_->url("/app/x"), options).status, 200);
        EXPECT_EQ(state(), "closed");
        EXPECT_EQ(app_.last_request()->body_size, body.size());
        EXPECT_EQ(app_.last_request()->body, body.substr(0, Request::most_kept_body));
    }
    EXPECT_EQ(number("Probes"), 2U);
}

TEST_P(ProbeBody, ThatIsHereGoesWithTheMarkAndWithNoOther) {
    WireBackend app("fcgi", fcgi());
    HttpdOptions options =
        crowded(one_probe + "CircuitBreakerProbeHeader X-Mark\n", "ProxyPass /app " + app.member() + "\n");
    options.add_modules = {"proxy_fcgi"};
    Httpd httpd(options);
    httpd.start();
    app.answer(WireReply::status(502));
    EXPECT_EQ(statuses(1, httpd.url("/app/trip")), "502");
    app.answer(WireReply::status(200));
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app.member()));
    const RequestOptions request{
        .method = "PUT",
        .headers = {{"Transfer-Encoding", "chunked"}, {"X-Mark", "~~~"}, {"Connection", "X-Mark"}},
        .body = "a body"};
    EXPECT_EQ(get(httpd.url("/app/x"), request).status, 200);
    EXPECT_NE(app.last_request().find("HTTP_X_MARK1"), std::string::npos);
    EXPECT_EQ(app.last_request().find("~~~"), std::string::npos);
    // Closed: no mark, and none of the client's.
    EXPECT_EQ(get(httpd.url("/app/x"), request).status, 200);
    EXPECT_EQ(app.last_request().find("HTTP_X_MARK"), std::string::npos);
}

TEST_P(ProbeBody, ThatIsHereGoesToAnotherMemberIfTheProbeFails) {
    Backend other("other");
    start("", balancer_of(member_line(app_) + member_line(other)));
    app_.answer(Reply::status(502));
    ASSERT_TRUE(wait_until([&] { return get(httpd_->url("/app/trip")).backend() == "app"; }, patience, "a failure"));
    ASSERT_TRUE(wait_for_end_of_open_time(*httpd_, app_));
    other.forget();
    const std::string body(50'000, 'x');  // longer than CircuitBreakerBodyLimit
    ASSERT_TRUE(wait_until(
        [&] {
            const Response response = get(httpd_->url("/app/x"), {.method = "PUT", .body = body});
            EXPECT_EQ(response.backend(), "other");
            EXPECT_EQ(other.last_request()->body_size, body.size());
            return number("Probes") == 1;
        },
        patience, "a probe"));
}

TEST_P(ProbeBody, ThatIsTooLongMakesNoProbeUntilNothingElseHasComeForAnOpenTime) {
    start("CircuitBreakerProbeBody 1000\n");
    for (const std::string fields : {"", "Expect: 100-continue\r\n"}) {
        SCOPED_TRACE(fields);
        const std::string length = fields.empty() ? "2000" : "10";
        make_due(*httpd_, app_, {.failures = 1});
        const std::uint64_t probes = number("Probes");
        const auto answer = [&] {
            auto client = send(upload(length, fields + "Connection: close\r\n") + std::string(std::stoul(length), 'x'));
            return client->read_to_end();
        };
        const std::string first = answer();
        EXPECT_NE(first.find(" 503 "), std::string::npos) << first;
        EXPECT_EQ(number("Probes"), probes);
        ASSERT_TRUE(wait_until([&] { return answer().find(" 200 OK") != std::string::npos; }, patience, "its turn"));
        EXPECT_EQ(number("Probes"), probes + 1);
        EXPECT_EQ(state(), "closed");
    }
}

TEST_P(ProbeBody, ThatEndsTooEarlyOrIsMalformedIsAnsweredByHttpdAndTakesNothing) {
    start();
    make_due(*httpd_, app_, {.failures = 1});
    auto malformed = send(
        "PUT /app/x HTTP/1.1\r\nHost: me\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
        "GET /app/smuggled HTTP/1.1\r\nHost: me\r\n\r\n");
    const std::string answer = malformed->read_to_end();
    EXPECT_EQ(answer.find("HTTP/1.1 400 "), 0U);
    EXPECT_EQ(answer.find("HTTP/1.1 ", 1), std::string::npos) << answer;
    auto short_one = send(upload("2000") + "half of it");
    short_one->finish_sending();
    EXPECT_EQ(short_one->read_to_end().find("HTTP/1.1 400 "), 0U);
    EXPECT_EQ(number("Probes"), 0U);
    EXPECT_EQ(app_.requests(), 0U);
    EXPECT_EQ(statuses(1, httpd_->url("/app/x")), "200");
    EXPECT_EQ(state(), "closed");
}

TEST_P(ProbeBody, OfAProbeThatBeganBeforeItWasHereIsDueWithinAnOpenTime) {
    start("CircuitBreakerProbeBody 0\n");
    make_due(*httpd_, app_, {.failures = 1});
    std::unique_ptr<RawClient> stalling;
    ASSERT_TRUE(wait_until(
        [&] {
            stalling = send(upload("100000", "Connection: close\r\n") + std::string(50'000, 'x'));
            return wait_until([&] { return number("Probes") == 1 || number("Refused") > 0; }, patience, "a look") &&
                   (number("Probes") == 1 || stalling->read_until("\r\n\r\n").empty());
        },
        patience, "its turn to be a probe"));
    EXPECT_NE(stalling->read_to_end().find(" 408 "), std::string::npos);
    EXPECT_TRUE(wait_until([&] { return app_.unfinished_requests() == 1; }, patience, "the member to be rid of it"));
    ASSERT_TRUE(wait_until([&] { return statuses(1, httpd_->url("/app/x")) == "200"; }, patience, "the slot"));
    EXPECT_EQ(state(), "closed");
    EXPECT_EQ(app_.peak(), 1U);
    EXPECT_EQ(transitions(*httpd_, "half-open", "open"), 0U) << "the client's stall is no failure of the member";
}

TEST_P(ProbeBody, OfClientsThatStallFillsNoPlacesOfAMember) {
    start("CircuitBreakerMaxConcurrent 2\n");
    std::vector<std::unique_ptr<RawClient>> stalling;
    for (int i = 0; i < 6; ++i)
        stalling.push_back(send(upload("2000") + "x"));
    ASSERT_TRUE(wait_for_busy(6));
    EXPECT_EQ(statuses(5, httpd_->url("/app/x")), "200 200 200 200 200");
    EXPECT_EQ(number("In-flight"), 0U);
    // One whose first part is here has its connection, and its place.
    for (int i = 0; i < 2; ++i)
        stalling.push_back(send(upload("100000") + std::string(50'000, 'x')));
    ASSERT_TRUE(wait_until([&] { return number("In-flight") == 2; }, patience, "two places to be taken"));
    EXPECT_EQ(statuses(1, httpd_->url("/app/x")), "503");
    ASSERT_TRUE(stalling.back()->send(std::string(50'000, 'x')));
    EXPECT_NE(stalling.back()->read_until("\r\n\r\n").find(" 200 "), std::string::npos);
    ASSERT_TRUE(wait_until([&] { return number("In-flight") == 1; }, patience, "a place"));
    EXPECT_EQ(statuses(1, httpd_->url("/app/x")), "200");
}

}  // namespace
}  // namespace cb::test
