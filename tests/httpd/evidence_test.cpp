// Only what the member did counts against it: what clients do with their requests opens no breaker.
#include <sys/socket.h>

#include "evidence.hpp"

namespace cb::test {
namespace {

HttpdOptions touchy_site(const std::string& proxied, const std::string& policy = "") {
    return site(Mpm::event, touchy + policy, proxied);
}

/// Sends the request, reads to the end of the connection.
std::string answer_to(const Httpd& httpd, const std::string& request, bool finishes = false) {
    RawClient client(httpd.port());
    EXPECT_TRUE(client.send(request));
    if (finishes) client.finish_sending();
    return client.read_to_end();
}

std::string status_of(const std::string& answer) {
    return answer.size() > 12 ? answer.substr(9, 3) : "none";
}

/// More than all buffers on the way hold.
constexpr std::size_t long_upload = 8'000'000;

TEST(Evidence, ATransferCodingThatHttpdDoesNotKnowIsTheClientsDoing) {
    Backend app("app");
    WireBackend ajp_app("ajp", ajp());
    HttpdOptions options = touchy_site(plain_worker(app) + "ProxyPass /ajp " + ajp_app.member() + "\n");
    options.add_modules = {"proxy_ajp"};
    Httpd httpd(options);
    httpd.start();
    for (const char* coding : {"gzip, chunked", "identity, chunked", "chunked, chunked"}) {
        for (const char* path : {"/app/x", "/ajp/x"}) {
            const std::string request = std::string("PUT ") + path +
                                        " HTTP/1.1\r\nHost: me\r\nTransfer-Encoding: " + coding +
                                        "\r\nConnection: close\r\n\r\n2\r\nok\r\n0\r\n\r\n";
            EXPECT_EQ(status_of(answer_to(httpd, request)), "500") << coding << " " << path;
        }
    }
    EXPECT_TRUE(wait_for_charge(httpd, app.member(), "closed Calls=3 Outcome-client=3"));
    EXPECT_TRUE(wait_for_charge(httpd, ajp_app.member(), "closed Calls=3 Outcome-client=3"));
    EXPECT_EQ(app.requests(), 0U);
    EXPECT_EQ(ajp_app.requests(), 0U);
}

TEST(Evidence, AMalformedBodyIsTheClientsDoingOverEveryProtocol) {
    const std::string bad_chunk = "3\r\nabc\r\nzz\r\n";
    Backend app("app");
    std::vector<std::unique_ptr<WireBackend>> wires;
    std::string proxied = plain_worker(app);
    for (const Dialect& dialect : {fcgi(), scgi(), uwsgi(), ajp(), h2c()}) {
        wires.push_back(std::make_unique<WireBackend>(dialect.scheme, dialect));
        proxied += "ProxyPass /" + dialect.scheme + " " + wires.back()->member() + "\n";
    }
    HttpdOptions options = touchy_site(proxied);
    options.add_modules = {"proxy_fcgi", "proxy_scgi", "proxy_uwsgi", "proxy_ajp", "proxy_http2"};
    Httpd httpd(options);
    httpd.start();
    const auto expect_neutral = [&](const std::string& path, const std::string& member) {
        SCOPED_TRACE(path);
        const bool wants_length = path.starts_with("/scgi") || path.starts_with("/uwsgi");
        EXPECT_EQ(status_of(answer_to(httpd, chunked(path, bad_chunk))), wants_length ? "411" : "400");
        EXPECT_TRUE(wait_for_charge(httpd, member, "closed Calls=1 Outcome-client=1"));
        // Half of the body, and no more.
        (void)answer_to(httpd, wants_length ? upload(path, 5) + "ab" : chunked(path, "5\r\nab"), true);
        EXPECT_TRUE(wait_for_charge(httpd, member, "closed Calls=2 Outcome-client=2"));
    };
    expect_neutral("/app/x", app.member());
    for (const auto& wire : wires)
        expect_neutral("/" + wire->name() + "/x", wire->member());
}

TEST(Evidence, MoreHeaderFieldsThanHttp2CanSendAreTheClientsDoing) {
    WireBackend app("h2c", h2c());
    HttpdOptions options = touchy_site("ProxyPass /app " + app.member() + "\n");
    options.add_modules = {"proxy_http2"};
    Httpd httpd(options);
    httpd.start();
    for (const std::size_t lines : {10U, 20U}) {
        std::string fields;
        for (std::size_t i = 0; i < lines; ++i)
            fields += "X-Long-" + std::to_string(i) + ": " + std::string(7'900, 'x') + "\r\n";
        EXPECT_NE(
            status_of(answer_to(httpd, "GET /app/x HTTP/1.1\r\nHost: me\r\nConnection: close\r\n" + fields + "\r\n")),
            "200");
    }
    EXPECT_TRUE(wait_for_charge(httpd, app.member(), "closed Calls=2 Outcome-client=2"));
    EXPECT_EQ(app.requests(), 0U);
}

TEST(Evidence, WhatAnFtpServerSaysToAPathIsNotItsFailure) {
    // A control connection that likes no command after the login.
    ConnectionServer ftp([](Connection& connection) {
        connection.send("220 ready\r\n");
        std::string bytes;
        char piece[16384];
        for (std::size_t count = 0; (count = connection.receive(piece, sizeof piece)) > 0;) {
            bytes.append(piece, count);
            for (std::size_t end = 0; (end = bytes.find("\r\n")) != std::string::npos; bytes.erase(0, end + 2)) {
                const std::string command = bytes.substr(0, 4);
                connection.send(command == "USER" || command == "PASS" ? "230 in\r\n" : "500 line too long\r\n");
            }
        }
    });
    const std::string member = "ftp://127.0.0.1:" + std::to_string(ftp.port());
    HttpdOptions options = touchy_site("ProxyPass /app " + member + "\n");
    options.add_modules = {"proxy_ftp"};
    Httpd httpd(options);
    httpd.start();
    EXPECT_EQ(status_of(answer_to(httpd, "GET /app/" + std::string(7'000, 'x') + "/y HTTP/1.1\r\nHost: me\r\n" +
                                             "Connection: close\r\n\r\n")),
              "502");
    EXPECT_TRUE(wait_for_charge(httpd, member, "closed Calls=1 Outcome-client=1"));
    // The connection itself is evidence.
    ftp.refuse();
    EXPECT_EQ(status_of(answer_to(httpd, "GET /app/x HTTP/1.1\r\nHost: me\r\nConnection: close\r\n\r\n")), "503");
    EXPECT_TRUE(wait_for_charge(httpd, member, "open Calls=2 Outcome-connect=1 Outcome-client=1 Verdict-failure=1"));
}

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

TEST(Evidence, AHeaderFieldThatIsTooLongIsNoAnswerOverAnyProtocol) {
    const std::string field = "X-Long: " + std::string(9'000, 'x') + "\r\n";
    std::vector<std::unique_ptr<WireBackend>> wires;
    Backend app("app");
    app.answer(Reply::ok().header("X-Long", std::string(9'000, 'x')));
    std::string proxied = plain_worker(app);
    for (const Dialect& dialect : {fcgi(), scgi(), uwsgi()}) {
        wires.push_back(std::make_unique<WireBackend>(dialect.scheme, dialect));
        WireReply reply = WireReply::status(200);
        reply.more_fields = field;
        wires.back()->answer(reply);
        proxied += "ProxyPass /" + dialect.scheme + " " + wires.back()->member() + "\n";
    }
    HttpdOptions options = touchy_site(proxied);
    options.add_modules = {"proxy_fcgi", "proxy_scgi", "proxy_uwsgi"};
    Httpd httpd(options);
    httpd.start();
    const std::string charge = "open Calls=1 Outcome-protocol=1 Verdict-failure=1";
    EXPECT_GE(get(httpd.url("/app/x")).status, 500);
    EXPECT_TRUE(wait_for_charge(httpd, app.member(), charge));
    for (const auto& wire : wires) {
        SCOPED_TRACE(wire->name());
        EXPECT_GE(get(httpd.url("/" + wire->name() + "/x")).status, 500);
        EXPECT_TRUE(wait_for_charge(httpd, wire->member(), charge));
    }
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

/// A server that gives up when nobody takes its answer for as long as its write timeout, and resets the connection.
class ImpatientServer {
  public:
    ImpatientServer() : listener_(listen_on_port(port_.number())), thread_([this] { serve(); }) {}
    ~ImpatientServer() {
        ::shutdown(listener_.fd(), SHUT_RDWR);
        thread_.join();
    }
    [[nodiscard]] std::string member() const { return "http://127.0.0.1:" + std::to_string(port_.number()); }
    [[nodiscard]] bool has_given_up() const { return has_given_up_; }

  private:
    void serve() {
        for (;;) {
            Socket socket(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
            if (!socket.valid()) return;
            const timeval patience_of_it{0, 300'000};
            ::setsockopt(socket.fd(), SOL_SOCKET, SO_SNDTIMEO, &patience_of_it, sizeof patience_of_it);
            char head[4096];
            if (::recv(socket.fd(), head, sizeof head, 0) <= 0) continue;
            send_all(socket.fd(), "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
            const std::string piece(100'000, 'x');
            while (send_all(socket.fd(), piece)) {
            }
            has_given_up_ = true;
            socket.reset();
        }
    }

    const ReservedPort port_;
    Socket listener_;
    std::atomic<bool> has_given_up_{false};
    std::thread thread_;
};

TEST(Evidence, AnAnswerThatTheClientTakesTooSlowlyForTheMemberIsTheClientsDoing) {
    ImpatientServer app;
    Httpd httpd(touchy_site("ProxyPass /app " + app.member() + "\n"));
    httpd.start();
    RawClient client(httpd.port());
    ASSERT_TRUE(client.send("GET /app/x HTTP/1.1\r\nHost: me\r\nConnection: close\r\n\r\n"));
    ASSERT_NE(client.read_until("\r\n\r\n").find(" 200 "), std::string::npos);
    ASSERT_TRUE(wait_until([&] { return app.has_given_up(); }, patience, "the member to give up"));
    (void)client.read_to_end();
    EXPECT_TRUE(wait_for_charge(httpd, app.member(), "closed Calls=1 Outcome-client=1"));
}

TEST(Evidence, AnAnswerThatBreaksOffThoughTheClientTakesItIsTheMembersFailure) {
    // The client may need long for all of this on a busy machine; at the end it waits for more.
    std::atomic<unsigned> taken{0};
    const auto wait_for_client = [&](Connection& connection, unsigned pieces) {
        EXPECT_TRUE(wait_until([&] { return taken >= pieces; }, patience, "the client"));
        connection.wait([] { return false; }, Connection::Clock::now() + 300ms);
    };
    HeadServer app([&](Connection& connection, const std::string&) {
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n" + std::string(5'000'000, 'x') + "MARK");
        wait_for_client(connection, 1);
        connection.send("MARK");
        wait_for_client(connection, 2);
        connection.reset();
    });
    Httpd httpd(touchy_site(app.worker()));
    httpd.start();
    RawClient client(httpd.port());
    ASSERT_TRUE(client.send("GET /app/x HTTP/1.1\r\nHost: me\r\nConnection: close\r\n\r\n"));
    for (taken = 0; taken < 2; ++taken)
        ASSERT_TRUE(client.read_until("MARK").ends_with("MARK"));
    (void)client.read_to_end();
    EXPECT_TRUE(wait_for_charge(httpd, app.member(), "open Calls=1 Outcome-truncated=1 Verdict-failure=1"));
}

}  // namespace
}  // namespace cb::test
