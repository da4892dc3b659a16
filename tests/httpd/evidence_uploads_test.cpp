// Uploads, of which the member may not have read all: what is its doing, and what the client's.
#include <sys/socket.h>

#include "evidence.hpp"

namespace cb::test {
namespace {

/// More than all buffers on the way hold.
constexpr std::size_t long_upload = 8'000'000;

TEST(Evidence, ASlowUploadMakesNoMemberSlowOverAnyProtocol) {
    std::vector<std::unique_ptr<WireBackend>> wires;
    std::string proxied;
    for (const Dialect& dialect : {fcgi(), scgi(), uwsgi(), ajp(), h2c()}) {
        wires.push_back(std::make_unique<WireBackend>(dialect.scheme, dialect));
        proxied += "ProxyPass /" + dialect.scheme + " " + wires.back()->member() + "\n";
    }
    HttpdOptions options = touchy_site(proxied, "CircuitBreakerSlowCall 2s rate=1\nCircuitBreakerMinimumCalls 1\n");
    options.add_modules = {"proxy_fcgi", "proxy_scgi", "proxy_uwsgi", "proxy_ajp", "proxy_http2"};
    Httpd httpd(options);
    httpd.start();
    std::vector<std::unique_ptr<RawClient>> clients;
    for (const auto& wire : wires) {
        clients.push_back(std::make_unique<RawClient>(httpd.port()));
        ASSERT_TRUE(clients.back()->send(upload("/" + wire->name() + "/x", 60'000, "Connection: close\r\n") +
                                         std::string(40'000, 'x')));
    }
    std::this_thread::sleep_for(2200ms);  // what the clients take is what this is about
    for (const auto& client : clients) {
        ASSERT_TRUE(client->send(std::string(20'000, 'x')));
        EXPECT_EQ(status_of(client->read_to_end()), "200");
    }
    for (const auto& wire : wires)
        EXPECT_TRUE(wait_for_charge(httpd, wire->member(), "closed Calls=1 Outcome-2xx=1"));
}

TEST(Evidence, AnAnswerThatComesBeforeTheWholeRequestIsTheAnswer) {
    for (const char* status : {"404 Not Found", "413 Content Too Large", "401 Unauthorized"}) {
        SCOPED_TRACE(status);
        HeadServer app([&](Connection& connection, const std::string&) {
            connection.send(std::string("HTTP/1.1 ") + status + "\r\nContent-Length: 5\r\n\r\nearly");
            connection.close();  // with bytes unread: the kernel sends a RST
        });
        Httpd httpd(touchy_site(app.worker()));
        httpd.start();
        const std::string answer =
            answer_to(httpd, upload("/app/x", long_upload, "Connection: close\r\n") + std::string(long_upload, 'x'));
        EXPECT_EQ(status_of(answer), std::string(status).substr(0, 3));
        EXPECT_TRUE(answer.ends_with("early"));
        EXPECT_TRUE(wait_for_charge(httpd, app.member(), "closed Calls=1 Outcome-4xx=1"));
    }
}

TEST(Evidence, InObserveAnEarlyAnswerIsLostAsWithoutTheModule) {
    HeadServer app([](Connection& connection, const std::string&) {
        connection.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
        connection.close();
    });
    Httpd httpd(touchy_site(app.worker(), "CircuitBreaker Observe\n"));
    httpd.start();
    EXPECT_EQ(status_of(answer_to(
                  httpd, upload("/app/x", long_upload, "Connection: close\r\n") + std::string(long_upload, 'x'))),
              "502");
    EXPECT_TRUE(wait_for_charge(httpd, app.member(), "closed Calls=1 Outcome-upload=1"));
}

TEST(Evidence, AnAnswerOfFailureThatComesBeforeTheWholeRequestCounts) {
    HeadServer app([](Connection& connection, const std::string&) {
        connection.send("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
        connection.close();
    });
    Httpd httpd(touchy_site(app.worker()));
    httpd.start();
    (void)answer_to(httpd, upload("/app/x", long_upload, "Connection: close\r\n") + std::string(long_upload, 'x'));
    EXPECT_TRUE(wait_for_charge(httpd, app.member(), "open Calls=1 Outcome-5xx=1 Verdict-failure=1"));
}

TEST(Evidence, AMemberThatLeavesInTheMiddleOfAnUploadIsNotCharged) {
    HeadServer app([](Connection& connection, const std::string&) { connection.reset(); });
    Httpd httpd(touchy_site(app.worker()));
    httpd.start();
    EXPECT_EQ(status_of(answer_to(
                  httpd, upload("/app/x", long_upload, "Connection: close\r\n") + std::string(long_upload, 'x'))),
              "502");
    EXPECT_TRUE(wait_for_charge(httpd, app.member(), "closed Calls=1 Outcome-upload=1"));
    // The same without a body is its own doing.
    (void)answer_to(httpd, "GET /app/x HTTP/1.1\r\nHost: me\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(
        wait_for_charge(httpd, app.member(), "open Calls=2 Outcome-reset=1 Outcome-upload=1 Verdict-failure=1"));
}

TEST(Evidence, AMemberThatLeavesBeforeTheLastPieceOfAnUploadIsNotChargedOverFastCgiEither) {
    std::atomic<bool> has_left{false};
    ConnectionServer app([&](Connection& connection) {
        char piece[1024];
        (void)connection.receive(piece, sizeof piece);
        connection.reset();
        has_left = true;
    });
    const std::string member = "fcgi://127.0.0.1:" + std::to_string(app.port());
    HttpdOptions options = touchy_site("ProxyPass /app " + member + "\n");
    options.add_modules = {"proxy_fcgi"};
    Httpd httpd(options);
    httpd.start();
    RawClient client(httpd.port());
    ASSERT_TRUE(client.send(upload("/app/x", 35'000) + std::string(30'000, 'x')));
    ASSERT_TRUE(wait_until([&] { return has_left.load(); }, patience, "the member to leave"));
    ASSERT_TRUE(client.send(std::string(5'000, 'x')));  // read whole, and written in vain
    client.finish_sending();
    (void)client.read_to_end();
    EXPECT_TRUE(wait_for_charge(httpd, member, "closed Calls=1 Outcome-upload=1"));
}

TEST(Evidence, ARuleMayNameUploads) {
    HeadServer app([](Connection& connection, const std::string&) { connection.reset(); });
    Httpd httpd(touchy_site(app.worker(), "CircuitBreakerVerdict failure upload\n"));
    httpd.start();
    (void)answer_to(httpd, upload("/app/x", long_upload, "Connection: close\r\n") + std::string(long_upload, 'x'));
    EXPECT_TRUE(wait_for_charge(httpd, app.member(), "open Calls=1 Outcome-upload=1 Verdict-failure=1"));
}

TEST(Evidence, AnUploadThatTheMemberHasNoPatienceForIsNotItsFailure) {
    for (const std::string last_word : {"", "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"}) {
        SCOPED_TRACE(last_word);
        std::atomic<bool> has_left{false};
        HeadServer app([&](Connection& connection, const std::string&) {
            connection.send(last_word);
            connection.close();
            has_left = true;
        });
        Httpd httpd(touchy_site(app.worker()));
        httpd.start();
        RawClient client(httpd.port());
        // More than is read before the member is asked, and less than all.
        ASSERT_TRUE(client.send(upload("/app/x", 100'000) + std::string(40'000, 'x')));
        ASSERT_TRUE(wait_until([&] { return has_left.load(); }, patience, "the member to leave"));
        ASSERT_TRUE(client.send(std::string(30'000, 'x')));
        ASSERT_TRUE(client.send(std::string(30'000, 'x')));
        client.finish_sending();
        (void)client.read_to_end();
        EXPECT_TRUE(wait_for_charge(httpd, app.member(), "closed Calls=1 Outcome-upload=1"));
    }
}

TEST(Evidence, AnExpectationThatTheMemberIgnoresIsNotItsFailure) {
    for (const bool leaves : {false, true}) {
        SCOPED_TRACE(leaves ? "it leaves" : "it is silent");
        HeadServer app([&](Connection& connection, const std::string&) {
            if (!leaves) swallow(connection);
        });
        Httpd httpd(touchy_site(app.worker("timeout=1")));
        httpd.start();
        (void)answer_to(httpd, upload("/app/x", 10, "Expect: 100-continue\r\nConnection: close\r\n"), leaves);
        EXPECT_TRUE(wait_for_charge(httpd, app.member(), "closed Calls=1 Outcome-upload=1"));
    }
}

}  // namespace
}  // namespace cb::test
