// The runbook: from a trip through the pipe to the programs of its folders, and what becomes of those that hang, crash,
// or come too thick.
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "events.hpp"
#include "metrics_page.hpp"
#include "pages.hpp"
#include "restarts.hpp"
#include "runbook.hpp"

namespace cb::test {
namespace {

const std::string policy = std::string(quick_policy) + long_open;

class RunbookTest : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, RunbookTest, any_mpm, mpm_name);

TEST_P(RunbookTest, ATripReachesEverybodyWhoIsToBeTold) {
    Backend app("app");
    Backend sink("sink");
    sink.answer(Reply::ok("{\"errcode\": 0, \"code\": 0}"));
    const Runbook runbook;
    for (const char* name : {"webhook", "slack", "dingtalk", "feishu", "mail"})
        runbook.ready_program(name, "on-open.d");
    runbook.program("sendmail", "printf '%s ' \"$@\" > $T/arguments; cat > $T/mail.part; mv $T/mail.part $T/mail");
    runbook.configure(
        "WEBHOOK_URL='" + sink.url("/webhook?a=1&b=\"x\"") +
        "'\nWEBHOOK_HEADER='Authorization: Bearer \"s\"'\nSLACK_URL=" + sink.url("/slack") + "\nDINGTALK_URL='" +
        sink.url("/dingtalk?access_token=t") + "'\nDINGTALK_SECRET=secret\nFEISHU_URL=" + sink.url("/feishu") +
        "\nFEISHU_SECRET=secret\nMAIL_TO=ops@example.com\nSENDMAIL=" + runbook.path("sendmail").string() + "\n");
    // A name that would do harm wherever it were evaluated.
    const std::string hostile = R"-(x'\"$(touch harm)`touch harm`;touch harm<!channel>&%s\\)-";
    Httpd httpd(site(policy + runbook.directive(), "<Proxy \"balancer://" + hostile + "\">\n" + member_line(app) +
                                                       "</Proxy>\nProxyPass /app \"balancer://" + hostile + "/\"\n"));
    httpd.start();
    fail_three_times(httpd, app, "/app/x");
    ASSERT_TRUE(sink.wait_for_requests(4)) << httpd.describe();
    ASSERT_TRUE(runbook.wait_for_lines("mail", 1)) << httpd.describe();

    std::map<std::string, Request> by_path;
    for (const Request& request : sink.log())
        by_path[request.path] = request;
    ASSERT_EQ(by_path.size(), 4U) << httpd.describe();
    const std::string balancer = R"-(balancer://x'"$(touch harm)`touch harm`;touch harm<!channel>&%s\)-";
    const Event event(by_path["/webhook"].body);
    EXPECT_EQ(by_path["/webhook"].method, "POST");
    EXPECT_EQ(by_path["/webhook"].target, "/webhook?a=1&b=\"x\"");
    EXPECT_EQ(by_path["/webhook"].headers.get("Authorization"), "Bearer \"s\"");
    EXPECT_EQ(by_path["/webhook"].headers.get("Content-Type"), "application/json");
    EXPECT_EQ(event.text("event"), "transition");
    EXPECT_EQ(event.text("to"), "open");
    EXPECT_EQ(event.text("balancer"), balancer);
    EXPECT_EQ(event.text("member"), app.member());
    EXPECT_EQ(event.list("recent").size(), 3U);
    const std::string text =
        "circuit breaker: " + app.member() + " of " + balancer +
        ": closed -> open: consecutive failures, 3 of 3 calls failed; next probe in 600.0 s (level 0)";
    const std::string for_slack = replaced(replaced(replaced(text, "&", "&amp;"), "<", "&lt;"), ">", "&gt;");
    EXPECT_EQ(Event(by_path["/slack"].body).text("text"), for_slack);
    const Event dingtalk(by_path["/dingtalk"].body);
    EXPECT_EQ(dingtalk.text("msgtype"), "text");
    EXPECT_NE(dingtalk.line().find("closed -> open"), std::string::npos);
    const std::string signed_target = "(^/dingtalk\\?access_token=t&timestamp=\\d{13}&sign=[0-9A-Za-z%]+%3D$)";
    EXPECT_EQ(first_match(by_path["/dingtalk"].target, signed_target), by_path["/dingtalk"].target)
        << by_path["/dingtalk"].target;
    const Event feishu(by_path["/feishu"].body);
    EXPECT_EQ(feishu.text("msg_type"), "text");
    EXPECT_EQ(feishu.text("sign").size(), 44U) << "a SHA-256 in base64";
    EXPECT_NE(feishu.line().find("closed -> open"), std::string::npos);
    const std::string mail = runbook.text("mail");
    EXPECT_TRUE(
        mail.starts_with("To: ops@example.com\nFrom: circuitbreaker\nSubject: circuit breaker: " + app.member()))
        << mail;
    EXPECT_NE(mail.find("\n\n" + text + "\n\n{\"time\":"), std::string::npos) << mail;
    EXPECT_EQ(runbook.text("arguments"), "-t -i ");
    EXPECT_FALSE(std::filesystem::exists(httpd.root() / "harm")) << "that is where the programs run";
    EXPECT_TRUE(httpd.error_lines_with("circuitbreaker-runbook").empty()) << httpd.describe();
}

