// CircuitBreakerVerdict and CircuitBreakerProbeVerdict on real traffic.
#include "outcomes.hpp"

namespace cb::test {
namespace {

class Rules : public TrafficTest {
  protected:
    /// Two requests' verdicts, as the access log has them: so that nothing is left of the first one at the second.
    std::string verdict_of(const Httpd& httpd, const std::string& path) {
        const std::string unique =
            path + (path.find('?') == std::string::npos ? "?" : "&") + std::to_string(++requests_);
        last_ = get(httpd.url(unique));
        EXPECT_TRUE(httpd.wait_for_access_line("path=" + unique + " "));
        const std::string line = httpd.access_lines_with("path=" + unique + " ").at(0);
        const std::size_t at = line.find("verdict=") + 8;
        return line.substr(at, line.find(" probe=") - at);
    }
    [[nodiscard]] const Response& last() const { return last_; }

    Backend app_{"app"};

  private:
    unsigned requests_ = 0;
    Response last_;
};
INSTANTIATE_TEST_SUITE_P(Mpms, Rules, any_mpm, mpm_name);

Reply json(const std::string& body, const std::string& type = "application/json") {
    return Reply::ok(body).header("Content-Type", type);
}

TEST_P(Rules, OneBrokenUrlTripsNobodyUnlessARuleSaysSo) {
    Httpd httpd(site(std::string(quick_policy) + long_open, plain_worker(app_)));
    httpd.start();
    app_.answer_path("/broken", Reply::status(500));
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(verdict_of(httpd, "/app/broken"), "success");
    EXPECT_EQ(state_of(httpd, app_), "closed");

    httpd.set_config(
        std::string(quick_policy) + long_open + status_location + "CircuitBreakerVerdict failure 500-599\n" +
        "<Location /app/broken>\n    CircuitBreakerVerdict ignore 500\n</Location>\n" + plain_worker(app_));
    ASSERT_TRUE(httpd.restart());
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(verdict_of(httpd, "/app/broken"), "ignore:500");
    EXPECT_EQ(state_of(httpd, app_), "closed") << "the rule of its own Location";
    app_.answer_path("/other", Reply::status(500));
    EXPECT_EQ(verdict_of(httpd, "/app/other"), "failure:500");
    EXPECT_EQ(statuses(3, httpd.url("/app/other")), "500 500 503");
    EXPECT_EQ(state_of(httpd, app_), "open");
}

TEST_P(Rules, OfAllSectionsApplyFromTheInnermostAndTheFirstThatMatchesWins) {
    Httpd httpd(site(std::string(counting_policy) + "CircuitBreakerVerdict fatal 418\nCircuitBreakerVerdict "
                                                    "tolerate 404 410 420-429\nCircuitBreakerVerdict failure 404\n",
                     plain_worker(app_) + "<Proxy \"" + app_.member() +
                         "\">\n    CircuitBreakerVerdict failure 410\n</Proxy>\n"
                         "<Location /app/here>\n    CircuitBreakerVerdict success 404 502\n</Location>\n"
                         "<If \"%{QUERY_STRING} =~ /^if/\">\n    CircuitBreakerVerdict ignore 404\n</If>\n"));
    httpd.start();
    app_.answer([](const Request& request) {
        return Reply::status(std::stoi(request.path.substr(request.path.rfind('/') + 1)));
    });
    EXPECT_EQ(verdict_of(httpd, "/app/404"), "tolerate:404");
    EXPECT_EQ(verdict_of(httpd, "/app/410"), "failure:410");
    EXPECT_EQ(verdict_of(httpd, "/app/425"), "tolerate:425");
    EXPECT_EQ(verdict_of(httpd, "/app/502"), "failure:502");
    EXPECT_EQ(verdict_of(httpd, "/app/200"), "success");
    EXPECT_EQ(verdict_of(httpd, "/app/here/404"), "success:404");
    EXPECT_EQ(verdict_of(httpd, "/app/here/502"), "success:502");
    EXPECT_EQ(verdict_of(httpd, "/app/here/410"), "failure:410") << "the outer ones still hold";
    EXPECT_EQ(verdict_of(httpd, "/app/here/404?if"), "ignore:404") << "<If> comes last, so it is the innermost";
    EXPECT_EQ(verdict_of(httpd, "/app/418"), "fatal:418");
    EXPECT_EQ(state_of(httpd, app_), "open") << "at once, though nothing else could trip";
}

TEST_P(Rules, OnClassesAndStatusesAreAlternativesAndAreNamedAsTheReason) {
    Httpd httpd(site(std::string(counting_policy) + "CircuitBreakerVerdict tolerate timeout reset 403\n",
                     plain_worker(app_, "timeout=2 disablereuse=on")));
    httpd.start();
    app_.answer(Reply::reset());
    EXPECT_EQ(verdict_of(httpd, "/app/x"), "tolerate:reset");
    app_.answer(Reply::status(403));
    EXPECT_EQ(verdict_of(httpd, "/app/x"), "tolerate:403");
    app_.answer(Reply::hang());
    EXPECT_EQ(verdict_of(httpd, "/app/x"), "tolerate:timeout");
    app_.answer(Reply::garbage());
    EXPECT_EQ(verdict_of(httpd, "/app/x"), "failure:protocol");
    app_.refuse();
    EXPECT_EQ(verdict_of(httpd, "/app/x"), "failure:connect");
    EXPECT_EQ(BreakerPage(httpd).member(app_).number("Verdict-tolerate"), 3U);
}

TEST_P(Rules, ReadTheBackendsOwnHeadersAndTheRequestInExpressions) {
    HttpdOptions options = site(std::string(counting_policy) +
                                    "CircuitBreakerVerdict failure \"expr=resp('X-Health') == 'down'\"\n"
                                    "CircuitBreakerVerdict fatal \"expr=req('X-Never') == 'sent'\"\n"
                                    "CircuitBreakerVerdict tolerate 200 \"expr=%{REQUEST_URI} =~ m#/soft$# && "
                                    "%{REQUEST_STATUS} == '200'\"\n"
                                    "Header always set X-Health fine\nHeader set X-Health fine\n",
                                plain_worker(app_));
    Httpd httpd(options);
    httpd.start();
    EXPECT_EQ(verdict_of(httpd, "/app/x"), "success");
    EXPECT_EQ(verdict_of(httpd, "/app/soft"),
              "tolerate:expr=%{REQUEST_URI} =~ m#/soft$# && %{REQUEST_STATUS} == '200'");
    app_.answer(Reply::status(404).header("X-Health", "down"));
    EXPECT_EQ(verdict_of(httpd, "/app/soft"), "failure:expr=resp('X-Health') == 'down'");
    EXPECT_EQ(last().header("X-Health"), "fine") << "what mod_headers makes of it comes later";
    app_.answer(Reply::ok(std::string(500'000, 'x')).header("X-Health", "down"));
    EXPECT_EQ(verdict_of(httpd, "/app/x"), "failure:expr=resp('X-Health') == 'down'") << "by the headers as they came";
    EXPECT_FALSE(last().headers.has("Vary"));
    // A rule with no status and no class is about the member, not about clients and full pools.
    EXPECT_EQ(BreakerPage(httpd).member(app_).number("Calls"), 4U);
}

TEST_P(Rules, MayNameAllStatusesOfOneFirstDigit) {
    Httpd httpd(site(std::string(counting_policy) + "CircuitBreakerVerdict failure 5XX 400-450\n"
                                                    "CircuitBreakerVerdict ignore 9xx\n",
                     plain_worker(app_)));
    httpd.start();
    for (const auto& [status, verdict] : std::vector<std::pair<int, std::string>>{{500, "failure:500"},
                                                                                  {599, "failure:599"},
                                                                                  {400, "failure:400"},
                                                                                  {450, "failure:450"},
                                                                                  {451, "success"},
                                                                                  {399, "success"},
                                                                                  {999, "ignore:999"}}) {
        app_.answer(Reply::status(status));
        EXPECT_EQ(verdict_of(httpd, "/app/x"), verdict) << status;
    }
}

TEST_P(Rules, OfProbesAreTriedFirstAndForProbesOnly) {
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerProbeVerdict failure 404\n"
                                                 "CircuitBreakerVerdict ignore 404\n",
                     plain_worker(app_)));
    httpd.start();
    app_.answer(Reply::status(404));
    EXPECT_EQ(verdict_of(httpd, "/app/x"), "ignore:404");
    app_.answer(Reply::status(503));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "503 503 503");
    app_.answer(Reply::status(404));
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app_));
    EXPECT_EQ(verdict_of(httpd, "/app/x"), "failure:404");
    EXPECT_EQ(transitions(httpd, "half-open", "open"), 1U);
    app_.answer(Reply::ok());
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app_));
    EXPECT_EQ(verdict_of(httpd, "/app/x"), "success");
    EXPECT_EQ(state_of(httpd, app_), "closed");
}

