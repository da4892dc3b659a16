// Ways in which a client could have a healthy member charged, each of which once did: words in a path, a head longer
// than the member takes, a body that keeps it waiting, methods and codings that a protocol has not.
#include <thread>

#include "evidence.hpp"

namespace cb::test {
namespace {

std::string request(const std::string& method_and_path, const std::string& fields = "") {
    return method_and_path + " HTTP/1.1\r\nHost: me\r\nConnection: close\r\n" + fields + "\r\n";
}

TEST(Evidence, WordsOfModProxysInAPathAreNotModProxysWords) {
    ConnectionServer ftp([](Connection& connection) {
        connection.send("220 ready\r\n");
        char piece[4096];
        while (connection.receive(piece, sizeof piece) > 0)
            connection.send(std::string_view(piece, 4) == "USER" ? "230 in\r\n" : "500 no\r\n");
    });
    const std::string member = "ftp://127.0.0.1:" + std::to_string(ftp.port());
    Httpd httpd(touchy_site("ProxyPass /app " + member + "\n", "", {"proxy_ftp"}));
    httpd.start();
    for (const char* words : {"Error%20reading%20from%20remote%20server", "DNS%20lookup%20failure",
                              "Error%20resolving%20backend%20address"})
        EXPECT_EQ(status_of(answer_to(httpd, request(std::string("GET /app/") + words))), "502");
    EXPECT_TRUE(wait_for_charge(httpd, member, "closed Calls=3 Outcome-client=3"));
}

TEST(Evidence, AMethodOrCodingThatAProtocolHasNotIsTheClientsDoing) {
    WireBackend scgi_app("scgi", scgi());
    WireBackend uwsgi_app("uwsgi", uwsgi());
    const std::string ftp = "ftp://127.0.0.1:" + std::to_string(ReservedPort().number());
    Httpd httpd(touchy_site("ProxyPass /scgi " + scgi_app.member() + "\nProxyPass /uwsgi " + uwsgi_app.member() +
                                "\nProxyPass /ftp " + ftp + "\nCircuitBreakerVerdict failure 500-599 upload\n",
                            "", {"proxy_scgi", "proxy_uwsgi", "proxy_ftp"}));
    httpd.start();
    for (const char* path : {"/scgi/x", "/uwsgi/x"}) {
        EXPECT_EQ(
            status_of(answer_to(httpd, request(std::string("PUT ") + path, "Transfer-Encoding: gzip, chunked\r\n"))),
            "501");
    }
    EXPECT_EQ(status_of(answer_to(httpd, request("DELETE /ftp/x"))), "501");
    for (const std::string& member : {scgi_app.member(), uwsgi_app.member(), ftp})
        EXPECT_TRUE(wait_for_charge(httpd, member, "closed Calls=1 Outcome-client=1"));
}

TEST(Evidence, AHeadThatHttp2GrowsBeyondWhatItSendsIsTheClientsDoing) {
    WireBackend app("h2c", h2c());
    Httpd httpd(touchy_site("ProxyPreserveHost On\nProxyPass /app " + app.member() + "\n", "", {"proxy_http2"}));
    httpd.start();
    // Host goes twice, as X-Forwarded-Host too.
    std::string head = "GET /app/x HTTP/1.1\r\nHost: " + std::string(7'500, 'h') + "\r\nConnection: close\r\n";
    for (int i = 0; i < 7; ++i)
        head += "X-Long-" + std::to_string(i) + ": " + std::string(7'700, 'x') + "\r\n";
    EXPECT_NE(status_of(answer_to(httpd, head + "\r\n")), "200");
    EXPECT_TRUE(wait_for_charge(httpd, app.member(), "closed Calls=1 Outcome-client=1"));
    EXPECT_EQ(app.requests(), 0U);
}

TEST(Evidence, AHeadThatIsTooLongForTheMemberGetsItsAnswer) {
    ConnectionServer app([](Connection& connection) {
        swallow(connection, 32'768);
        connection.send("HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 5\r\n\r\nearly");
        connection.close();  // with bytes unread
    });
    const std::string member = "http://127.0.0.1:" + std::to_string(app.port());
    Httpd httpd(touchy_site("ProxyPass /app " + member + "\nLimitRequestFieldSize 100000\n"));
    httpd.start();
    std::string fields;
    for (int i = 0; i < 90; ++i)
        fields += "X-Long-" + std::to_string(i) + ": " + std::string(90'000, 'x') + "\r\n";
    const std::string answer = answer_to(httpd, request("GET /app/x", fields));
    EXPECT_EQ(status_of(answer), "431");
    EXPECT_TRUE(answer.ends_with("early"));
    EXPECT_TRUE(wait_for_charge(httpd, member, "closed Calls=1 Outcome-4xx=1"));
}

TEST(Evidence, AFinalAnswerInPlaceOfContinueIsTheAnswer) {
    for (const std::string body : {"early", ""}) {
        HeadServer app([&](Connection& connection, const std::string&) {
            // (After another status httpd does not wait for the client's body any more, and ends it with a 500.)
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
            swallow(connection, 20'000);  // mod_proxy_http sends the body all the same
            connection.close();
        });
        Httpd httpd(touchy_site(app.worker()));
        httpd.start();
        constexpr std::size_t length = 8'000'000;
        const std::string answer =
            answer_to(httpd, upload("/app/x", length, "Expect: 100-continue\r\nConnection: close\r\n") +
                                 std::string(length, 'x'));
        EXPECT_EQ(status_of(answer), "200");
        EXPECT_TRUE(answer.ends_with("\r\n\r\n" + body));
        EXPECT_TRUE(wait_for_charge(httpd, app.member(), "closed Calls=1 Outcome-2xx=1"));
    }
}

TEST(Evidence, ARuleOnUploadsMayLookAtTheHeaders) {
    HeadServer app([](Connection& connection, const std::string&) {
        connection.send("HTTP/1.1 200 OK\r\nX-Is: there\r\nContent-Length: 100\r\n\r\nhalf");
        connection.close();
    });
    Httpd httpd(touchy_site("CircuitBreakerVerdict failure upload \"expr=resp('X-Is') == 'there'\"\n" + app.worker()));
    httpd.start();
    constexpr std::size_t length = 8'000'000;
    (void)answer_to(httpd, upload("/app/x", length, "Connection: close\r\n") + std::string(length, 'x'));
    EXPECT_TRUE(wait_for_charge(httpd, app.member(), "open Calls=1 Outcome-upload=1 Verdict-failure=1"));
}

/// Reads up to a mark in the request's body, is kept waiting, and leaves as a server does whose patience is at an end.
class ImpatientReader {
  public:
    explicit ImpatientReader(std::string asks = "")
        : asks_(std::move(asks)), server_([this](Connection& connection) { serve(connection); }) {}
    [[nodiscard]] std::string member(const std::string& scheme) const {
        return scheme + "://127.0.0.1:" + std::to_string(server_.port());
    }
    [[nodiscard]] bool has_left() const { return has_left_; }

  private:
    void serve(Connection& connection) {
        std::string bytes;
        char piece[4096];
        while (bytes.find("MARK") == std::string::npos) {
            const std::size_t count = connection.receive(piece, sizeof piece);
            if (count == 0) return;
            bytes.append(piece, count);
        }
        connection.send(asks_);
        connection.wait([] { return false; }, Connection::Clock::now() + 1200ms);
        connection.close();
        has_left_ = true;
    }

    const std::string asks_;
    std::atomic<bool> has_left_{false};
    ConnectionServer server_;
};

TEST(Evidence, AMemberThatWasKeptWaitingForTheLastBytesAndLeftIsNotCharged) {
    const std::string get_body_chunk{'A', 'B', 0, 3, 6, 0x1f, static_cast<char>(0xfa)};
    for (const std::string scheme : {"http", "fcgi", "scgi", "uwsgi", "ajp"}) {
        SCOPED_TRACE(scheme);
        ImpatientReader app(scheme == "ajp" ? get_body_chunk : "");
        const std::string member = app.member(scheme);
        Httpd httpd(touchy_site("ProxyPass /app " + member + "\n", "",
                                {"proxy_fcgi", "proxy_scgi", "proxy_uwsgi", "proxy_ajp"}));
        httpd.start();
        const std::string begin = std::string(scheme == "ajp" ? 100 : 20'000, 'x') + "MARK";
        RawClient client(httpd.port());
        ASSERT_TRUE(client.send(upload("/app/x", begin.size() + 1, "Connection: close\r\n") + begin));
        ASSERT_TRUE(wait_until([&] { return app.has_left(); }, patience, "the member to leave"));
        ASSERT_TRUE(client.send("."));
        EXPECT_EQ(status_of(client.read_to_end()).substr(0, 1), "5");
        EXPECT_TRUE(wait_for_charge(httpd, member, "closed Calls=1 Outcome-upload=1"));
    }
}

TEST(Evidence, AnOutputFilterOfHttpdsThatFailsIsNotTheMembersFailure) {
    std::vector<std::unique_ptr<WireBackend>> wires;
    std::string proxied =
        "<Location />\n    SetOutputFilter SUBSTITUTE\n    Substitute s/a/b/\n"
        "    SubstituteMaxLineLength 1K\n</Location>\n"
        "<Location /breakers>\n    SetOutputFilter NONE\n</Location>\n";
    for (const Dialect& dialect : {fcgi(), uwsgi(), ajp(), h2c()}) {
        wires.push_back(std::make_unique<WireBackend>(dialect.scheme, dialect));
        wires.back()->answer(WireReply::status(200, std::string(10'000, 'a') + "\n" + std::string(50'000, 'a')));
        proxied += "ProxyPass /" + dialect.scheme + " " + wires.back()->member() + "\n";
    }
    Httpd httpd(touchy_site(proxied, "", {"proxy_fcgi", "proxy_uwsgi", "proxy_ajp", "proxy_http2", "substitute"}));
    httpd.start();
    for (const auto& wire : wires) {
        (void)answer_to(httpd, request("GET /" + wire->name() + "/x"));
        EXPECT_TRUE(wait_for_charge(httpd, wire->member(), "closed Calls=1 Outcome-2xx=1"));
    }
}

}  // namespace
}  // namespace cb::test
