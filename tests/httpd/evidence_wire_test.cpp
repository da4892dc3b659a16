// What the protocols' own means of ending a request are taken for, byte by byte.
#include "evidence.hpp"

namespace cb::test {
namespace {

/// Reads a request as that dialect, sends these bytes and leaves, or waits for the other side to leave.
class Scripted {
  public:
    Scripted(const Dialect& dialect, std::string answer, bool stays)
        : dialect_(dialect),
          answer_(std::move(answer)),
          stays_(stays),
          server_([this](Connection& connection) { serve(connection); }) {}
    [[nodiscard]] std::string member() const {
        return dialect_.scheme + "://127.0.0.1:" + std::to_string(server_.port());
    }
    [[nodiscard]] unsigned requests() const { return requests_; }

  private:
    void serve(Connection& connection) {
        Wire wire(connection);
        if (!dialect_.read_request(wire)) return;
        ++requests_;
        connection.send(answer_);
        if (stays_) swallow(connection);
    }

    const Dialect dialect_;
    const std::string answer_;
    const bool stays_;
    std::atomic<unsigned> requests_{0};
    ConnectionServer server_;
};

struct Script {
    std::string name;
    Dialect (*dialect)();
    std::string answer;
    std::string charge;
    bool stays = false;
};
void PrintTo(const Script& script, std::ostream* out) {
    *out << script.name;
}

const std::string reset_charge = "open Calls=1 Outcome-reset=1 Verdict-failure=1";
const std::string truncated_charge = "open Calls=1 Outcome-truncated=1 Verdict-failure=1";
const std::string protocol_charge = "open Calls=1 Outcome-protocol=1 Verdict-failure=1";
const std::string good_charge = "closed Calls=1 Outcome-2xx=1";

std::string fcgi_record(char type, const std::string& content, char version = 1, char request = 1) {
    return std::string{version, type, 0, request, 0, static_cast<char>(content.size()), 0, 0} + content;
}
std::string h2_frame(char type, char flags, const std::string& payload, char stream = 1) {
    return std::string{0, 0, static_cast<char>(payload.size()), type, flags, 0, 0, 0, stream} + payload;
}
std::string rst_stream(char error) {
    return h2_frame(3, 0, std::string{0, 0, 0, error});
}
std::string h2_head(const std::string& field = "X-Is: there\r\n") {
    return h2c().head(200, field, 0);
}

std::vector<Script> scripts() {
    const auto plain_ajp = [] { return ajp(); };
    const std::string ajp_head = ajp().head(200, "X-Is: there\r\n", 0);
    const std::string end_of_request(8, '\0');
    const std::string overloaded{0, 0, 0, 0, 2, 0, 0, 0};
    const std::string good_output = fcgi_record(6, cgi_head(200, "") + "ok") + fcgi_record(6, "");
    const std::string long_head = h2_head("content-length: 100\r\n");
    const std::string piece = h2_frame(0, 0, "piece");
    return {
        {"FcgiEndBeforeTheHeaders", fcgi, fcgi_record(3, end_of_request), protocol_charge},
        {"FcgiSaysNothing", fcgi, fcgi_record(6, "") + fcgi_record(3, end_of_request), protocol_charge},
        {"FcgiHasNoHead", fcgi, fcgi_record(6, "no head") + fcgi_record(6, "") + fcgi_record(3, end_of_request),
         protocol_charge},
        {"FcgiStopsInTheHead", fcgi, fcgi_record(6, "Content-Type: text/html\r\n") + fcgi_record(3, end_of_request),
         protocol_charge, false},
        {"FcgiHeadWithoutBody", fcgi,
         fcgi_record(6, "Content-Type: text/html\r\n\r\n") + fcgi_record(3, end_of_request), good_charge},
        {"FcgiHeadWithoutTypeAndBody", fcgi, fcgi_record(6, "X-Field: x\r\n\r\n") + fcgi_record(3, end_of_request),
         good_charge},
        {"FcgiStatusWithoutBody", fcgi, fcgi_record(6, "Status: 200 OK\r\n\r\n") + fcgi_record(3, end_of_request),
         good_charge},
        {"FcgiHeadAndEmptyBody", fcgi,
         fcgi_record(6, "Content-Type: text/html\r\n\r\n") + fcgi_record(6, "") + fcgi_record(3, end_of_request),
         good_charge},
        {"FcgiOverloaded", fcgi, fcgi_record(3, overloaded), protocol_charge},
        {"FcgiWrongVersion", fcgi, fcgi_record(6, cgi_head(200, ""), 7), protocol_charge},
        {"FcgiWrongRequest", fcgi, fcgi_record(6, cgi_head(200, ""), 1, 5), protocol_charge},
        {"FcgiErrorsOfTheScripts", fcgi, fcgi_record(7, "PHP Warning") + good_output + fcgi_record(3, end_of_request),
         good_charge},
        {"FcgiHalfARecord", fcgi, fcgi_record(6, cgi_head(200, "")).substr(0, 20), reset_charge},
        {"AjpHeadersTwice", plain_ajp, ajp_head + ajp_head, protocol_charge, true},
        {"AjpEndWithoutHeaders", plain_ajp, ajp().end, good_charge},  // an empty 200 to mod_proxy_ajp
        {"AjpMessageThatIsCut", plain_ajp, ajp_head.substr(0, 20), reset_charge},
        {"AjpUnknownMessage", plain_ajp, std::string{'A', 'B', 0, 1, 99}, protocol_charge},
        {"Http2ResetBeforeTheHeaders", h2c, rst_stream(11), reset_charge},
        {"Http2ResetAfterTheHeaders", h2c, h2_head() + rst_stream(2), reset_charge},
        {"Http2ResetInTheBody", h2c, h2_head() + piece + rst_stream(2), truncated_charge},
        {"Http2StopsBeforeTheHeaders", h2c, rst_stream(0), protocol_charge},
        {"Http2StopsInTheBody", h2c, long_head + piece + rst_stream(0), truncated_charge},
        {"Http2StopsAfterTheEnd", h2c, h2_head() + h2_frame(0, 1, "piece") + rst_stream(0), good_charge},
        {"Http2GoesAway", h2c, h2_frame(7, 0, std::string(4, '\0') + std::string{0, 0, 0, 11}, 0), reset_charge},
    };
}

class EvidenceOf : public testing::TestWithParam<Script> {};
INSTANTIATE_TEST_SUITE_P(Answers, EvidenceOf, testing::ValuesIn(scripts()),
                         [](const auto& info) { return info.param.name; });

TEST_P(EvidenceOf, TheProtocolsOwnEndings) {
    Scripted app(GetParam().dialect(), GetParam().answer, GetParam().stays);
    HttpdOptions options = site(Mpm::event, touchy, "ProxyPass /app " + app.member() + " timeout=5\n");
    options.add_modules = {"proxy_fcgi", "proxy_ajp", "proxy_http2"};
    Httpd httpd(options);
    httpd.start();
    Headers headers;
    headers.add("Connection", "close");  // or a truncated answer ends at KeepAliveTimeout
    (void)get(httpd.url("/app/x"), {.headers = headers});
    EXPECT_TRUE(wait_for_charge(httpd, app.member(), GetParam().charge));
    EXPECT_GE(app.requests(), 1U);
}

TEST(Evidence, ErrorPagesOfHttpdsOwnHideNoFastCgiEndWithoutAnAnswer) {
    Scripted nothing(fcgi(), fcgi_record(3, std::string(8, '\0')), false);
    WireBackend failing("failing", fcgi());
    failing.answer(WireReply::status(503));
    HttpdOptions options = site(Mpm::event, touchy,
                                "ProxyErrorOverride On\nErrorDocument 503 /own.html\nProxyPass /nothing " +
                                    nothing.member() + "\nProxyPass /failing " + failing.member() + "\n");
    options.add_modules = {"proxy_fcgi"};
    Httpd httpd(options);
    httpd.put_document("own.html", "a page of httpd's");
    httpd.start();
    (void)get(httpd.url("/nothing/x"));
    EXPECT_TRUE(wait_for_charge(httpd, nothing.member(), protocol_charge));
    EXPECT_EQ(get(httpd.url("/failing/x")).body, "a page of httpd's");
    EXPECT_TRUE(wait_for_charge(httpd, failing.member(), "open Calls=1 Outcome-5xx=1 Verdict-failure=1"));
}

TEST(Evidence, ARequestThatTheProtocolCannotExpressIsTheClientsDoing) {
    WireBackend ajp_app("ajp", ajp());
    WireBackend uwsgi_app("uwsgi", uwsgi());
    HttpdOptions options = site(
        Mpm::event, touchy, "ProxyPass /ajp " + ajp_app.member() + "\nProxyPass /uwsgi " + uwsgi_app.member() + "\n");
    options.add_modules = {"proxy_ajp", "proxy_uwsgi"};
    Httpd httpd(options);
    httpd.start();
    const auto ask = [&](const std::string& path, unsigned fields) {
        std::string request = "GET " + path + " HTTP/1.1\r\nHost: me\r\nConnection: close\r\n";
        for (unsigned i = 0; i < fields; ++i)
            request += "X-Long-" + std::to_string(i) + ": " + std::string(7'900, 'x') + "\r\n";
        RawClient client(httpd.port());
        EXPECT_TRUE(client.send(request + "\r\n"));
        return client.read_to_end().substr(9, 3);
    };
    EXPECT_EQ(ask("/ajp/x", 2), "400") << "a message has room for 8 KB";
    EXPECT_EQ(ask("/ajp/" + std::string(8'150, 'x'), 0).substr(0, 1), "5") << "the same, by the path";
    EXPECT_TRUE(wait_for_charge(httpd, ajp_app.member(), "closed Calls=2 Outcome-client=2"));
    EXPECT_EQ(ask("/uwsgi/x", 9), "500") << "variables have room for 64 KB";
    EXPECT_TRUE(wait_for_charge(httpd, uwsgi_app.member(), "closed Calls=1 Outcome-client=1"));
    EXPECT_EQ(ajp_app.requests() + uwsgi_app.requests(), 0U);
}

TEST(Evidence, InterimResponsesWithoutAnEndAreNoAnswer) {
    std::string hints;
    for (int i = 0; i < 20; ++i)
        hints += "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    HeadServer app([&](Connection& connection, const std::string&) {
        connection.send(hints);
        swallow(connection);
    });
    Httpd httpd(site(Mpm::event, touchy, app.worker()));
    httpd.start();
    (void)get(httpd.url("/app/x"));
    EXPECT_TRUE(wait_for_charge(httpd, app.member(), protocol_charge));
}

/// A control connection; `answer` says what to each command ("" closes).
class FtpServer {
  public:
    using Answer = std::function<std::string(const std::string& command)>;
    explicit FtpServer(Answer answer)
        : answer_(std::move(answer)), server_([this](Connection& connection) { serve(connection); }) {}
    [[nodiscard]] std::string member() const { return "ftp://127.0.0.1:" + std::to_string(server_.port()); }

  private:
    void serve(Connection& connection) {
        std::string said = answer_("");
        char piece[4096];
        while (!said.empty() && connection.send(said + "\r\n")) {
            const std::size_t count = connection.receive(piece, sizeof piece);
            if (count < 4) return;
            said = answer_(std::string(piece, 4));
        }
    }

    const Answer answer_;
    ConnectionServer server_;
};

TEST(Evidence, OfAnFtpServerIsWhetherItIsThere) {
    const ReservedPort nobody;
    const auto login = [](const std::string& command) -> std::string {
        if (command.empty()) return "220 ready";
        return command == "USER" || command == "PASS" ? "230 in" : "250 well";
    };
    struct Case {
        std::string name;
        FtpServer::Answer answer;
        std::string status;
        std::string charge;
    };
    const std::string refused = "229 Entering Extended Passive Mode (|||" + std::to_string(nobody.number()) + "|)";
    for (const Case& one :
         {Case{"closes", [](const std::string&) { return ""; }, "502", reset_charge},
          Case{"closes after the login",
               [&](const std::string& command) { return command == "CWD " ? "" : login(command); }, "502",
               reset_charge},
          Case{"has no time", [](const std::string&) { return "421 too many users"; }, "502", reset_charge},
          Case{"has no such file",
               [&](const std::string& command) { return command == "CWD " ? "550 no" : login(command); }, "404",
               "closed Calls=1 Outcome-client=1"},
          Case{"lets nobody in", [](const std::string& command) { return command.empty() ? "220 ready" : "530 no"; },
               "401", "closed Calls=1 Outcome-client=1"},
          Case{"has no data connection",
               [&](const std::string& command) { return command == "EPSV" ? refused : login(command); }, "502",
               "open Calls=1 Outcome-connect=1 Verdict-failure=1"}}) {
        SCOPED_TRACE(one.name);
        FtpServer app(one.answer);
        HttpdOptions options = site(Mpm::event, touchy, "ProxyPass /app " + app.member() + "\n");
        options.add_modules = {"proxy_ftp"};
        Httpd httpd(options);
        httpd.start();
        EXPECT_EQ(std::to_string(get(httpd.url("/app/a/file")).status), one.status);
        EXPECT_TRUE(wait_for_charge(httpd, app.member(), one.charge));
    }
}

}  // namespace
}  // namespace cb::test