TEST_P(Rules, ByTheHeadersHoldForAProbeWhoseLeaseRunsOut) {
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerVerdict failure 404\nCircuitBreakerSettle 100ms\n",
                     plain_worker(app_, "timeout=1 connectiontimeout=100ms")));
    httpd.start();
    app_.answer(Reply::status(503));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "503 503 503");
    app_.answer(Reply::status(404, std::string(30'000'000, 'x')));
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app_));
    RawClient client(httpd.port());  // reads its headers, then nothing: the thread that makes the call is stuck
    ASSERT_TRUE(client.send("GET /app/probe HTTP/1.1\r\nHost: me\r\n\r\n"));
    EXPECT_NE(client.read_until("\r\n\r\n").find(" 404 "), std::string::npos);
    EXPECT_TRUE(wait_until([&] { return transitions(httpd, "half-open", "open") == 1; }, patience, "its deadline"));
    EXPECT_TRUE(httpd.error_lines_with("probe-lost").empty()) << "it was answered";
}

TEST_P(Rules, OfAFailOnStatusAddToTheBuiltInStatuses) {
    Backend member("member");
    Httpd httpd(
        site(counting_policy, plain_worker(app_) + "<Proxy balancer://two>\n" + member_line(member) +
                                  "    ProxySet failonstatus=500,429\n</Proxy>\nProxyPass /two balancer://two\n"));
    httpd.start();
    for (const auto& [status, verdict] : std::vector<std::pair<int, std::string>>{{500, "failure:500"},
                                                                                  {429, "failure:429"},
                                                                                  {502, "failure:502"},
                                                                                  {503, "failure:503"},
                                                                                  {504, "failure:504"},
                                                                                  {501, "success"},
                                                                                  {404, "success"},
                                                                                  {200, "success"}}) {
        member.answer(Reply::status(status));
        EXPECT_EQ(verdict_of(httpd, "/two/x"), verdict) << status;
        EXPECT_EQ(last().backend(), "member") << "and mod_proxy's own error state does not stay";
    }
    member.answer(Reply::garbage());
    EXPECT_EQ(verdict_of(httpd, "/two/x"), "failure:protocol") << "classes are as ever";
    app_.answer(Reply::status(500));
    EXPECT_EQ(verdict_of(httpd, "/app/x"), "success") << "another one's list";
}