TEST_P(RunbookTest, EachEventHasItsFolderAndItsEnvironment) {
    Backend app("app");
    const Runbook runbook;
    for (const char* folder : {"on-open.d", "on-half-open.d", "on-closed.d"}) {
        runbook.program(
            folder + std::string("/10"),
            "printf '%s %s->%s %s level=%s calls=%s rate=%s probes=%s %s\\n' \"$CB_EVENT\" \"$CB_FROM\" \"$CB_TO\" "
            "\"$CB_MEMBER\" "
            "\"$CB_LEVEL\" \"$CB_CALLS\" \"$CB_FAILURE_RATE\" \"$CB_PROBES_SUCCEEDED\" \"${CB_OTHER-clean}\" >> "
            "$T/told; cat >> $T/read");
    }
    HttpdOptions options = site(quick_policy + runbook.directive(), plain_worker(app));
    options.environment = {{"CB_OTHER", "not of the event"}, {"CB_MEMBER", "nor this"}};
    Httpd httpd(options);
    httpd.start();
    fail_three_times(httpd, app, "/app/x");
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    app.answer_as_usual();
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "200");
    ASSERT_TRUE(runbook.wait_for_lines("read", 3)) << httpd.describe();
    EXPECT_EQ(runbook.text("told"),
              "transition closed->open " + app.member() + " level=0 calls=3 rate=100.0 probes=0 clean\n" +
                  "transition open->half-open " + app.member() + " level=0 calls=0 rate=0.0 probes=0 clean\n" +
                  "transition half-open->closed " + app.member() + " level=0 calls=0 rate=0.0 probes=1 clean\n");
    EXPECT_EQ(summary(read_events(runbook.path("read"))),
              (std::vector<std::string>{"closed -> open", "open -> half-open", "half-open -> closed"}));
}

TEST_P(RunbookTest, AProgramThatHangsCrashesOrCantRunIsSaidAndTheOthersRun) {
    Backend app("app");
    const Runbook runbook;
    runbook.program("on-open.d/10-hangs", "sleep 60 & echo $! $$ > $T/pids; wait");
    runbook.program("on-open.d/20-fails", "exit 7");
    runbook.program("on-open.d/30-crashes", "kill -9 $$");
    runbook.program("on-open.d/40-not-executable", "echo x >> $T/wrong", false);
    runbook.program("on-open.d/.hidden", "echo x >> $T/wrong");
    runbook.program("on-open.d/50-backup~", "echo x >> $T/wrong");
    runbook.program("on-open.d/60-leaves-one-behind", "sleep 60 > /dev/null 2>&1 & echo $! > $T/left");
    runbook.program("on-open.d/70-well", "echo well >> $T/last");
    Httpd httpd(site(policy + runbook.directive("-t 2"), plain_worker(app)));
    httpd.start();
    fail_three_times(httpd, app, "/app/x");
    ASSERT_TRUE(runbook.wait_for_lines("last", 1)) << httpd.describe();
    const auto said = [&](const std::string& program, const std::string& what) {
        return httpd.error_lines_with("/" + program + ": " + what + " (member " + app.member() + ", ").size();
    };
    EXPECT_EQ(said("10-hangs", "killed after 2 s"), 1U) << httpd.describe();
    EXPECT_EQ(said("20-fails", "exit status 7"), 1U);
    EXPECT_EQ(said("30-crashes", "killed by signal 9"), 1U);
    EXPECT_EQ(said("40-not-executable", "can't be run: Permission denied"), 1U);
    EXPECT_EQ(httpd.error_lines_with("4 failed so far").size(), 1U) << "counted";
    EXPECT_EQ(runbook.text("wrong"), "");
    std::istringstream pids(runbook.text("pids") + runbook.text("left"));
    int count = 0;
    for (pid_t pid = 0; pids >> pid; ++count) {
        EXPECT_TRUE(wait_until([&, pid] { return !process_info(pid) || process_info(pid)->state == 'Z'; }, patience,
                               "the end of it"))
            << "the whole process group is ended";
    }
    EXPECT_EQ(count, 3);
}

