// Outcomes that need more than one answer to show: the keep-alive race, clients that leave, connections that don't come
// about, full pools.
#include "outcomes.hpp"

namespace cb::test {
namespace {

std::string upload_head(const std::string& path, std::size_t length) {
    return "POST " + path + " HTTP/1.1\r\nHost: me\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
}

/// One call trips, if it is a failure.
const std::string touchy_policy = std::string(quick_policy) + "CircuitBreakerConsecutiveFailures 1\n" + long_open;

/// Answers every upload, but the one that has `bad` in its path: there it reads the head only and resets the
/// connection, as a server does whose idle time ran out when the request was already on its way.
class UploadServer {
  public:
    UploadServer() : server_([this](Connection& connection) { serve(connection); }) {}
    [[nodiscard]] std::string member() const { return "http://127.0.0.1:" + std::to_string(server_.port()); }
    [[nodiscard]] unsigned on_kept_connections() const { return on_kept_; }

  private:
    void serve(Connection& connection) {
        std::string bytes;
        for (unsigned nth = 1;; ++nth) {
            std::size_t end = 0;
            while ((end = bytes.find("\r\n\r\n")) == std::string::npos) {
                if (!read(connection, bytes)) return;
            }
            const std::string head = bytes.substr(0, end);
            if (head.find("bad") != std::string::npos) {
                if (nth > 1) ++on_kept_;
                connection.reset();
                return;
            }
            const std::size_t at = head.find("Content-Length: ");
            const std::size_t whole = end + 4 + (at == std::string::npos ? 0 : std::stoul(head.substr(at + 16)));
            while (bytes.size() < whole) {
                if (!read(connection, bytes)) return;
            }
            bytes.erase(0, whole);
            if (!connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")) return;
        }
    }
    static bool read(Connection& connection, std::string& bytes) {
        char piece[16384];
        const std::size_t count = connection.receive(piece, sizeof piece);
        bytes.append(piece, count);
        return count > 0;
    }

    std::atomic<unsigned> on_kept_{0};
    ConnectionServer server_;
};

class Call : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, Call, any_mpm, mpm_name);

TEST_P(Call, ThatRunsIntoTheKeepAliveRaceNeverTripsAMember) {
    Backend app("app");
    Httpd httpd(few_threads_each(site(std::string(quick_policy) + long_open, plain_worker(app)), 1));
    httpd.start();
    app.answer([](const Request& r) { return r.nth_on_connection > 1 ? Reply::nothing(Ending::fin) : Reply::ok(); });
    unsigned lost = 0;
    unsigned held_up = 0;  // of these, while the machine stood still: they may be `reset`
    for (int i = 0; i < 40; ++i) {
        const Stopwatch stopwatch;
        if (get(httpd.url("/app/x")).status != 200) {
            ++lost;
            held_up += stopwatch.was_at_once() ? 0 : 1;
        } else {
            let_connections_idle();
        }
    }
    EXPECT_GE(lost, held_up + 5U) << "or this test proves nothing";
    const BreakerBlock block = BreakerPage(httpd).member(app);
    EXPECT_EQ(block.at("State"), "closed");
    EXPECT_GE(block.number("Outcome-stale"), lost - held_up);
    EXPECT_EQ(block.number("Verdict-ignore"), block.number("Outcome-stale"));
    // The same on a fresh connection is the member's fault.
    app.answer(Reply::nothing(Ending::fin));
    EXPECT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).headers.has("Retry-After"); }, patience, "a trip"));
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Outcome-reset"), lost - block.number("Outcome-stale") + 3U);
}

TEST_P(Call, WhoseUploadIsBrokenOffIsAnUploadOnAKeptAndOnAFreshConnection) {
    UploadServer app;
    // One child for certain: another one would have no connection to keep.
    Httpd httpd(one_child(site(counting_policy, "ProxyPass /app " + app.member() + "\n")));
    httpd.start();
    const auto number = [&](const std::string& key) { return BreakerPage(httpd).member(app.member()).number(key); };
    const std::string body(8'000'000, 'x');  // more than buffers hold
    const RequestOptions upload{.method = "POST", .body = body};
    for (std::uint64_t i = 1; i <= 3; ++i) {
        EXPECT_EQ(get(httpd.url("/app/good"), upload).status, 200);
        EXPECT_NE(get(httpd.url("/app/bad"), upload).status, 200);
        EXPECT_EQ(app.on_kept_connections(), i);
    }
    // A client may have its answer before the call is counted.
    const auto expect_number = [&](const std::string& key, std::uint64_t expected) {
        EXPECT_TRUE(wait_for_counter(httpd, app.member(), key, expected));
        EXPECT_EQ(number(key), expected) << key;
    };
    expect_number("Outcome-upload", 3);
    EXPECT_NE(get(httpd.url("/app/bad"), upload).status, 200) << "the last one has left no connection";
    expect_number("Outcome-upload", 4);
    expect_number("Verdict-ignore", 4);
    expect_number("Calls", 7);
}