TEST_P(Rules, LookIntoJsonBodies) {
    Httpd httpd(site(std::string(counting_policy) +
                         "CircuitBreakerVerdict fatal 200 json=/fatal:true \"expr=resp('X-Sure') == 'yes'\"\n"
                         "CircuitBreakerVerdict failure json=/error_code:7,8\n"
                         "CircuitBreakerVerdict tolerate 200 json=/list/1/state:bad\n",
                     plain_worker(app_)));
    httpd.start();
    const auto verdict = [&](const Reply& reply) {
        app_.answer(reply);
        return verdict_of(httpd, "/app/x");
    };
    EXPECT_EQ(verdict(json(R"({"error_code": 7})")), "failure:json=/error_code");
    EXPECT_EQ(last().body, R"({"error_code": 7})");
    EXPECT_EQ(verdict(json(R"({"error_code": 9})")), "success");
    EXPECT_EQ(verdict(json(R"({"list": [{}, {"state": "bad"}]})", "application/problem+json; charset=utf-8")),
              "tolerate:json=/list/1/state");
    EXPECT_EQ(verdict(json(R"({"error_code": 7})", "text/plain")), "failure:json=/error_code");
    EXPECT_EQ(verdict(json(R"({"error_code": 7})").in_chunks().dripping(3, milliseconds(2))),
              "failure:json=/error_code")
        << "chunk borders in the middle of a token";
    EXPECT_EQ(verdict(json(R"({"error_code": 7})").until_close()), "failure:json=/error_code");
    EXPECT_EQ(verdict(json(R"({"error_code": 7}})")), "success") << "broken";
    EXPECT_EQ(verdict(json(R"({"id": 18446744073709551615, "error_code": 7})")), "failure:json=/error_code")
        << "a number that is too large hides nothing";
    EXPECT_EQ(verdict(json("")), "success");
    EXPECT_EQ(verdict(json(R"({"error_code": 7})", "application/octet-stream")), "success") << "binary";
    EXPECT_EQ(verdict(json(R"({"error_code": 7})").header("Content-Encoding", "gzip")), "success") << "so it says";
    EXPECT_EQ(verdict(json(R"({"error_code": 7})").header("Content-Encoding", "identity")), "failure:json=/error_code");
    EXPECT_EQ(verdict(json(R"({"error_code": 7})" + std::string(8192, ' '))), "success") << "longer than the limit";
    EXPECT_EQ(verdict(json(R"({"error_code": 7})" + std::string(8192 - 17, ' '))), "failure:json=/error_code")
        << "exactly the limit";
    EXPECT_EQ(verdict(json(R"({"error_code": 7})").cut_after(10, Ending::fin)), "failure:truncated");
    EXPECT_EQ(verdict(json(R"({"fatal": true})")), "success") << "each condition must hold";
    EXPECT_EQ(state_of(httpd, app_), "closed");
    EXPECT_EQ(verdict(json(R"({"fatal": true})").header("X-Sure", "yes")), "fatal:json=/fatal");
    EXPECT_EQ(state_of(httpd, app_), "open");
}