TEST_P(RunbookTest, MembersSideBySideButOneMembersEventsInTurnAlsoOverAGracefulRestart) {
    Backend one("one");
    Backend two("two");
    const Runbook runbook;
    runbook.program("on-open.d/10",
                    "echo open $CB_MEMBER >> $T/begun; until [ -e $T/go ]; do sleep 0.02; done; echo open >> $T/done");
    runbook.program(
        "on-half-open.d/10",
        "[ -e $T/go ] || echo x >> $T/early; echo half-open $CB_MEMBER >> $T/begun; echo half-open >> $T/done");
    runbook.program("on-closed.d/10",
                    "[ -e $T/go ] || echo x >> $T/early; echo closed $CB_MEMBER >> $T/begun; echo closed >> $T/done");
    Httpd httpd(site(quick_policy + runbook.directive(),
                     "ProxyPass /one " + one.member() + "\nProxyPass /two " + two.member() + "\n"));
    httpd.start();
    fail_three_times(httpd, one, "/one/x");
    fail_three_times(httpd, two, "/two/x");
    ASSERT_TRUE(runbook.wait_for_lines("begun", 2)) << "side by side";
    one.answer_as_usual();
    two.answer_as_usual();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, one));
    EXPECT_EQ(statuses(1, httpd.url("/one/x")), "200");
    ASSERT_TRUE(graceful_to_the_end(httpd)) << "another runner, while the first has one at work";
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, two));
    EXPECT_EQ(statuses(1, httpd.url("/two/x")), "200");
    ASSERT_TRUE(wait_for_state(httpd, two, "closed"));
    EXPECT_EQ(runbook.text("done"), "");
    runbook.create("go");
    ASSERT_TRUE(runbook.wait_for_lines("done", 6)) << runbook.text("begun") << httpd.describe();
    for (const Backend* backend : {&one, &two}) {
        std::string order;
        std::istringstream lines(runbook.text("begun"));
        for (std::string what, member; lines >> what >> member;)
            order += member == backend->member() ? what + " " : "";
        EXPECT_EQ(order, "open half-open closed ");
    }
    EXPECT_EQ(runbook.text("early"), "") << "nothing of a member before its last is done, in the new runner either";
}

/// Its programs' processes, by the parent's process table.
pid_t runner_of(const Httpd& httpd) {
    for (const ProcessInfo& process : all_processes()) {
        if (process.parent == httpd.parent() && process.name == "circuitbreaker-" && process.state != 'Z')
            return process.pid;
    }
    return 0;
}

