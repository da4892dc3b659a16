// Only what the member did counts against it: what clients do with their requests opens no breaker.
#include <sys/socket.h>

#include "evidence.hpp"

namespace cb::test {
namespace {

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