TEST_P(Rules, LookAtNoBodyThatTheClientDidNotAskFor) {
    Httpd httpd(site(std::string(counting_policy) + "CircuitBreakerVerdict failure \"body=/^(?!fine)/\"\n",
                     plain_worker(app_)));
    httpd.start();
    const auto failures = [&](const RequestOptions& options, const Reply& reply) {
        app_.answer(reply);
        (void)get(httpd.url("/app/x"), options);
        return BreakerPage(httpd).member(app_).number("Verdict-failure");
    };
    EXPECT_EQ(failures({.method = "HEAD"}, json("fine", "text/html")), 0U);
    EXPECT_EQ(failures({}, Reply::status(304).header("Content-Type", "text/html")), 0U);
    EXPECT_EQ(failures({}, Reply::status(204).header("Content-Type", "text/html")), 0U);
    EXPECT_EQ(
        failures({.headers = {{"Range", "bytes=1-3"}}},
                 Reply::status(206, "ine").header("Content-Type", "text/html").header("Content-Range", "bytes 1-3/4")),
        0U);
    EXPECT_EQ(failures({}, json("ine", "text/html")), 1U);
}

TEST_P(Rules, SeeTheStatusInExpressionsUnderProxyErrorOverrideToo) {
    Httpd httpd(site(std::string(counting_policy) +
                         "CircuitBreakerVerdict tolerate 503 \"expr=%{REQUEST_STATUS} == '503'\"\n"
                         "ProxyErrorOverride On\nErrorDocument 503 \"sorry\"\n",
                     plain_worker(app_)));
    httpd.start();
    app_.answer(Reply::status(503));
    EXPECT_EQ(verdict_of(httpd, "/app/x"), "tolerate:expr=%{REQUEST_STATUS} == '503'");
    EXPECT_EQ(last().body, "sorry") << "and the error page is found";
}

