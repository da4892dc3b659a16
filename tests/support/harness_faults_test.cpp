// Proves every way in which a scripted Backend can fail, seen by a client that comes directly.
#include <gtest/gtest.h>

#include "backend.hpp"
#include "http_client.hpp"

namespace cb::test {
namespace {

constexpr std::size_t megabyte = 1'000'000;

TEST(BackendFault, RefusesConnectionsAndComesBackOnTheSamePort) {
    Backend backend;
    Client client;
    EXPECT_EQ(client.get(backend.url()).status, 200);
    backend.refuse();
    EXPECT_EQ(client.get(backend.url()).code, CURLE_COULDNT_CONNECT) << "the kept connection must be gone, too";
    EXPECT_EQ(get(backend.url()).code, CURLE_COULDNT_CONNECT);
    backend.accept_again();
    EXPECT_EQ(client.get(backend.url()).status, 200);
    EXPECT_EQ(backend.connections(), 2U);
}

TEST(BackendFault, FinishesWhatItIsDoingWhenItRefuses) {
    Backend backend;
    backend.hold();
    Client client;
    auto held = std::async(std::launch::async, [&] { return client.get(backend.url()); });
    EXPECT_TRUE(backend.wait_for_concurrent(1));
    backend.refuse();
    backend.release();
    EXPECT_EQ(held.get().status, 200);
    EXPECT_EQ(client.get(backend.url()).code, CURLE_COULDNT_CONNECT);
}

TEST(BackendFault, ResetsAfterReadingTheRequest) {
    Backend backend;
    backend.answer(Reply::reset());
    const Response response = get(backend.url(), {.method = "POST", .body = std::string(megabyte, 'b')});
    EXPECT_EQ(response.status, 0);
    EXPECT_EQ(response.code, CURLE_RECV_ERROR) << response.error;
    EXPECT_EQ(backend.last_request()->body_size, megabyte);
}

TEST(BackendFault, ResetsBeforeReadingAnything) {
    Backend backend;
    Client client;
    EXPECT_EQ(client.get(backend.url()).status, 200);
    backend.reset_connections();
    const Response kept = client.get(backend.url());
    EXPECT_EQ(kept.status, 0) << "the kept connection is reset as well";
    RawClient raw(backend.port());
    EXPECT_EQ(raw.read_to_end(), "");
    EXPECT_TRUE(raw.reset_by_peer());
    EXPECT_EQ(backend.requests(), 1U);
    backend.reset_connections(false);
    EXPECT_EQ(client.get(backend.url()).status, 200);
}

TEST(BackendFault, ClosesWithoutAnAnswer) {
    Backend backend;
    backend.answer(Reply::nothing(Ending::fin));
    EXPECT_EQ(get(backend.url()).code, CURLE_GOT_NOTHING);
}

TEST(BackendFault, HangsUntilReleasedThenAnswersLate) {
    Backend backend;
    backend.answer(Reply::hang());
    RawClient leaving(backend.port());
    leaving.send("GET / HTTP/1.1\r\nHost: me\r\n\r\n");
    EXPECT_TRUE(backend.wait_for_concurrent(1));
    EXPECT_EQ(leaving.read_to_end(50ms), "");
    EXPECT_FALSE(leaving.closed_by_peer());
    leaving.close();
    EXPECT_TRUE(backend.wait_until_quiet()) << "a peer that leaves must be noticed";

    backend.answer(Reply::status(404).when_released());
    auto late = get_later(backend.url());
    EXPECT_TRUE(backend.wait_for_requests(2));
    EXPECT_EQ(backend.concurrent(), 1U);
    backend.release();
    EXPECT_EQ(late.get().status, 404);
    EXPECT_EQ(get(backend.url(), {.timeout = 50ms}).status, 0) << "the next one hangs again";
}

TEST(BackendFault, HangsNoLongerThanItLives) {
    std::future<Response> answer;
    {
        Backend backend;
        backend.answer(Reply::hang());
        answer = get_later(backend.url());
        EXPECT_TRUE(backend.wait_for_concurrent(1));
    }
    EXPECT_EQ(answer.get().code, CURLE_GOT_NOTHING);
}

TEST(BackendFault, TruncatesBodiesOfKnownLength) {
    Backend backend;
    backend.answer(Reply::of_size(megabyte).cut_after(10'000, Ending::reset));
    const Response reset = get(backend.url());
    EXPECT_EQ(reset.status, 200);
    EXPECT_EQ(reset.header("Content-Length"), "1000000");
    EXPECT_EQ(reset.body.size(), 10'000U) << "a reset must not swallow what was sent before";
    EXPECT_EQ(reset.code, CURLE_RECV_ERROR) << reset.error;

    backend.answer(Reply::of_size(megabyte).cut_after(10'000, Ending::fin));
    const Response fin = get(backend.url());
    EXPECT_EQ(fin.body.size(), 10'000U);
    EXPECT_EQ(fin.code, CURLE_PARTIAL_FILE) << fin.error;

    backend.answer(Reply::of_size(megabyte).cut_after(10'000, Ending::silence));
    RawClient silence(backend.port());
    silence.send("GET / HTTP/1.1\r\nHost: me\r\n\r\n");
    const std::string half = "\r\n\r\n" + std::string(10'000, 'x');
    EXPECT_TRUE(silence.read_until(half).ends_with(half));
    EXPECT_EQ(silence.read_to_end(50ms), "");
    EXPECT_FALSE(silence.closed_by_peer());
}

TEST(BackendFault, TruncatesChunkedBodiesInAChunkOrBetweenTwo) {
    Backend backend;
    const Reply cut = Reply::of_size(megabyte).in_chunks().cut_after(10'000, Ending::reset);
    for (Reply reply : {Reply(cut), Reply(cut).between_chunks(), Reply(cut).cut_after(10'000, Ending::fin),
                        Reply(cut).cut_after(10'000, Ending::fin).between_chunks()}) {
        backend.answer(std::move(reply));
        const Response response = get(backend.url());
        EXPECT_EQ(response.status, 200);
        EXPECT_EQ(response.body.size(), 10'000U);
        EXPECT_FALSE(response.complete());
    }
    backend.answer(Reply(cut).between_chunks());
    RawClient between(backend.port());
    between.send("GET / HTTP/1.1\r\nHost: me\r\n\r\n");
    EXPECT_TRUE(between.read_to_end().ends_with("xx\r\n"));
    backend.answer(cut);
    RawClient inside(backend.port());
    inside.send("GET / HTTP/1.1\r\nHost: me\r\n\r\n");
    EXPECT_NE(inside.read_until("\r\n\r\n"), "");
    EXPECT_EQ(inside.read_until("\r\n"), "f4240\r\n") << "the chunk announces the whole megabyte";
    EXPECT_EQ(inside.read_to_end().size(), 10'000U);
    EXPECT_TRUE(inside.reset_by_peer());
}

TEST(BackendFault, SpeaksGarbageHalfAHeaderOrOnlyAnInterim) {
    Backend backend;
    const auto bytes = [&](const Reply& reply) {
        backend.answer(reply);
        RawClient client(backend.port());
        client.send("GET / HTTP/1.1\r\nHost: me\r\n\r\n");
        return client.read_to_end();
    };
    EXPECT_TRUE(bytes(Reply::garbage()).starts_with("\x15\x03\x01"));
    EXPECT_TRUE(bytes(Reply::half_header(Ending::reset)).ends_with("X-Unfini"));
    EXPECT_EQ(bytes(Reply::only_interim()), "HTTP/1.1 103 Interim\r\n\r\n");
    EXPECT_EQ(bytes(Reply::raw("anything")), "anything");
    backend.answer(Reply::half_header(Ending::silence));
    EXPECT_EQ(get(backend.url(), {.timeout = 50ms}).code, CURLE_OPERATION_TIMEDOUT);
    EXPECT_TRUE(backend.wait_until_quiet());
}

TEST(BackendFault, ClosesIdleConnectionsSilently) {
    Backend backend;
    RawClient client(backend.port());
    client.send("GET / HTTP/1.1\r\nHost: me\r\n\r\n");
    EXPECT_EQ(client.read_until("backend\r\n").find("close"), std::string::npos);
    EXPECT_EQ(backend.close_idle_connections(), 1U);
    (void)client.read_to_end();
    EXPECT_TRUE(client.closed_by_peer());
    EXPECT_FALSE(client.reset_by_peer());

    RawClient other(backend.port());
    other.send("GET / HTTP/1.1\r\nHost: me\r\n\r\n");
    (void)other.read_until("\r\n\r\nbackend");
    EXPECT_EQ(backend.reset_idle_connections(), 1U);
    EXPECT_EQ(other.read_to_end(), "");
    EXPECT_TRUE(other.reset_by_peer());
}

TEST(BackendFault, ClosesAfterEveryAnswerWithAndWithoutSayingSo) {
    Backend backend;
    Client client;
    backend.answer(Reply::ok().closing());
    EXPECT_EQ(client.get(backend.url()).header("Connection"), "close");
    backend.answer(Reply::ok().closing_silently());
    EXPECT_FALSE(client.get(backend.url()).headers.has("Connection"));
    EXPECT_EQ(backend.connections(), 2U);
    EXPECT_EQ(client.get(backend.url()).status, 200);
    EXPECT_EQ(backend.connections(), 3U);
}

TEST(BackendFault, CanFailOnlyOnAKeptConnection) {
    Backend backend;
    backend.answer([](const Request& r) { return r.nth_on_connection > 1 ? Reply::reset() : Reply::ok(); });
    RawClient client(backend.port());
    client.send("GET / HTTP/1.1\r\nHost: me\r\n\r\n");
    (void)client.read_until("ok");
    client.send("GET / HTTP/1.1\r\nHost: me\r\n\r\n");
    EXPECT_EQ(client.read_to_end(), "");
    EXPECT_TRUE(client.reset_by_peer());
    EXPECT_EQ(backend.requests(), 2U);
}

}  // namespace
}  // namespace cb::test