TEST_P(Call, WhoseClientLeavesIsNeutralAndItsPermitBack) {
    Backend app("app");
    HttpdOptions options = site(touchy_policy + "Timeout 30\n", plain_worker(app));
    Httpd httpd(options);
    httpd.start();
    std::uint64_t clients = 0;
    const auto expect_client = [&](const char* what) {
        SCOPED_TRACE(what);
        ++clients;
        EXPECT_TRUE(wait_for_counter(httpd, app, "Outcome-client", clients));
        EXPECT_TRUE(wait_for_no_permits(httpd, app));
        const BreakerBlock block = BreakerPage(httpd).member(app);
        EXPECT_EQ(block.number("Verdict-ignore"), clients);
        EXPECT_EQ(block.number("Calls"), clients);
        EXPECT_EQ(block.at("State"), "closed");
    };
    const std::string get_request = "GET /app/x HTTP/1.1\r\nHost: me\r\n\r\n";

    // In mid-download.
    app.answer(Reply::of_size(8'000'000).stalling(4'000'000));
    RawClient downloading(httpd.port());
    ASSERT_TRUE(downloading.send(get_request));
    EXPECT_NE(downloading.read_until("\r\n\r\n").find(" 200 "), std::string::npos);
    downloading.reset();
    app.release();
    expect_client("in mid-download");

    // Before the headers. (httpd notices when it has something to write.)
    app.answer(Reply::of_size(8'000'000));
    app.hold();
    RawClient waiting(httpd.port());
    ASSERT_TRUE(waiting.send(get_request));
    ASSERT_TRUE(app.wait_for_concurrent(1));
    waiting.reset();
    app.release();
    expect_client("before the headers");

    // In mid-upload, before and after httpd has begun to pass it on.
    for (const std::size_t sent : {std::size_t{100}, std::size_t{200'000}}) {
        RawClient uploading(httpd.port());
        ASSERT_TRUE(uploading.send(upload_head("/app/x", 400'000) + std::string(sent, 'x')));
        ASSERT_TRUE(wait_for_counter(httpd, app, "In-flight", 1));
        uploading.reset();
        expect_client("in mid-upload");
    }

    // By sending nonsense.
    RawClient nonsense(httpd.port());
    ASSERT_TRUE(nonsense.send("POST /app/x HTTP/1.1\r\nHost: me\r\nTransfer-Encoding: chunked\r\n\r\nnot a size\r\n"));
    EXPECT_NE(nonsense.read_until("\r\n").find(" 400 "), std::string::npos);
    expect_client("bad chunks");
}

TEST_P(Call, WhoseClientStallsItsUploadMakesNoMemberSlow) {
    Backend app("app");
    Httpd httpd(
        site(touchy_policy + "CircuitBreakerSlowCall 2s rate=1\nCircuitBreakerMinimumCalls 1\n", plain_worker(app)));
    httpd.start();
    RawClient slow(httpd.port());
    ASSERT_TRUE(slow.send(upload_head("/app/x", 40'000) + std::string(20'000, 'x')));
    const auto since = std::chrono::steady_clock::now();
    ASSERT_TRUE(wait_until([&] { return std::chrono::steady_clock::now() - since > 2200ms; }, patience, "a stall"));
    ASSERT_TRUE(slow.send(std::string(20'000, 'x')));
    EXPECT_NE(slow.read_until("\r\n").find(" 200 "), std::string::npos);
    const BreakerBlock block = BreakerPage(httpd).member(app);
    EXPECT_EQ(block.number("Verdict-success"), 1U);
    EXPECT_EQ(block.number("Slow"), 0U);
}

TEST_P(Call, WhoseClientStallsItsUploadForTooLongMakesNoMemberFail) {
    Backend app("app");
    Httpd httpd(site(touchy_policy + "Timeout 1\n", plain_worker(app)));
    httpd.start();
    RawClient stalling(httpd.port());
    ASSERT_TRUE(stalling.send(upload_head("/app/x", 40'000) + std::string(20'000, 'x')));
    EXPECT_NE(stalling.read_until("\r\n").find(" 408 "), std::string::npos) << "httpd's own patience is at its end";
    ASSERT_TRUE(wait_for_counter(httpd, app, "Outcome-client", 1));
    const BreakerBlock block = BreakerPage(httpd).member(app);
    EXPECT_EQ(block.number("Slow"), 0U);
    EXPECT_EQ(block.at("State"), "closed");
}

TEST_P(Call, ToAServerThatCannotBeReachedIsAConnectFailure) {
    Backend refusing("refusing");
    Backend no_tls("no_tls");
    const SilentPort silent;
    const std::string unreachable = "http://127.0.0.1:" + std::to_string(silent.number());
    const std::string tls = "https://127.0.0.1:" + std::to_string(no_tls.port());
    HttpdOptions options =
        site(counting_policy, "SSLProxyEngine On\nProxyPass /refusing " + refusing.member() + "\nProxyPass /silent " +
                                  unreachable + " connectiontimeout=200ms\nProxyPass /tls " + tls + "\n");
    options.add_modules = {"socache_shmcb", "ssl"};
    Httpd httpd(options);
    httpd.start();
    refusing.refuse();
    no_tls.answer(Reply::garbage());
    EXPECT_EQ(statuses(2, httpd.url("/refusing/x")), "503 503");
    EXPECT_EQ(statuses(2, httpd.url("/silent/x")), "503 503");
    EXPECT_EQ(statuses(2, httpd.url("/tls/x")), "500 500");
    for (const std::string& member : {refusing.member(), unreachable, tls}) {
        const BreakerBlock block = BreakerPage(httpd).member(member);
        EXPECT_EQ(block.number("Outcome-connect"), 2U) << member;
        EXPECT_EQ(block.number("Verdict-failure"), 2U) << member;
        EXPECT_EQ(block.number("Calls"), 2U) << member;
    }
}

TEST_P(Call, InObserveIsJudgedLikeAnyOther) {
    Backend app("app");
    Httpd httpd(site(touchy_policy + "CircuitBreaker Observe\n", plain_worker(app)));
    httpd.start();
    app.refuse();
    EXPECT_EQ(statuses(4, httpd.url("/app/x")), "503 503 503 503");
    app.accept_again();
    app.answer(Reply::garbage());
    (void)statuses(2, httpd.url("/app/x"));
    const BreakerBlock block = BreakerPage(httpd).member(app);
    EXPECT_EQ(block.number("Outcome-connect"), 4U);
    EXPECT_EQ(block.number("Outcome-protocol"), 2U);
    EXPECT_EQ(block.number("Verdict-failure"), 6U);
    EXPECT_EQ(block.at("State"), "open");
}

class ThreadedCall : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, ThreadedCall, any_threaded_mpm, mpm_name);

TEST_P(ThreadedCall, ThatFindsTheMembersPoolExhaustedIsLocalAndNeverTripsIt) {
    Backend app("app");
    Httpd httpd(one_child(site(touchy_policy, plain_worker(app, "max=1 acquire=10"))));
    httpd.start();
    app.hold();
    std::future<Response> holder = get_later(httpd.url("/app/x"));
    ASSERT_TRUE(app.wait_for_concurrent(1));
    EXPECT_EQ(statuses(5, httpd.url("/app/x")), "503 503 503 503 503");
    app.release();
    EXPECT_EQ(holder.get().status, 200);
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Outcome-local"), 5U);

    // Connections that come back at the very moment the patience for one is over change nothing.
    app.answer(Reply::ok().after(11ms));
    const LoadResult result =
        load(httpd.url("/app/x"), {.threads = 6, .requests_per_thread = 50, .keep_connections = false});
    EXPECT_GT(result.with_status(503), 0U) << result.describe();
    const BreakerBlock block = BreakerPage(httpd).member(app);
    EXPECT_EQ(block.number("Outcome-local"), 5U + result.with_status(503));
    EXPECT_EQ(block.number("Verdict-failure"), 0U);
    EXPECT_EQ(block.at("State"), "closed");
    EXPECT_TRUE(wait_for_no_permits(httpd, app));
}

TEST_P(ThreadedCall, ThatCannotConnectIsAConnectFailureHoweverFullThePoolIs) {
    const SilentPort silent;
    const std::string member = "http://127.0.0.1:" + std::to_string(silent.number());
    Httpd httpd(
        one_child(site(counting_policy, "ProxyPass /app " + member + " max=1 acquire=60 connectiontimeout=100ms\n")));
    httpd.start();
    const LoadResult result =
        load(httpd.url("/app/x"), {.threads = 3, .requests_per_thread = 6, .keep_connections = false});
    EXPECT_TRUE(result.all(503)) << result.describe();
    const BreakerBlock block = BreakerPage(httpd).member(member);
    const std::size_t attempts = httpd.error_lines_with("AH00957").size() + httpd.error_lines_with("AH01114").size();
    EXPECT_GT(attempts, 0U) << httpd.describe();
    EXPECT_EQ(block.number("Outcome-connect"), httpd.error_lines_with("AH01114").size()) << httpd.describe();
    EXPECT_EQ(block.number("Outcome-local"), httpd.error_lines_with("AH00941").size());
    EXPECT_EQ(block.number("Calls"), 18U);
}

}  // namespace
}  // namespace cb::test
