// CircuitBreakerSlowCall: from the request sent to the first byte of the answer. What the client does with its time is
// not the member's.
#include "slow.hpp"

namespace cb::test {
namespace {

/// One slow call trips, and nothing else does.
const std::string slow_policy = std::string(counting_policy) +
                                "CircuitBreakerSlowCall 600ms rate=1\nCircuitBreakerMinimumCalls 1\n"
                                "CircuitBreakerOpenTime 500ms jitter=0 factor=1\nCircuitBreakerProbes 1\n";

/// Each framing that an answer can have.
std::map<std::string, Reply> framings(const std::string& body) {
    return {{"Content-Length", Reply::ok(body)},
            {"chunks", Reply::ok(body).in_chunks()},
            {"until close", Reply::ok(body).until_close()}};
}

class Slow : public TrafficTest {
  protected:
    /// "closed Calls=2 Slow=1"
    static std::string summary(const Httpd& httpd, const Backend& app) {
        const BreakerBlock block = BreakerPage(httpd).member(app);
        return block.at("State") + " Calls=" + block.at("Calls") + " Slow=" + block.at("Slow");
    }
    static bool wait_for_summary(const Httpd& httpd, const Backend& app, const std::string& expected) {
        return wait_for_text([&] { return summary(httpd, app); }, expected);
    }
};
INSTANTIATE_TEST_SUITE_P(Mpms, Slow, any_mpm, mpm_name);

TEST_P(Slow, IsAMemberByItsFirstByteHoweverItFramesItsAnswerAndWhateverItsStatus) {
    const std::string not_slow = "closed Calls=1 Slow=0";
    for (Reply reply : {Reply::ok(), Reply::ok().in_chunks(), Reply::ok().until_close(), Reply::status(204),
                        Reply::status(404), Reply::status(502), Reply::of_size(3'000'000), Reply::reset()}) {
        Backend app("app");
        Httpd httpd(site(slow_policy, plain_worker(app, "disablereuse=on")));  // or the reset is the keep-alive race
        // Once more on a machine that stood still just then.
        for (int attempt = 0; attempt < 3 && !(httpd.running() && summary(httpd, app) == not_slow); ++attempt) {
            if (httpd.running()) httpd.stop();
            httpd.start();
            EXPECT_GT(get(httpd.url("/app/x")).status, 0);
        }
        ASSERT_EQ(summary(httpd, app), not_slow) << "the machine is too slow for this test";
        app.answer(reply.after(too_slow));
        EXPECT_GT(get(httpd.url("/app/x")).status, 0);
        EXPECT_TRUE(wait_for_summary(httpd, app, "open Calls=2 Slow=1"));
        EXPECT_TRUE(httpd.wait_for_error_line("closed -> open: slow call rate, 1 of 2 calls were slow"));
    }
}

TEST_P(Slow, IsNoMemberThatTakesItsTimeAfterTheFirstByte) {
    Backend app("app");
    Httpd httpd(site(slow_policy, plain_worker(app)));
    httpd.start();
    app.answer_next(1, Reply::of_size(3'000'000).pausing(1'000'000, too_slow));
    EXPECT_EQ(get(httpd.url("/app/x")).body.size(), 3'000'000U);
    app.answer_next(1, Reply::of_size(3'000'000).in_chunks().pausing(1'000'000, too_slow));
    EXPECT_EQ(get(httpd.url("/app/x")).body.size(), 3'000'000U);
    EXPECT_TRUE(wait_for_summary(httpd, app, "closed Calls=2 Slow=0"));
}

TEST_P(Slow, IsNoMemberWhoseClientDoesNotReadForAWhile) {
    Backend app("app");
    Httpd httpd(site(slow_policy + small_buffers, plain_worker(app)));
    httpd.start();
    std::uint64_t calls = 0;
    for (const auto& [name, reply] : framings(long_body())) {
        SCOPED_TRACE(name);
        app.answer(reply);
        RawClient client(httpd.port());
        ASSERT_TRUE(client.send(get_request("/app/x")));
        EXPECT_NE(client.read_until("\r\n\r\n").find(" 200 "), std::string::npos);
        dawdle();
        EXPECT_EQ(app.concurrent(), 1U) << "or all of it has gone into buffers";
        EXPECT_GT(client.read_to_end().size(), 16'000'000U);
        ++calls;
        EXPECT_TRUE(wait_for_summary(httpd, app, "closed Calls=" + std::to_string(calls) + " Slow=0"));
    }
}

TEST_P(Slow, IsNoMemberWhoseClientDownloadsSlowly) {
    Backend app("app");
    Httpd httpd(site(slow_policy + small_buffers, plain_worker(app)));
    httpd.start();
    std::uint64_t calls = 0;
    for (const auto& [name, reply] : framings(long_body())) {
        SCOPED_TRACE(name);
        app.answer(reply);
        RawClient client(httpd.port());
        ASSERT_TRUE(client.send(get_request("/app/x")));
        for (int part = 0; part < 8; ++part) {
            dawdle(too_slow / 6);
            EXPECT_GT(client.read_until("mark").size(), 2'000'000U);
        }
        EXPECT_EQ(client.read_to_end().find("mark"), std::string::npos);
        ++calls;
        EXPECT_TRUE(wait_for_summary(httpd, app, "closed Calls=" + std::to_string(calls) + " Slow=0"));
    }
}

TEST_P(Slow, IsNoMemberWhoseClientUploadsSlowly) {
    Backend app("app");
    Httpd httpd(
        site(slow_policy, plain_worker(app) + "<Location /app/spooled>\n    SetEnv proxy-sendcl 1\n</Location>\n"));
    httpd.start();
    const std::string part(2'000'000, 'x');
    std::uint64_t calls = 0;
    for (const std::string path : {"/app/length", "/app/chunks", "/app/spooled"}) {
        SCOPED_TRACE(path);
        const bool has_length = path == "/app/length";
        RawClient client(httpd.port());
        ASSERT_TRUE(client.send("POST " + path + " HTTP/1.1\r\nHost: me\r\nConnection: close\r\n" +
                                (has_length ? "Content-Length: 12000000" : "Transfer-Encoding: chunked") + "\r\n\r\n"));
        for (int i = 0; i < 6; ++i) {
            dawdle(too_slow / 4);
            ASSERT_TRUE(client.send(has_length ? part : "1e8480\r\n" + part + "\r\n"));
        }
        EXPECT_TRUE(has_length || client.send("0\r\n\r\n"));
        EXPECT_NE(client.read_to_end().find(" 200 "), std::string::npos);
        EXPECT_EQ(app.last_request()->body_size, 12'000'000U);
        ++calls;
        EXPECT_TRUE(wait_for_summary(httpd, app, "closed Calls=" + std::to_string(calls) + " Slow=0"));
    }
    // The time begins when all of it is sent.
    app.answer(Reply::ok().after(too_slow));
    EXPECT_EQ(get(httpd.url("/app/x"), {.method = "POST", .body = std::string(12'000'000, 'x')}).status, 200);
    EXPECT_TRUE(wait_for_summary(httpd, app, "open Calls=4 Slow=1"));
}

TEST_P(Slow, IsAMemberThatRunsIntoItsTimeoutAndNoneWhoseClientHasGone) {
    Backend app("app");
    Httpd httpd(site(counting_policy + std::string("CircuitBreakerSlowCall 600ms\n"), plain_worker(app, "timeout=1")));
    httpd.start();
    app.answer_next(1, Reply::hang());
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "502");
    EXPECT_TRUE(wait_for_summary(httpd, app, "closed Calls=1 Slow=1"));