TEST_P(Rules, LookIntoTextBodiesUpToTheLimit) {
    Httpd httpd(site(std::string(counting_policy) +
                         "CircuitBreakerBodyLimit 100\n"
                         "CircuitBreakerVerdict failure 200 \"body=/out of (memory|files)/i\"\n",
                     plain_worker(app_) + "<Location /app/far>\n    CircuitBreakerBodyLimit 100000\n</Location>\n"));
    httpd.start();
    const auto verdict = [&](const std::string& path, const Reply& reply) {
        app_.answer(reply);
        return verdict_of(httpd, path);
    };
    const std::string failure = "failure:body=/out of (memory|files)/i";
    EXPECT_EQ(verdict("/app/x", json("Out of Memory", "text/html")), failure);
    EXPECT_EQ(verdict("/app/x", json("out of luck", "text/html")), "success");
    EXPECT_EQ(verdict("/app/x", json(std::string(87, 'x') + "out of memory", "text/html")), failure);
    EXPECT_EQ(verdict("/app/x", json(std::string(88, 'x') + "out of memory", "text/html")), "success") << "cut off";
    EXPECT_EQ(verdict("/app/far", json(std::string(99'987, 'x') + "out of memory", "text/html")), failure);
    EXPECT_EQ(verdict("/app/x", json("out of files" + std::string(300'000, 'x'), "text/html")), failure)
        << "in the first bytes of a long one";
    EXPECT_EQ(last().body.size(), 300'012U);
    EXPECT_EQ(verdict("/app/x", json(std::string("a\0out of files", 14), "text/html")), failure);
    EXPECT_EQ(verdict("/app/x", json("out of files", "image/png")), "success");
    EXPECT_EQ(verdict("/app/x", Reply::ok("out of files")), "success") << "no type at all";
}

TEST_P(Rules, ThatLookAtBodiesLeaveThemUnchangedAndUndelayed) {
    Httpd httpd(site(std::string(counting_policy) +
                         "CircuitBreakerVerdict failure \"body=/needle/\"\n"
                         "CircuitBreakerVerdict failure json=/a:1\nCircuitBreakerBodyLimit 20000\n",
                     plain_worker(app_)));
    httpd.start();
    std::string body;
    for (unsigned i = 0; body.size() < 300'000; ++i)
        body += static_cast<char>(i * 7 + i / 251);
    for (const bool chunked : {false, true}) {
        Reply reply = json(body, "text/plain");
        if (chunked) reply.in_chunks();
        app_.answer(reply);
        EXPECT_EQ(verdict_of(httpd, "/app/x"), "success");
        EXPECT_EQ(last().body, body);
    }
    // The first bytes reach the client while the backend still holds the rest.
    app_.answer(json(std::string(5'000, 'x'), "text/plain").in_chunks().stalling(3'000));
    RawClient client(httpd.port());
    ASSERT_TRUE(client.send("GET /app/slow HTTP/1.1\r\nHost: me\r\n\r\n"));
    EXPECT_NE(client.read_until("xxx").find(" 200 "), std::string::npos);
    EXPECT_EQ(BreakerPage(httpd).member(app_).number("In-flight"), 1U);
    app_.release();
}

}  // namespace
}  // namespace cb::test
