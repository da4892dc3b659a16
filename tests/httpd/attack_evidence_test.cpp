// Requests of ordinary clients to members that are well, in configurations of every kind: none of them counts.
#include "evidence.hpp"

namespace cb::test {
namespace {

/// A real httpd that speaks HTTP/2 in clear text, and has nothing but its index page.
class Http2Member {
  public:
    Http2Member() : httpd_(options()) {
        httpd_.put_document("x", "here");
        httpd_.start();
    }
    [[nodiscard]] std::string member() const { return "h2c://127.0.0.1:" + std::to_string(httpd_.port()); }

  private:
    static HttpdOptions options() {
        HttpdOptions options{.config = "Protocols h2c http/1.1\n"};
        options.add_modules = {"http2"};
        options.circuitbreaker = false;
        return options;
    }
    Httpd httpd_;
};

HttpdOptions before(const Http2Member& app, const std::string& lines) {
    HttpdOptions options = touchy_site("ProxyPass /app " + app.member() + "\n" + lines);
    options.add_modules = {"proxy_http2"};
    return options;
}

TEST(Attack, AnAnswerThatAnErrorPageTakesThePlaceOfIsNotTruncatedOverHttp2) {
    const Http2Member app;
    Httpd httpd(before(app, "ProxyErrorOverride On\n"));
    httpd.start();
    const std::string put = "PUT /app/x HTTP/1.1\r\nHost: me\r\nConnection: close\r\n\r\n";
    for (int i = 0; i < 300; ++i)
        ASSERT_EQ(answer_to(httpd, put).substr(9, 3), "405") << i;
    EXPECT_TRUE(wait_for_charge(httpd, app.member(), "closed Calls=300 Outcome-4xx=300"));
}

TEST(Attack, AnEmptyHostThatIsPreservedIsTheClientsDoingOverHttp2) {
    const Http2Member app;
    Httpd httpd(before(app, "ProxyPreserveHost On\n"));
    httpd.start();
    (void)answer_to(httpd, "GET /app/x HTTP/1.0\r\nHost:\r\n\r\n");
    EXPECT_TRUE(wait_for_charge(httpd, app.member(), "closed Calls=1 Outcome-client=1"));
}

TEST(Attack, AnEarlyAnswerToASpooledRequestIsTheAnswer) {
    constexpr std::size_t length = 8'000'000;
    HeadServer app([](Connection& connection, const std::string&) {
        connection.send("HTTP/1.1 401 Unauthorized\r\nContent-Length: 5\r\n\r\nearly");
        connection.close();  // with bytes unread: the kernel sends a RST
    });
    Httpd httpd(touchy_site(app.worker() + "SetEnv force-proxy-request-1.0 1\n"));
    httpd.start();
    const std::string answer =
        answer_to(httpd, chunked("/app/x", "7a1200\r\n" + std::string(length, 'x') + "\r\n0\r\n\r\n"));
    EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 401");
    EXPECT_TRUE(wait_for_charge(httpd, app.member(), "closed Calls=1 Outcome-4xx=1"));
}

TEST(Attack, AMemberThatLeavesInTheMiddleOfASpooledRequestIsNotCharged) {
    constexpr std::size_t length = 8'000'000;
    HeadServer app([](Connection& connection, const std::string&) { connection.reset(); });
    Httpd httpd(touchy_site(app.worker() + "SetEnv force-proxy-request-1.0 1\n"));
    httpd.start();
    (void)answer_to(httpd, chunked("/app/x", "7a1200\r\n" + std::string(length, 'x') + "\r\n0\r\n\r\n"));
    EXPECT_TRUE(wait_for_charge(httpd, app.member(), "closed Calls=1 Outcome-upload=1"));
}

TEST(Attack, ATrailerThatAnHttp2MemberDoesNotLikeIsNotItsFailure) {
    const Http2Member app;
    Httpd httpd(before(app, ""));
    httpd.start();
    for (int i = 0; i < 300; ++i) {
        RawClient client(httpd.port());
        ASSERT_TRUE(
            client.send("GET /app/x HTTP/1.1\r\nHost: me\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" +
                        ("ea60\r\n" + std::string(60'000, 'x')) + "\r\n0\r\nX-Trailer: 1\r\n\r\n"));
        (void)client.read_to_end();
    }
    EXPECT_EQ(BreakerPage(httpd).member(app.member()).number("Verdict-failure"), 0U);
    EXPECT_EQ(BreakerPage(httpd).member(app.member()).at("State"), "closed");
}

/// Takes the request and the first two parts of its body, and answers 404.
void answer_early(Connection& connection) {
    std::string bytes;
    char piece[1024];
    const auto take_packet = [&] {
        for (;;) {
            if (bytes.size() >= 4) {
                const std::size_t end =
                    4 + 256U * static_cast<unsigned char>(bytes[2]) + static_cast<unsigned char>(bytes[3]);
                if (bytes.size() >= end) return bytes.erase(0, end), true;
            }
            const std::size_t count = connection.receive(piece, sizeof piece);
            if (count == 0) return false;
            bytes.append(piece, count);
        }
    };
    using namespace std::string_literals;
    if (!take_packet() || !take_packet()) return;
    connection.send("AB\0\3\6\x1f\xfa"s);  // the next part, please
    if (!take_packet()) return;
    connection.send("AB\0\x0c\4\1\x94\0\4Nope\0\0\0"s + "AB\0\6\3\0\2no\0"s + "AB\0\2\5\1"s);
}

TEST(Attack, AnEarlyAnswerToASlowUploadIsNotSlow) {
    ConnectionServer app(answer_early);
    const std::string member = "ajp://127.0.0.1:" + std::to_string(app.port());
    HttpdOptions options = touchy_site("ProxyPass /app " + member + "\n",
                                       "CircuitBreakerSlowCall 2s rate=1\nCircuitBreakerMinimumCalls 1\n");
    options.add_modules = {"proxy_ajp"};
    Httpd httpd(options);
    httpd.start();
    RawClient client(httpd.port());
    ASSERT_TRUE(client.send(upload("/app/x", 1000) + "a little"));
    std::this_thread::sleep_for(2200ms);  // what the client takes is what this is about
    ASSERT_TRUE(client.send("and more"));
    EXPECT_TRUE(wait_for_charge(httpd, member, "closed Calls=1 Outcome-4xx=1"));
}

}  // namespace
}  // namespace cb::test