    app.answer(Reply::of_size(40'000'000).after(too_slow));
    RawClient client(httpd.port());
    ASSERT_TRUE(client.send(get_request("/app/x")));
    ASSERT_TRUE(app.wait_for_concurrent(1));
    client.reset();
    EXPECT_TRUE(wait_for_summary(httpd, app, "closed Calls=2 Slow=1"));
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Outcome-client"), 1U);
}

TEST_P(Slow, IsNoProbeOfASlowClientButOneOfASlowMember) {
    Backend app("app");
    Httpd httpd(site(slow_policy + small_buffers + "CircuitBreakerSettle 300ms\n", plain_worker(app)));
    httpd.start();
    const auto trip = [&] {
        app.answer_next(1, Reply::ok().after(too_slow));
        EXPECT_EQ(statuses(1, httpd.url("/app/trip")), "200");
        EXPECT_EQ(state_of(httpd, app), "open");
    };
    trip();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    app.answer_next(1, Reply::ok().after(too_slow));
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "200");
    EXPECT_EQ(state_of(httpd, app), "open");
    EXPECT_EQ(transitions(httpd, "half-open", "open"), 1U);

    // The same if it then goes on for so long that somebody else finds out.
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    app.answer_path("/stream", Reply::of_size(1000).after(too_slow).stalling(500));
    RawClient stream(httpd.port());
    ASSERT_TRUE(stream.send(get_request("/app/stream")));
    EXPECT_NE(stream.read_until("\r\n\r\n").find(" 200 "), std::string::npos);
    ASSERT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).status == 503 && state_of(httpd, app) == "open"; },
                           patience, "another request to settle the probe"));
    app.release();
    EXPECT_TRUE(wait_for_no_permits(httpd, app));

    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    RawClient upload(httpd.port());
    ASSERT_TRUE(upload.send("POST /app/x HTTP/1.1\r\nHost: me\r\nContent-Length: 40000\r\nConnection: close\r\n\r\n" +
                            std::string(20'000, 'x')));
    dawdle();
    ASSERT_TRUE(upload.send(std::string(20'000, 'x')));
    EXPECT_NE(upload.read_to_end().find(" 200 "), std::string::npos);
    EXPECT_EQ(state_of(httpd, app), "closed");
    trip();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    app.answer(Reply::ok(long_body()));
    RawClient download(httpd.port());
    ASSERT_TRUE(download.send(get_request("/app/x")));
    dawdle();
    EXPECT_GT(download.read_to_end().size(), 16'000'000U);
    EXPECT_TRUE(wait_for_state(httpd, app, "closed"));
}

}  // namespace
}  // namespace cb::test
