// Clients that speak HTTP/2 to httpd: many requests on one connection, and streams that are given up while the
// connection goes on.
#include "http2_client.hpp"
#include "outcomes.hpp"

namespace cb::test {
namespace {

/// One failure trips.
const std::string touchy_policy = std::string(quick_policy) + "CircuitBreakerConsecutiveFailures 1\n";

class Http2 : public TrafficTest {
  protected:
    static HttpdOptions site(const std::string& policy, const std::string& proxied) {
        HttpdOptions options = TrafficTest::site("Protocols h2c http/1.1\n" + policy, proxied);
        options.add_modules = {"http2"};
        return options;
    }
    /// The one call of a client that has gone: neutral, and all it held is back.
    static void expect_neutral(const Httpd& httpd, const Backend& app, std::uint64_t clients, const char* state) {
        EXPECT_TRUE(wait_for_counter(httpd, app, "Outcome-client", clients)) << httpd.describe();
        EXPECT_TRUE(wait_for_no_permits(httpd, app));
        const BreakerBlock block = BreakerPage(httpd).member(app);
        EXPECT_EQ(block.at("State"), state);
        EXPECT_EQ(block.number("Outcome-client"), clients);
        EXPECT_EQ(block.number("Verdict-ignore"), clients);
        EXPECT_EQ(block.number("Consecutive"), 0U);
    }
};
INSTANTIATE_TEST_SUITE_P(Mpms, Http2, any_threaded_mpm, mpm_name);  // prefork has no HTTP/2

TEST_P(Http2, AFailedCallIsMadeAgainForItsStreamAlone) {
    Backend bad("bad");
    Backend good("good");
    Httpd httpd(site(std::string(counting_policy) + "CircuitBreakerFailover All budget=100\n",
                     balancer_of(member_line(bad, "loadfactor=100") + member_line(good))));
    httpd.start();
    bad.answer_path("/failing", Reply::status(503, "no").header("X-Mark", "bad").header("Set-Cookie", "a=b"));
    bad.answer_path("/reset", Reply::reset());
    Http2Client client(httpd);
    std::vector<const Stream*> failing;
    std::vector<const Stream*> fine;
    for (int i = 0; i < 5; ++i) {
        failing.push_back(&client.start("/app/failing"));
        failing.push_back(&client.start("/app/reset"));
        fine.push_back(&client.start("/app/x"));
    }
    EXPECT_TRUE(client.finish());
    for (const Stream* stream : failing) {
        EXPECT_EQ(stream->status(), 200);
        EXPECT_EQ(stream->headers().get("X-Backend"), "good");
        EXPECT_FALSE(stream->headers().has("X-Mark"));
        EXPECT_FALSE(stream->headers().has("Set-Cookie"));
    }
    for (const Stream* stream : fine)
        EXPECT_EQ(stream->status(), 200);
    EXPECT_GE(BreakerPage(httpd).member(bad).number("Failovers"), 5U)
        << "mod_proxy gives the other one a hundredth, or a little more as they come at once";
    EXPECT_TRUE(wait_for_no_permits(httpd, bad));
    EXPECT_TRUE(wait_for_no_permits(httpd, good));
}

TEST_P(Http2, HasTheSameVerdictsStreamByStream) {
    Backend app("app");
    // Only the hang is to run into a timeout.
    const std::string hanging = app.member() + "/hang";
    Httpd httpd(site(counting_policy,
                     "ProxyPass /app/hang " + hanging + " timeout=1\n" + plain_worker(app, "disablereuse=on")));
    httpd.start();
    app.answer_path("/ok", Reply::of_size(300'000));
    app.answer_path("/missing", Reply::status(404));
    app.answer_path("/failing", Reply::status(503));
    app.answer_path("/reset", Reply::reset());
    app.answer_path("/garbage", Reply::garbage());
    // The pause in the middle lets the client catch up, so that the end is not put down to a client that is too slow.
    const auto breaking_off = [](Ending ending) {
        return Reply::of_size(300'000).pausing(10'000, 500ms).cut_after(20'000, ending);
    };
    app.answer_path("/truncated", breaking_off(Ending::reset));
    app.answer_path("/chunks", breaking_off(Ending::fin).in_chunks());
    app.answer_path("/hang", Reply::hang());
    Http2Client client(httpd);
    const OutcomeCounters before(httpd, app);
    const OutcomeCounters before_hang(httpd, hanging);
    EXPECT_EQ(client.get("/app/ok").received(), 300'000U);
    for (const char* path :
         {"/ok", "/ok", "/missing", "/failing", "/reset", "/garbage", "/truncated", "/chunks", "/hang"}) {
        (void)client.start(std::string("/app") + path);
    }
    EXPECT_TRUE(client.finish());
    Stream& last = client.get("/app/ok");
    EXPECT_TRUE(last.is_http2());
    EXPECT_FALSE(last.is_on_new_connection());
    EXPECT_TRUE(wait_for_counter(httpd, app, "Calls", 10));
    EXPECT_EQ(OutcomeCounters(httpd, app) - before,
              "Outcome-2xxx4 Outcome-4xx Outcome-5xx Outcome-protocol Outcome-reset "
              "Outcome-truncatedx2 Verdict-failurex5 Verdict-successx5");
    EXPECT_EQ(OutcomeCounters::of_next_call(httpd, hanging, before_hang) - before_hang,
              "Outcome-timeout Verdict-failure");
    EXPECT_TRUE(wait_for_no_permits(httpd, app));
}

TEST_P(Http2, IsRefusedStreamByStreamAndRecoversWithOneOfThem) {
    Backend shut("shut");
    Backend app("app");
    Httpd httpd(site(touchy_policy, "<Proxy \"" + shut.member() + "\">\n    " + long_open +
                                        "</Proxy>\nProxyPass /shut " + shut.member() + "\n" + plain_worker(app)));
    httpd.start();
    Http2Client client(httpd);
    shut.answer_next(1, Reply::status(502));
    EXPECT_EQ(client.get("/shut/x").status(), 502);
    std::vector<Stream*> refused;
    for (int i = 0; i < 5; ++i)
        refused.push_back(&client.start("/shut/x"));
    EXPECT_TRUE(client.finish());
    for (const Stream* one : refused) {
        EXPECT_EQ(one->status(), 503);
        EXPECT_TRUE(one->headers().has("Retry-After"));
    }
    EXPECT_EQ(shut.requests(), 1U);
    app.answer_next(1, Reply::status(502));
    EXPECT_EQ(client.get("/app/x").status(), 502);
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    app.hold();
    Stream& probe = client.start("/app/x");
    ASSERT_TRUE(client.run_until([&] { return app.concurrent() == 1; }, "the probe"));
    Stream& beside = client.start("/app/x");
    ASSERT_TRUE(client.run_until([&] { return beside.status() != 0; }, "a refusal on the same connection"));
    EXPECT_EQ(beside.status(), 503);
    app.release();
    EXPECT_TRUE(client.finish());
    EXPECT_EQ(probe.status(), 200);
    EXPECT_EQ(state_of(httpd, app), "closed");
    EXPECT_FALSE(client.get("/app/x").is_on_new_connection());
}

TEST_P(Http2, StreamThatIsGivenUpIsNeutral) {
    Backend app("app");
    Httpd httpd(site(touchy_policy, plain_worker(app)));
    httpd.start();
    Http2Client client(httpd);
    EXPECT_EQ(client.get("/app/x").status(), 200);

    app.answer_path("/big", Reply::of_size(8'000'000).stalling(1'000'000));
    app.answer_path("/chunks", Reply::of_size(8'000'000).in_chunks().stalling(1'000'000));
    std::uint64_t clients = 0;
    for (const char* path : {"/app/big", "/app/chunks"}) {
        SCOPED_TRACE(path);
        Stream& download = client.start(path);
        ASSERT_TRUE(client.run_until([&] { return download.received() > 500'000; }, "half of a download"));
        client.give_up(download);
        // The stream after it on the same connection: httpd has read the RST_STREAM by then.
        EXPECT_EQ(client.get("/app/x").status(), 200);
        app.release();
        expect_neutral(httpd, app, ++clients, "closed");
    }

    // Before the headers.
    app.answer_path("/late", Reply::of_size(8'000'000).when_released());
    Stream& waiting = client.start("/app/late");
    ASSERT_TRUE(client.run_until([&] { return app.concurrent() == 1; }, "the request"));
    client.give_up(waiting);
    EXPECT_EQ(client.get("/app/x").status(), 200);
    app.release();
    expect_neutral(httpd, app, ++clients, "closed");

    // In mid-upload.
    Stream& upload = client.start("/app/upload", 300'000);
    ASSERT_TRUE(client.run_until([&] { return upload.is_uploading(); }, "half of an upload"));
    ASSERT_TRUE(client.run_until([&] { return BreakerPage(httpd).member(app).number("In-flight") == 1; }, "a permit"));
    client.give_up(upload);
    EXPECT_FALSE(client.get("/app/x").is_on_new_connection());
    expect_neutral(httpd, app, ++clients, "closed");
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Calls"), 2 * clients + 1);
}

TEST_P(Http2, ConnectionThatIsClosedMakesEachOfItsStreamsNeutral) {
    Backend app("app");
    Httpd httpd(site(touchy_policy, plain_worker(app)));
    httpd.start();
    app.answer(Reply::of_size(8'000'000).stalling(1'000'000));
    Http2Client client(httpd);
    std::vector<Stream*> downloads;
    for (int i = 0; i < 4; ++i)
        downloads.push_back(&client.start("/app/x"));
    ASSERT_TRUE(client.run_until(
        [&] { return std::ranges::all_of(downloads, [](auto* one) { return one->received() > 500'000; }); },
        "four halves of a download"));
    client.close();
    app.release();
    expect_neutral(httpd, app, 4, "closed");
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Calls"), 4U);
}

TEST_P(Http2, ProbeThatIsGivenUpGivesItsSlotBackAndProvesNothing) {
    Backend app("app");
    Httpd httpd(site(touchy_policy, plain_worker(app)));
    httpd.start();
    Http2Client client(httpd);
    app.answer_next(1, Reply::status(502));
    EXPECT_EQ(client.get("/app/x").status(), 502);
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    app.answer(Reply::of_size(8'000'000).stalling(1'000'000));
    Stream& probe = client.start("/app/x");
    ASSERT_TRUE(client.run_until([&] { return probe.received() > 500'000; }, "half of a download"));
    client.give_up(probe);
    EXPECT_EQ(client.get("/breakers").status(), 200);
    app.release();
    expect_neutral(httpd, app, 1, "half-open");

    Http2Client other(httpd);
    Stream& probe_too = other.start("/app/x");
    ASSERT_TRUE(other.run_until([&] { return probe_too.received() > 500'000; }, "half of a download"));
    other.close();
    app.release();
    expect_neutral(httpd, app, 2, "half-open");

    app.answer_as_usual();
    EXPECT_EQ(client.get("/app/x").status(), 200);
    EXPECT_EQ(state_of(httpd, app), "closed");
    EXPECT_EQ(transition_lines(httpd).size(), 3U) << httpd.describe();
}

// Over HTTP/1.1 httpd also waits no longer for the client's next byte.
TEST_P(Http2, ProbeWhoseBodyComesByteByByteIsDueWithinAnOpenTime) {
    Backend app("app");
    Httpd httpd(site(touchy_policy + "CircuitBreakerProbeBody 0\n", plain_worker(app)));
    httpd.start();
    app.answer_next(1, Reply::status(503));
    EXPECT_EQ(get(httpd.url("/app/x")).status, 503);
    Http2Client client(httpd);
    const auto number = [&](const char* key) { return BreakerPage(httpd).member(app).number(key); };
    Stream* upload = nullptr;
    ASSERT_TRUE(wait_until(
        [&] {
            if (upload != nullptr) client.give_up(*upload);
            const std::uint64_t refused = number("Refused");
            upload = &client.start("/app/x", 50'000);
            return client.run_until([&] { return number("Probes") == 1 || number("Refused") > refused; }, "a look") &&
                   number("Probes") == 1;
        },
        patience, "its turn to be a probe"));
    const auto is_over = [&] {
        upload->send_more(1);
        return app.unfinished_requests() == 1;
    };
    EXPECT_TRUE(client.run_until(is_over, "the member to be rid of it")) << httpd.describe();
    EXPECT_EQ(transitions(httpd, "half-open", "open"), 0U);
}

}  // namespace
}  // namespace cb::test
