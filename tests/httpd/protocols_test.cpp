// Every protocol of mod_proxy: what happened to a call is told apart as it is over HTTP, although nothing but a result
// and a line in the error log comes from its handler.
#include "protocols.hpp"

namespace cb::test {
namespace {

class Protocols : public ProtocolTest {};
INSTANTIATE_TEST_SUITE_P(All, Protocols, testing::ValuesIn(protocols()), protocol_name);

TEST_P(Protocols, TheBackendsOwnStatusesAreItsOwn) {
    for (const auto& [status, expected] : std::map<int, std::string>{{200, "Outcome-2xx Verdict-success"},
                                                                     {302, "Outcome-3xx Verdict-success"},
                                                                     {404, "Outcome-4xx Verdict-success"},
                                                                     {408, "Outcome-4xx Verdict-success"},
                                                                     {412, "Outcome-4xx Verdict-success"},
                                                                     {500, "Outcome-5xx Verdict-success"},
                                                                     {502, "Outcome-5xx Verdict-failure"},
                                                                     {503, "Outcome-5xx Verdict-failure"},
                                                                     {504, "Outcome-5xx Verdict-failure"},
                                                                     {600, "Outcome-6xx Verdict-success"},
                                                                     {999, "Outcome-9xx Verdict-success"}}) {
        for (const char* body : {"what it has to say", ""}) {
            for (const char* method : {"GET", "HEAD", "POST"}) {
                if (is("h2c") && method == std::string("HEAD") && *body != '\0')
                    continue;  // no scripted answer to that
                EXPECT_EQ(judged_of(WireReply::status(status, body), "",
                                    {.method = method, .body = method == std::string("POST") ? "some" : ""}),
                          expected)
                    << status << " to " << method << " with body '" << body << "'";
                // (It comes without a reason phrase over HTTP/2, and httpd knows none for it.)
                EXPECT_EQ(last_.status, is("h2c") && status >= 600 ? 500 : status) << last_.error;
                EXPECT_EQ(last_.backend(), GetParam().name);
            }
        }
    }
}

TEST_P(Protocols, WhatHttpdMakesOfAScriptsLastModifiedIsTheScriptsAnswer) {
    if (!is("fcgi") && !is("scgi")) return;
    WireReply reply = WireReply::status(200);
    reply.more_fields = "Last-Modified: Sat, 10 Oct 2020 10:10:10 GMT\r\n";
    Headers unchanged;
    unchanged.add("If-Modified-Since", "Sat, 10 Oct 2020 10:10:10 GMT");
    Headers changed;
    changed.add("If-Unmodified-Since", "Fri, 10 Oct 2008 10:10:10 GMT");
    backend().answer(reply);
    EXPECT_EQ(get(url(), {.headers = unchanged}).status, 304);
    EXPECT_EQ(judged(), "Outcome-3xx Verdict-success");
    EXPECT_EQ(get(url(), {.headers = changed}).status, 412);
    EXPECT_EQ(judged(), "Outcome-4xx Verdict-success");
}

TEST_P(Protocols, ErrorPagesOfHttpdsOwnChangeNoVerdict) {
    std::map<std::string, std::string> judged_as[2];
    for (const char* prefix : {"", "/override"}) {
        auto& results = judged_as[*prefix == '\0' ? 0 : 1];
        for (const int status : {200, 302, 401, 404, 408, 412, 500, 502, 503, 504}) {
            for (const char* method : {"GET", "HEAD"})
                results[std::to_string(status) + " to " + method] =
                    judged_of(WireReply::status(status, *method == 'H' ? "" : "a page"), prefix, {.method = method});
        }
        results["garbage"] = judged_of(WireReply::garbage(), prefix);
        results["reset"] = judged_of(WireReply::nothing(Ending::reset), prefix);
        results["closed"] = judged_of(WireReply::nothing(Ending::fin), prefix);
        backend().refuse();
        results["refused"] = judged_of(WireReply::status(200), prefix);
        backend().accept_again();
    }
    EXPECT_EQ(judged_as[0].size(), 24U);
    for (const auto& [name, expected] : judged_as[0])
        EXPECT_EQ(judged_as[1][name], expected) << name;
    EXPECT_EQ(judged_as[1]["404 to GET"], "Outcome-4xx Verdict-success");
    EXPECT_EQ(judged_as[1]["503 to HEAD"], "Outcome-5xx Verdict-failure");
}

TEST_P(Protocols, ARefusedConnectionIsConnect) {
    EXPECT_EQ(judged_of(WireReply::status(200)), "Outcome-2xx Verdict-success");
    backend().refuse();
    for (const char* method : {"GET", "POST"}) {
        EXPECT_EQ(judged_of(WireReply::status(200), "", {.method = method, .body = method[0] == 'P' ? "some" : ""}),
                  "Outcome-connect Verdict-failure")
            << method;
        EXPECT_EQ(last_.status, 503);
    }
    backend().accept_again();
    EXPECT_EQ(judged_of(WireReply::status(200)), "Outcome-2xx Verdict-success");
}

TEST_P(Protocols, AConnectionThatBreaksBeforeTheAnswerIsReset) {
    for (const Ending ending : {Ending::fin, Ending::reset}) {
        for (const char* method : {"GET", "POST"}) {
            EXPECT_EQ(
                judged_of(WireReply::nothing(ending), "", {.method = method, .body = method[0] == 'P' ? "some" : ""}),
                "Outcome-reset Verdict-failure")
                << method << (ending == Ending::fin ? " closed" : " reset");
            EXPECT_EQ(last_.backend(), "");
        }
    }
}

TEST_P(Protocols, AConnectionThatIsResetAtOnceIsResetOrConnect) {
    // Which of the two depends on how far httpd came before it noticed; with a ping it never got to the request.
    backend().reset_connections();
    const std::string result = judged_of(WireReply::status(200));
    backend().reset_connections(false);
    const bool may_be_reset = !GetParam().parameters.starts_with("ping");
    EXPECT_TRUE(result == "Outcome-connect Verdict-failure" ||
                (may_be_reset && result == "Outcome-reset Verdict-failure"))
        << result;
}

TEST_P(Protocols, SilenceIsATimeoutWhateverTheMethod) {
    EXPECT_EQ(judged_of(WireReply::nothing(Ending::silence)), "Outcome-timeout Verdict-failure");
    EXPECT_EQ(last_.backend(), "");
    EXPECT_EQ(judged_of(WireReply::nothing(Ending::silence), "", {.method = "POST", .body = "some"}),
              "Outcome-timeout Verdict-failure");
    EXPECT_EQ(last_.backend(), "");
}

TEST_P(Protocols, AnAnswerIsJudgedWhenItIsComplete) {
    if (is("scgi")) return;  // there only the end of the connection says so
    backend().answer(WireReply::lingering());
    RawClient client(httpd_->port());
    ASSERT_TRUE(client.send("GET /" + GetParam().name + "/x HTTP/1.1\r\nHost: me\r\n\r\n"));
    EXPECT_NE(client.read_until("all there is").find(" 200 "), std::string::npos);
    // uwsgi's connection stays; the others' end is in the answer, and mod_proxy may leave.
    if (is("uwsgi")) {
        EXPECT_TRUE(backend().wait_for_hanging(1));
    }
    EXPECT_EQ(judged(), "Outcome-2xx Verdict-success");
    if (is("uwsgi")) {
        EXPECT_EQ(backend().hanging(), 1U);
    }
    backend().release();
}

TEST_P(Protocols, AnAnswerThatBreaksOffIsTruncated) {
    for (const Ending ending : {Ending::fin, Ending::reset, Ending::silence}) {
        // In SCGI the end of the connection is the end of the response, and a unix domain socket has no RST.
        const bool is_the_end =
            is("scgi") && (ending == Ending::fin || (ending == Ending::reset && GetParam().on_unix_socket));
        EXPECT_EQ(judged_of(WireReply::cut(ending)),
                  is_the_end ? "Outcome-2xx Verdict-success" : "Outcome-truncated Verdict-failure")
            << static_cast<int>(ending);
        EXPECT_EQ(last_.backend(), GetParam().name) << "the headers had left";
    }
}

TEST_P(Protocols, AnAnswerThatBreaksOffAfterItsHeadersIsAFailureToo) {
    // Where nothing of it is passed on before there is some of the body, it counts as none.
    for (const Ending ending : {Ending::fin, Ending::reset, Ending::silence}) {
        if (is("scgi") && (ending == Ending::fin || GetParam().on_unix_socket)) continue;  // an empty answer
        const std::string result = judged_of(WireReply::head_only(ending));
        const std::string nothing = ending == Ending::silence ? "timeout" : "reset";
        EXPECT_TRUE(result == "Outcome-truncated Verdict-failure" ||
                    result == "Outcome-" + nothing + " Verdict-failure")
            << static_cast<int>(ending) << ": " << result;
    }
}

TEST_P(Protocols, NonsenseIsProtocol) {
    // All that is known of an HTTP/2 session is that it is over.
    EXPECT_EQ(judged_of(WireReply::garbage()),
              is("h2c") ? "Outcome-reset Verdict-failure" : "Outcome-protocol Verdict-failure");
    EXPECT_EQ(last_.backend(), "");
}

TEST_P(Protocols, AClientThatLeavesIsNobodysFailure) {
    const std::string path = "/" + GetParam().name + "/x";
    const std::string upload = "POST " + path + " HTTP/1.1\r\nHost: me\r\n";
    {
        // Before there is anything for it nobody looks at the client: until then this is a call like any other.
        backend().answer(WireReply::nothing(Ending::silence));
        RawClient leaving(httpd_->port());
        ASSERT_TRUE(leaving.send("GET /brief" + path + " HTTP/1.1\r\nHost: me\r\n\r\n"));
        ASSERT_TRUE(backend().wait_for_hanging(1));
        leaving.reset();
        EXPECT_EQ(judged(brief_member(backend())), "Outcome-timeout Verdict-failure");
        backend().release();
    }
    backend().answer(WireReply::status(200));
    {
        RawClient uploading(httpd_->port());
        ASSERT_TRUE(uploading.send(upload + "Content-Length: 100000\r\n\r\n" + std::string(40'000, 'x')));
        ASSERT_TRUE(wait_until([&] { return BreakerPage(*httpd_).member(backend().member()).number("In-flight") == 1; },
                               patience, "the upload to begin"));
        uploading.reset();
        EXPECT_EQ(judged(), "Outcome-client Verdict-ignore") << "in mid-upload";
    }
    if (is("h2c")) return;  // it ends the backend's request when the client's breaks; and nothing scripted paces itself
    {
        RawClient nonsense(httpd_->port());
        ASSERT_TRUE(nonsense.send(upload + "Transfer-Encoding: chunked\r\n\r\nnot a size\r\n"));
        (void)nonsense.read_until("\r\n");
        EXPECT_EQ(judged(), "Outcome-client Verdict-ignore") << "bad chunks";
    }
    {
        backend().answer(WireReply::status(200, std::string(20'000'000, 'x')));
        RawClient downloading(httpd_->port());
        ASSERT_TRUE(downloading.send("GET " + path + " HTTP/1.1\r\nHost: me\r\n\r\n"));
        EXPECT_NE(downloading.read_until("\r\n\r\n").find(" 200 "), std::string::npos);
        downloading.reset();
        EXPECT_EQ(judged(), "Outcome-client Verdict-ignore") << "in mid-download";
    }
}

TEST_P(Protocols, AClientThatStallsItsUploadIsNobodysFailure) {
    if (is("h2c")) return;  // it has the patience to wait for ever
    backend().answer(WireReply::status(200));
    RawClient stalling(httpd_->port());
    ASSERT_TRUE(stalling.send("POST /" + GetParam().name +
                              "/x HTTP/1.1\r\nHost: brief\r\nContent-Length: 100000\r\n\r\n" +
                              std::string(40'000, 'x')));
    (void)stalling.read_until("\r\n");  // httpd's own patience is at its end
    EXPECT_EQ(judged(), "Outcome-client Verdict-ignore");
}

}  // namespace
}  // namespace cb::test