TEST_P(RunbookTest, ARunnerThatStandsStillOrDiesLosesNoEventSilently) {
    Backend app("app");
    const Runbook runbook;
    runbook.program("on-open.d/10", "echo open >> $T/done");
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerOpenTime 100ms factor=1 jitter=0\n" + metrics_location +
                         runbook.directive(),
                     plain_worker(app)));
    httpd.start();
    ASSERT_TRUE(wait_until([&] { return runner_of(httpd) != 0; }, patience, "the runner"));
    const pid_t runner = runner_of(httpd);
    ::kill(runner, SIGSTOP);
    {
        const Socket pipe(
            ::open(("/proc/" + std::to_string(runner) + "/fd/0").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
        ASSERT_TRUE(pipe.valid());
        ASSERT_GE(::fcntl(pipe.fd(), F_SETPIPE_SZ, 4096), 0);
    }
    app.answer(Reply::status(502));
    const auto lost = [&] { return MetricsPage(httpd).series().at("httpd_circuitbreaker_events_lost_total"); };
    ASSERT_TRUE(wait_until(
        [&] {
            (void)get(httpd.url("/app/x"));
            return lost() >= 3;
        },
        patience, "lost events"));
    EXPECT_GE(httpd.error_lines_with("event log does not take").size(), 1U) << httpd.describe();
    EXPECT_EQ(runbook.text("done"), "");
    ::kill(runner, SIGKILL);
    ASSERT_TRUE(httpd.wait_for_error_line("failed unexpectedly"));
    ASSERT_TRUE(runbook.wait_for_lines("done", 1)) << "httpd starts another, which takes what is still in the pipe";
    ASSERT_TRUE(wait_until(
        [&] {
            (void)get(httpd.url("/app/x"));
            return !httpd.error_lines_with("takes its lines again").empty();
        },
        patience, "the end of the spell"));
}

// --- the runner alone ---

TEST_F(RunnerAlone, DoesWhatIsLeftAtTheEndOfItsInput) {
    runbook_.program("on-open.d/10", "sleep 0.1; echo \"$CB_MEMBER\" >> $T/done");
    const CommandResult result = run(event("m") + event("m") + event("n"));
    EXPECT_EQ(result.exit_status, 0) << result.output;
    EXPECT_EQ(result.output, "");
    const std::string done = runbook_.text("done");
    EXPECT_EQ(std::count(done.begin(), done.end(), '\n'), 3);
}

TEST_F(RunnerAlone, LetsNoEventWaitThatNoProgramIsFor) {
    runbook_.program("on-open.d/10", "until [ -e $T/go ]; do sleep 0.02; done; echo x >> $T/done");
    std::string lines = event("m");
    for (int i = 0; i < 10; ++i)
        lines += "{\"event\":\"probe\",\"balancer\":\"b\",\"member\":\"m\"}\n";
    runbook_.create("go");
    const CommandResult result = run(lines + event("m"), "-q 2");
    EXPECT_EQ(result.output, "");
    EXPECT_EQ(runbook_.text("done"), "x\nx\n");
}

TEST_F(RunnerAlone, BoundsWhatWaitsAndSaysWhatItDrops) {
    runbook_.program("on-open.d/10", "until [ -e $T/go ]; do sleep 0.02; done; echo x >> $T/done");
    std::string lines;
    for (int i = 0; i < 10; ++i)
        lines += event("m");
    runbook_.create("go");
    const CommandResult result = run(lines, "-q 4");
    EXPECT_EQ(result.exit_status, 0);
    EXPECT_EQ(result.output,
              "circuitbreaker-runbook: 4 events wait: further ones are dropped until that gets better\n"
              "circuitbreaker-runbook: fewer events wait; 6 were dropped\n");
    EXPECT_EQ(runbook_.text("done"), "x\nx\nx\nx\n");
}

TEST_F(RunnerAlone, SaysWhichLinesAreNoEventsAndGoesOn) {
    runbook_.program("on-open.d/10", "echo x >> $T/done");
    runbook_.program("harm/10", "echo x >> $T/harm-done");
    const CommandResult result =
        run("no JSON\n[]\n{}\n" + event("m", "../harm") + event("m", "OPEN") + "\n" + event("m") + "half a line");
    EXPECT_EQ(result.exit_status, 0);
    EXPECT_NE(result.output.find("a line is no event (5 dropped so far)"), std::string::npos) << result.output;
    EXPECT_EQ(runbook_.text("done"), "x\n");
    EXPECT_EQ(runbook_.text("harm-done"), "");
}

TEST_F(RunnerAlone, SaysThatALineIsTooLongHoweverItComesAndGoesOn) {
    runbook_.program("on-open.d/10", "echo \"$CB_MEMBER\" >> $T/done");
    // Read in pieces; its second piece is longer than a pipe has room for, and no event of its own either.
    const CommandResult result = run(std::string(130'000, ' ') + event("long") + event("m"));
    EXPECT_EQ(result.exit_status, 0);
    EXPECT_EQ(result.output, "circuitbreaker-runbook: a line is too long: it is no event (1 dropped so far)\n");
    EXPECT_EQ(runbook_.text("done"), "m\n");
}

TEST_F(RunnerAlone, ShowsNoSecretOnACommandLine) {
    // Each of them by way of programs that note how they were called.
    runbook_.program("bin/curl", "echo \"curl $*\" >> $T/called; cat > /dev/null; echo '{\"errcode\":0,\"code\":0}'");
    runbook_.program("bin/openssl", "echo \"openssl $*\" >> $T/called; exec /usr/bin/openssl \"$@\"");
    for (const char* name : {"webhook", "slack", "dingtalk", "feishu", "switch-standby"})
        runbook_.ready_program(name, "on-open.d");
    runbook_.configure("PATH=" + runbook_.path("bin").string() +
                       ":$PATH\nSLACK_URL=http://secret/\nDINGTALK_URL=http://secret/\nDINGTALK_SECRET=secret\n"
                       "FEISHU_URL=http://secret/\nFEISHU_SECRET=secret\nWEBHOOK_URL=http://secret/\n"
                       "WEBHOOK_HEADER=secret\nSTANDBY_MANAGER=http://u:secret@h/\nSTANDBY_MEMBER=s\n"
                       "STANDBY_BALANCER=app\n");
    (void)run(
        "{\"event\":\"transition\",\"balancer\":\"balancer://app\",\"member\":\"m\",\"to\":\"open\","
        "\"recent\":[{\"path\":\"/secret\"}]}\n");
    const std::string called = runbook_.text("called");
    EXPECT_EQ(std::count(called.begin(), called.end(), '\n'), 9) << called;
    EXPECT_EQ(called.find("secret"), std::string::npos) << called;
}

TEST_F(RunnerAlone, SwitchesTheStandbyOffWhateverAnEarlierServerOfTheSamePidHasLeft) {
    runbook_.program("on-closed.d/10-left", "mkdir -p $T/state/out.$CB_SERVER; echo > $T/state/out.$CB_SERVER/member");
    runbook_.program("bin/curl", "cat >> $T/asked; echo '?b=app&nonce=1-2 Edit worker settings for'");
    runbook_.ready_program("switch-standby", "on-closed.d");
    runbook_.configure("PATH=" + runbook_.path("bin").string() +
                       ":$PATH\nSTANDBY_MANAGER=http://h/\nSTANDBY_MEMBER=s\nSTANDBY_BALANCER=app\n");
    EXPECT_EQ(
        run("{\"event\":\"transition\",\"balancer\":\"balancer://app\",\"member\":\"m\",\"to\":\"closed\"}\n").output,
        "");
    EXPECT_NE(runbook_.text("asked").find("w_status_D=1"), std::string::npos) << runbook_.text("asked");
}

TEST_F(RunnerAlone, SaysThatALinkLeadsNowhere) {
    std::filesystem::create_directories(runbook_.path("on-open.d/folder"));
    std::filesystem::create_symlink("/no/such/program", runbook_.path("on-open.d/50-slak"));
    EXPECT_EQ(run(event("m")).output, "circuitbreaker-runbook: " + runbook_.path("on-open.d/50-slak").string() +
                                          ": can't be run: No such file or directory (member m, 1 failed so far)\n");
}

TEST_F(RunnerAlone, SaysThatAFolderCannotBeReadButNeedsNotAllOfThem) {
    EXPECT_EQ(run(event("m", "closed")).output, "");
    std::ofstream(runbook_.path("on-open.d")) << "no folder\n";
    EXPECT_EQ(run(event("m")).output, "circuitbreaker-runbook: can't read " + runbook_.path("on-open.d").string() +
                                          ": Not a directory (1 dropped so far)\n");
    const CommandResult result =
        run_command({.argv = {"sh", "-c",
                              "echo '" + event("m") + "' | " + runner() + " -l '' -s " +
                                  runbook_.path("marks").string() + " " + runbook_.path("gone").string()}},
                    30s);
    EXPECT_EQ(result.output, "circuitbreaker-runbook: can't read " + runbook_.path("gone").string() +
                                 ": No such file or directory; no program runs until that gets better\n"
                                 "circuitbreaker-runbook: can't read " +
                                 runbook_.path("gone").string() +
                                 "/on-open.d: No such file or directory (1 dropped so far)\n");
}

TEST_F(RunnerAlone, EndsThoughAProgramWouldNot) {
    runbook_.program("on-open.d/10", "trap '' TERM; echo $$ > $T/pid; while :; do sleep 0.1; done");
    const CommandResult result = run(event("m"), "-t 2");
    EXPECT_EQ(result.exit_status, 0) << "killed within its limit";
    EXPECT_NE(result.output.find("killed after 2 s"), std::string::npos) << result.output;
    EXPECT_FALSE(process_info(std::stoi(runbook_.text("pid"))));
}

TEST_F(RunnerAlone, RefusesWrongOptions) {
    for (const char* options : {"-t 0", "-t x", "-j 0", "-q -1", "-x", "one-directory-more"}) {
        const CommandResult result = run("", options);
        EXPECT_EQ(result.exit_status, 2) << options;
        EXPECT_NE(result.output.find("usage: "), std::string::npos);
    }
}

}  // namespace
}  // namespace cb::test
