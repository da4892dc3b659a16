// What was set when httpd was stopped is cleared when it is started again: all breakers are closed then.
#include "runbook_marks.hpp"

namespace cb::test {
namespace {

class RunbookAnew : public NotingRunner {};

TEST_F(RunbookAnew, WhatAnEarlierHttpdHasLeftIsClearedOnceAndWhatIsOfThisOneIsNot) {
    programs({"on-open.d/10", "on-open.d/20", "on-reset.d/10", "clear.d/10", "clear.d/20"});
    EXPECT_EQ(ran(event_of("one:80", "m") + event_of("two:80", "m")),
              "on-open.d/10 m\non-open.d/20 m\non-open.d/10 m\non-open.d/20 m\n");
    EXPECT_EQ(ran(""), "") << "a graceful restart";
    EXPECT_EQ(marks(), 4U);
    EXPECT_EQ(ran_anew(), "clear.d/10 m\nclear.d/20 m\nclear.d/10 m\nclear.d/20 m\n");
    EXPECT_EQ(marks(), 0U);
    EXPECT_EQ(ran_anew(), "");
    EXPECT_EQ(output_, "");
}

TEST_F(RunbookAnew, AProgramGetsTheOpeningAsAReset) {
    runbook_.program("on-open.d/10", "");
    runbook_.program("clear.d/10",
                     "echo \"$CB_EVENT,$CB_FROM,$CB_TO,$CB_REASON,$CB_VHOST,$CB_MEMBER,$CB_CALLS,$CB_FAILURE_RATE,"
                     "$CB_OUTCOME,$CB_TEXT\" >> $T/ran; cat >> $T/read");
    const std::string line =
        R"({"time":"t","event":"transition","vhost":"one:80","balancer":"b","member":"m\"/é","from":"closed",)"
        R"("to":"open","reason":"failure rate","calls":3,"failure_rate":33.3,"open_for_ms":1000,"recent":)"
        R"([{"outcome":"503"}]})";
    (void)ran(line + "\n");
    EXPECT_EQ(ran_anew("", "-q 1"),
              "reset,closed,,httpd was started anew,one:80,m\"/é,3,33.3,503,"
              "circuit breaker: m\"/é of b: reset: httpd was started anew\n");
    EXPECT_EQ(runbook_.text("read"), replaced(replaced(replaced(line, "transition", "reset"), "\"open\"", "null"),
                                              "failure rate", "httpd was started anew") +
                                         "\n");
}

TEST_F(RunbookAnew, ALineStaysShortEnoughForAPipe) {
    programs({"on-open.d/10"});
    runbook_.program("clear.d/10", "cat > $T/read");
    std::string line = event("m");
    line.resize(line.size() - 2);
    line += ",\"recent\":[";
    for (int i = 0; line.size() < 4050; ++i)
        line += (i > 0 ? "," : "") + std::string("{\"outcome\":\"503\",\"n\":") + std::to_string(i) + "}";
    const std::string padding(4093 - line.size() - std::string(",\"x\":\"\"").size(), 'x');
    line += "],\"x\":\"" + padding + "\"}\n";
    ASSERT_EQ(line.size(), 4096U);
    (void)ran(line);
    (void)ran_anew();
    const std::string read = runbook_.text("read");
    EXPECT_LE(read.size(), 4096U);
    EXPECT_EQ(read.find("\"n\":0}"), std::string::npos) << "the oldest call";
    EXPECT_NE(read.find("\"n\":1}"), std::string::npos) << read;
    EXPECT_EQ(output_, "");
}

TEST_F(RunbookAnew, ComesBeforeWhatHappensUnderThisHttpd) {
    programs({"on-open.d/10", "clear.d/10"});
    (void)ran(event("m"));
    EXPECT_EQ(ran_anew(event("m") + event("m", "closed")), "clear.d/10 m\non-open.d/10 m\nclear.d/10 m\n");
    (void)ran(event("m"));
    ends_with("10", 3);
    EXPECT_EQ(ran_anew(), "clear.d/10 m\n");
    EXPECT_EQ(marks(), 1U) << "it has failed";
    ends_with("10", 0);
    EXPECT_EQ(ran_anew(), "clear.d/10 m\n") << "once more";
    (void)ran(event("m"));
    std::filesystem::remove_all(runbook_.path("clear.d"));
    EXPECT_EQ(ran_anew(), "");
    EXPECT_EQ(marks(), 0U) << "nothing could clear it";
}

TEST_F(RunbookAnew, WhatAnotherRunnerHasSeenToIsLeftAlone) {
    programs({"on-open.d/10", "on-open.d/20", "on-open.d/30", "clear.d/20", "clear.d/30"});
    // As if another runner of this httpd had cleared 20, and then cleared 30 and set it again.
    runbook_.program("clear.d/10",
                     "rm $T/marks/set-*/*.20; started=$(sed 's/.*) //' /proc/$CB_SERVER/stat | cut -d ' ' -f 20)\n"
                     "sed -i \"1s/.*/$CB_SERVER.$started/\" $T/marks/set-*/*.30");
    (void)ran(event("m"));
    EXPECT_EQ(ran_anew("", "-j 1"), "");
    EXPECT_EQ(marks(), 1U);
}

TEST_F(RunbookAnew, WhatTheEarlierRunnerSetsLateIsClearedToo) {
    programs({"on-open.d/10", "clear.d/10"});
    (void)ran(event("m"));
    const std::string set = runbook_.path("marks/set-fff1371912fb9590").string();
    const std::string away = runbook_.path("away").string();
    std::filesystem::rename(set, away);
    std::filesystem::remove(runbook_.path("ran"));
    // The second runner is at work when the mark comes; its input ends when that is cleared, or after a while.
    std::ofstream(runbook_.path("events")) << event("n");
    const std::string told = runbook_.path("ran").string();
    const CommandResult result = run_shell(
        "{ cat " + runbook_.path("events").string() + "; until grep -q n " + told + "; do sleep 0.02; done; mv " +
        away + " " + set + "; i=0; until grep -q clear.d/10 " + told +
        " || [ $i = 400 ]; do sleep 0.05; i=$((i + 1)); done; } 2> /dev/null | " + shell_command("-t 1") + "; exit $?");
    EXPECT_EQ(result.exit_status, 0);
    EXPECT_EQ(result.output, "");
    EXPECT_EQ(runbook_.text("ran"), "on-open.d/10 n\nclear.d/10 m\n");
    EXPECT_EQ(marks(), 1U) << "that of n, which is out";
}

TEST_F(RunbookAnew, TheStandbyIsSwitchedOff) {
    runbook_.program("bin/curl", "cat >> $T/asked; echo '?b=app&nonce=1-2 Edit worker settings for'");
    for (const char* folder : {"on-open.d", "on-closed.d", "clear.d"})
        runbook_.ready_program("switch-standby", folder);
    runbook_.configure("PATH=" + runbook_.path("bin").string() +
                       ":$PATH\nSTANDBY_MANAGER=http://h/\nSTANDBY_MEMBER=s\nSTANDBY_BALANCER=app\n");
    const auto asked = [&](const CommandResult& result) {
        EXPECT_EQ(result.output, "");
        const std::string text = runbook_.text("asked");
        std::filesystem::remove(runbook_.path("asked"));
        const std::size_t last = text.rfind("w_status_D=");
        return last != std::string::npos ? text.substr(last, std::string("w_status_D=1").size()) : "";
    };
    const auto event_of_app = [](const std::string& vhost, const std::string& to) {
        return replaced(event_of(vhost, "m", to), "\"b\"", "\"balancer://app\"");
    };
    EXPECT_EQ(asked(run(event_of_app("one", "open") + event_of_app("two", "open"))), "w_status_D=0");
    EXPECT_EQ(asked(run(event_of_app("one", "closed"))), "w_status_D=0") << "it is out in the other virtual host";
    EXPECT_EQ(asked(run(event_of_app("two", "closed"))), "w_status_D=1");
    EXPECT_EQ(asked(run(event_of_app("one", "open"))), "w_status_D=0");
    EXPECT_EQ(asked(run("")), "") << "a graceful restart";
    EXPECT_EQ(asked(run_anew("")), "w_status_D=1");
}

class RunbookAnewOfHttpd : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, RunbookAnewOfHttpd, any_mpm, mpm_name);

TEST_P(RunbookAnewOfHttpd, WhatWasSetBeforeAStopIsClearedAtTheStart) {
    Backend app("app");
    const Runbook runbook;
    for (const char* program : {"on-open.d/10", "on-reset.d/10", "clear.d/10"})
        runbook.program(program, noting);
    Httpd httpd(site(std::string(quick_policy) + long_open + runbook.directive(), plain_worker(app)));
    httpd.start();
    fail_three_times(httpd, app, "/app/x");
    ASSERT_TRUE(runbook.wait_for_lines("ran", 1)) << httpd.describe();
    httpd.stop();
    httpd.start();
    ASSERT_TRUE(runbook.wait_for_lines("ran", 2)) << httpd.describe();
    EXPECT_EQ(runbook.text("ran"), "on-open.d/10 " + app.member() + "\nclear.d/10 " + app.member() + "\n");
    EXPECT_TRUE(httpd.error_lines_with("circuitbreaker-runbook").empty()) << httpd.describe();
}

}  // namespace
}  // namespace cb::test
