// The ready program that fetches pages from a member before it is probed.
#include "runbook.hpp"
#include "support/h2c.hpp"

namespace cb::test {
namespace {

class WarmUp : public RunnerAlone {
  protected:
    WarmUp() { runbook_.ready_program("warm-up", "on-probe-soon.d"); }
    [[nodiscard]] CommandResult warm_up(const std::string& member, const std::string& balancer = "balancer://b") const {
        return run("{\"event\":\"probe-soon\",\"balancer\":\"" + balancer + "\",\"member\":\"" + member +
                   "\",\"from\":\"open\",\"to\":null,\"reason\":\"r\",\"open_for_ms\":5000}\n");
    }
    /// With a curl that only notes how it was called and what its configuration was.
    void with_noting_curl(const std::string& lines) const {
        runbook_.program("bin/curl", "{ printf '%s ' \"$@\"; echo; cat; echo; } >> $T/called; printf 200");
        runbook_.configure("PATH=" + runbook_.path("bin").string() + ":$PATH\n" + lines);
    }
    [[nodiscard]] std::string called() const { return runbook_.text("called"); }
};

TEST_F(WarmUp, FetchesEachPageThreeTimesFromThatMember) {
    Backend app("app");
    runbook_.configure("WARM_UP_URLS='/health /{a,b} /*'\n");
    EXPECT_EQ(warm_up(app.member()).output, "");
    EXPECT_EQ(app.requests_for("/health"), 3U);
    EXPECT_EQ(app.requests_for("/*"), 3U);
    EXPECT_EQ(app.requests_for("/{a,b}"), 3U) << "neither the shell nor curl makes more of it";
    EXPECT_EQ(app.requests(), 9U);
    for (const Request& request : app.log()) {
        EXPECT_EQ(request.method, "GET");
        EXPECT_EQ(request.headers.get("X-Warm-Up"), "1");
        EXPECT_EQ(request.headers.get("Host"), "127.0.0.1:" + std::to_string(app.port()));
    }
    EXPECT_EQ(app.last_request()->target, "/*");
}

TEST_F(WarmUp, AsTheSettingsSay) {
    Backend app("app");
    runbook_.configure(
        "WARM_UP_URLS=/x\nWARM_UP_TIMES=1\nWARM_UP_HEADER='X-Secret: \"s\\\\t\"'\n"
        "WARM_UP_HOST=www.example.com\nWARM_UP_BALANCER=balancer://app\n");
    EXPECT_EQ(warm_up(app.member() + "/base/", "balancer://app").output, "");
    ASSERT_EQ(app.requests_for("/base/x"), 1U);
    EXPECT_EQ(app.last_request()->headers.get("X-Secret"), "\"s\\\\t\"");
    EXPECT_EQ(app.last_request()->headers.all("Host"), std::vector<std::string>{"www.example.com"});
    EXPECT_FALSE(app.last_request()->headers.has("X-Warm-Up"));
    EXPECT_EQ(warm_up(app.member(), "balancer://app2").output, "");
    EXPECT_EQ(app.requests(), 1U) << "another balancer's member";
}

TEST_F(WarmUp, TheMembersOfEachProtocolThatCurlSpeaks) {
    runbook_.configure("WARM_UP_URLS=/x\nWARM_UP_TIMES=2\n");
    Backend socket("socket", OnUnixSocket{});
    EXPECT_EQ(warm_up(socket.member()).output, "");
    EXPECT_EQ(socket.requests_for("/x"), 2U);
    Backend websocket("websocket");
    EXPECT_EQ(warm_up("ws://127.0.0.1:" + std::to_string(websocket.port())).output, "");
    EXPECT_EQ(websocket.requests_for("/x"), 2U);
    WireBackend http2("http2", h2c());
    EXPECT_EQ(warm_up(http2.member()).output, "");
    EXPECT_EQ(http2.requests(), 2U);

    with_noting_curl("WARM_UP_URLS=/x\nWARM_UP_TIMES=1\n");
    EXPECT_EQ(warm_up("https://[::1]:8443").output + warm_up("wss://w:1").output + warm_up("h2://h").output, "");
    EXPECT_NE(called().find("--http1.1"), std::string::npos) << called();
    EXPECT_NE(called().find("url = \"https://[::1]:8443/x\"\n"), std::string::npos) << called();
    EXPECT_NE(called().find("url = \"https://w:1/x\"\n"), std::string::npos);
    EXPECT_NE(called().find("--http2 "), std::string::npos);
    EXPECT_NE(called().find("url = \"https://h/x\"\n"), std::string::npos);
    std::filesystem::remove(runbook_.path("called"));
    for (const std::string scheme : {"fcgi://a:1", "ajp://a:1", "scgi://a:1", "uwsgi://a:1", "unix:/s|fcgi://a"}) {
        const CommandResult result = warm_up(scheme);
        EXPECT_EQ(result.output, "not warmed up: curl does not speak the protocol of " + scheme + "\n")
            << "and it has not failed";
    }
    EXPECT_EQ(called(), "");
}

TEST_F(WarmUp, FailsOnlyIfNoAnswerIsAnyGood) {
    Backend app("app");
    runbook_.configure("WARM_UP_URLS=/x\nWARM_UP_TIMEOUT=1\n");
    app.answer_next(2, Reply::status(500));
    app.answer(Reply::status(404));
    EXPECT_EQ(warm_up(app.member()).output, "") << "it is warm enough to say that there is no such page";
    app.answer(Reply::status(503));
    const auto said = [&](const std::string& status) {
        const std::string output = warm_up(app.member()).output;
        return output.starts_with("not warm: none of 3 answers had a status below 500, the last had " + status +
                                  "\n") &&
                       output.find("50-warm-up: exit status 1 (member " + app.member()) != std::string::npos
                   ? ""
                   : "it said: " + output;
    };
    EXPECT_EQ(said("503"), "");
    app.hold();
    EXPECT_EQ(said("000"), "") << "its time limit";
    app.refuse();
    EXPECT_EQ(said("000"), "");
}

TEST_F(WarmUp, NothingOfAnEventIsEvaluatedOrBecomesAnOption) {
    with_noting_curl("WARM_UP_URLS=/x\nWARM_UP_TIMES=1\nWARM_UP_HEADER='X-Token: secret'\n");
    const std::string hostile = R"-(unix:/a\"$(touch harm)`touch harm`\noutput = harm\n|http://h\nuser = x\r#\\)-";
    EXPECT_EQ(warm_up(hostile).output, "");
    const std::string text = called();
    EXPECT_NE(text.find(R"-(unix-socket = "/a\"$(touch harm)`touch harm` output = harm ")-"), std::string::npos)
        << text;
    EXPECT_NE(text.find(R"-(url = "http://h user = x #\\/x")-"), std::string::npos) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5)
        << "how it was called, three options, an empty line" << text;
    const std::string arguments = text.substr(0, text.find('\n'));
    EXPECT_EQ(arguments.find("secret"), std::string::npos) << arguments;
    EXPECT_EQ(arguments.find("//h"), std::string::npos) << arguments;
    EXPECT_FALSE(std::filesystem::exists("harm"));
}

}  // namespace
}  // namespace cb::test
