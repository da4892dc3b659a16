// Proves what a scripted Backend does when all is well, seen by a client that comes directly.
#include <gtest/gtest.h>

#include "backend.hpp"
#include "http_client.hpp"

namespace cb::test {
namespace {

constexpr std::size_t megabyte = 1'000'000;

TEST(Backend, AnswersWithItsNameUntilToldOtherwise) {
    Backend backend("app");
    const Response usual = get(backend.url());
    EXPECT_EQ(usual.status, 200);
    EXPECT_EQ(usual.body, "app");
    EXPECT_EQ(usual.backend(), "app");

    backend.answer(Reply::status(503, "sorry").header("Retry-After", "7"));
    const Response failing = get(backend.url());
    EXPECT_EQ(failing.status, 503);
    EXPECT_EQ(failing.body, "sorry");
    EXPECT_EQ(failing.header("Retry-After"), "7");
    EXPECT_EQ(failing.header("Content-Length"), "5");

    backend.answer_as_usual();
    EXPECT_EQ(get(backend.url()).status, 200);
}

TEST(Backend, AnswersTheNextRequestsThenByPathThenByFunction) {
    Backend backend;
    backend.answer([](const Request& request) { return Reply::ok(request.method + " " + request.target); });
    backend.answer_path("/bad", Reply::status(500));
    backend.answer_next(2, Reply::status(429));
    EXPECT_EQ(get(backend.url("/bad")).status, 429);
    EXPECT_EQ(get(backend.url("/good")).status, 429);
    EXPECT_EQ(get(backend.url("/bad?why")).status, 500);
    EXPECT_EQ(get(backend.url("/good?why"), {.method = "DELETE"}).body, "DELETE /good?why");
    EXPECT_EQ(backend.requests_for("/bad"), 2U);
}

TEST(Backend, SendsBodiesByLengthInChunksOrUntilItCloses) {
    Backend backend;
    for (const Reply& reply : {Reply::of_size(megabyte), Reply::of_size(megabyte).in_chunks(),
                               Reply::of_size(megabyte).until_close(), Reply::of_size(megabyte).dripping(200'000, 1ms),
                               Reply::of_size(megabyte).in_chunks().dripping(200'000, 1ms)}) {
        backend.answer(reply);
        const Response response = get(backend.url());
        EXPECT_TRUE(response.complete()) << response.error;
        EXPECT_EQ(response.body.size(), megabyte);
    }
    backend.answer(Reply::ok("").in_chunks());
    EXPECT_TRUE(get(backend.url()).complete());
}

TEST(Backend, SendsNoBodyWhereHttpHasNone) {
    Backend backend;
    Client client;
    backend.answer(Reply::ok("five!"));
    const Response head = client.get(backend.url(), {.method = "HEAD"});
    EXPECT_EQ(head.header("Content-Length"), "5");
    EXPECT_EQ(head.body, "");
    backend.answer(Reply::status(204));
    EXPECT_EQ(client.get(backend.url()).status, 204);
    backend.answer(Reply::status(304).in_chunks());
    EXPECT_EQ(client.get(backend.url()).status, 304);
    backend.answer(Reply::ok());
    EXPECT_EQ(client.get(backend.url()).body, "ok");
    EXPECT_EQ(backend.connections(), 1U) << "nothing of an answer may spill into the next";
}

TEST(Backend, ReadsRequestBodiesByLengthAndInChunks) {
    Backend backend;
    Client client;
    const std::string body(megabyte, 'b');
    EXPECT_EQ(client.get(backend.url(), {.method = "POST", .body = body}).status, 200);
    EXPECT_EQ(backend.last_request()->body_size, megabyte);
    EXPECT_EQ(backend.last_request()->body.size(), Request::most_kept_body);
    const RequestOptions chunked{.method = "POST",
                                 .headers = {{"Transfer-Encoding", "chunked"}, {"Expect", "100-continue"}},
                                 .body = "in chunks"};
    EXPECT_EQ(client.get(backend.url(), chunked).status, 200);
    EXPECT_EQ(backend.last_request()->headers.get("Transfer-Encoding"), "chunked");
    EXPECT_EQ(backend.last_request()->body, "in chunks");
    EXPECT_EQ(client.get(backend.url()).status, 200);
    EXPECT_EQ(backend.last_request()->method, "GET") << "a body must not spill into the next request";
    EXPECT_EQ(backend.connections(), 1U);
}

TEST(Backend, DelaysTheHeadersOrTheBody) {
    Backend backend;
    backend.answer(Reply::ok().after(100ms));
    EXPECT_GE(get(backend.url()).total_time, 100ms);

    backend.answer(Reply::ok("0123456789").pausing(5, 100ms));
    EXPECT_GE(get(backend.url()).total_time, 100ms);

    const auto half_of = [&](const Reply& reply, const char* first_half) {
        backend.answer(reply);
        RawClient client(backend.port());
        client.send("GET / HTTP/1.1\r\nHost: me\r\n\r\n");
        EXPECT_TRUE(client.read_until(first_half).ends_with(first_half));
        EXPECT_EQ(client.read_to_end(50ms), "") << "the rest is still to come";
        EXPECT_FALSE(client.closed_by_peer());
    };
    half_of(Reply::ok("0123456789").pausing(5, 60s), "\r\n\r\n01234");
    half_of(Reply::ok("0123456789").in_chunks().stalling(7), "\r\n\r\n7\r\n0123456\r\n");
    EXPECT_TRUE(backend.wait_until_quiet());
    auto stalled = get_later(backend.url());
    EXPECT_TRUE(backend.wait_for_concurrent(1));
    backend.release();
    EXPECT_EQ(stalled.get().body, "0123456789");
}

TEST(Backend, UpgradesToATunnelThatEchoes) {
    Backend backend;
    backend.answer(Reply::upgrade("websocket"));
    RawClient client(backend.port());
    client.send("GET /ws HTTP/1.1\r\nHost: me\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
    EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 101 Switching Protocols\r\n"));
    client.send("hello");
    EXPECT_EQ(client.read_until("hello"), "hello");
    EXPECT_EQ(backend.concurrent(), 1U);
    client.close();
    EXPECT_TRUE(backend.wait_until_quiet());
}

TEST(Backend, HoldsRequestsAndCountsThePeak) {
    Backend backend;
    backend.hold();
    std::vector<std::future<Response>> answers;
    for (int i = 0; i < 5; ++i)
        answers.push_back(get_later(backend.url()));
    EXPECT_TRUE(backend.wait_for_concurrent(5));
    backend.release_some(2);
    EXPECT_TRUE(wait_until([&] { return backend.concurrent() == 3; }, patience, "two to leave"));
    backend.answer(Reply::status(500));
    backend.release();
    int failed = 0;
    for (auto& answer : answers)
        failed += answer.get().status == 500 ? 1 : 0;
    EXPECT_EQ(failed, 3) << "the answer is chosen when the gate opens";
    EXPECT_EQ(backend.peak(), 5U);
    EXPECT_EQ(get(backend.url()).status, 500) << "the gate stays open";
    backend.forget();
    EXPECT_EQ(backend.peak(), 0U);
    EXPECT_EQ(backend.requests(), 0U);
}

TEST(Backend, NeverCountsOneClientTwice) {
    Backend backend;
    Client client;
    for (const Reply& reply : {Reply::ok(), Reply::of_size(100'000), Reply::ok("").in_chunks(),
                               Reply::of_size(100'000).in_chunks(), Reply::ok().closing_silently(), Reply::reset()}) {
        backend.answer(reply);
        for (int i = 0; i < 300; ++i) {
            (void)client.get(backend.url());
            ASSERT_EQ(backend.concurrent(), 0U);
        }
    }
    EXPECT_EQ(backend.peak(), 1U);
}

TEST(Backend, KeepsABoundedLog) {
    Backend backend;
    Client client;
    for (std::size_t i = 0; i < Backend::most_logged + 5; ++i)
        (void)client.get(backend.url("/" + std::to_string(i)), {.headers = {{"X-Count", std::to_string(i)}}});
    const std::vector<Request> log = backend.log();
    ASSERT_EQ(log.size(), Backend::most_logged);
    EXPECT_EQ(log.front().path, "/5");
    EXPECT_EQ(log.front().headers.get("x-count"), "5");
    EXPECT_LE(log.front().at, log.back().at);
    EXPECT_EQ(backend.requests(), Backend::most_logged + 5);
}

TEST(Backend, ListensOnAUnixSocketAndRemovesIt) {
    std::filesystem::path path;
    {
        Backend backend("uds", OnUnixSocket{});
        path = backend.unix_socket();
        EXPECT_EQ(backend.member(), "unix:" + path.string() + "|http://uds");
        const RequestOptions over_it{.unix_socket = path.string()};
        EXPECT_EQ(get("http://uds/", over_it).body, "uds");
        EXPECT_EQ(get(backend.url()).code, CURLE_COULDNT_CONNECT) << "there is no TCP port then";
        backend.refuse();
        EXPECT_EQ(get("http://uds/", over_it).code, CURLE_COULDNT_CONNECT);
        backend.accept_again();
        EXPECT_EQ(get("http://uds/", over_it).body, "uds");
    }
    EXPECT_FALSE(std::filesystem::exists(path.parent_path()));
}

TEST(Backend, BoundsItsThreads) {
    ConnectionServer server([](Connection& c) { c.wait({}); }, {}, 3);
    std::vector<RawClient> clients;
    for (int i = 0; i < 5; ++i)
        clients.emplace_back(server.port());
    EXPECT_TRUE(wait_until([&] { return server.accepted() == 3; }, patience, "three connections"));
    clients.erase(clients.begin());
    EXPECT_TRUE(wait_until([&] { return server.accepted() == 4; }, patience, "the fourth"));
    EXPECT_LE(server.open_connections(), 3U);
}

}  // namespace
}  // namespace cb::test
