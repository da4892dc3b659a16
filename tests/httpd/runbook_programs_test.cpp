// The ready programs of the runbook that act on this machine: the standby, the snapshot of the logs, scaling out; and
// robots that say no with a 200.
#include "events.hpp"
#include "runbook.hpp"

namespace cb::test {
namespace {

const std::string policy = std::string(quick_policy) + long_open;

TEST(RunbookPrograms, AStandbyIsSwitchedOnWhileAnyMemberIsOutAndOffWhenAllAreWell) {
    Backend one("one");
    Backend two("two");
    Backend standby("standby");
    const Runbook runbook;
    for (const char* folder : {"on-open.d", "on-half-open.d", "on-closed.d"})
        runbook.ready_program("switch-standby", folder);
    for (const char* folder : {"on-open.d", "on-closed.d"})
        runbook.program(folder + std::string("/90-tell"), "echo $CB_TO >> $T/told");
    // Two members of which each answers for itself only, by route; with nofailover, so that both can be tripped.
    const auto member = [](const Backend& backend, const std::string& more = "") {
        return member_line(backend, "route=" + backend.name() + more);
    };
    Httpd httpd(site(Mpm::event,
                     std::string(quick_policy) + runbook.directive() +
                         "ProxyPass /balancer-manager !\n<Location /balancer-manager>\n    SetHandler "
                         "balancer-manager\n</Location>\n",
                     balancer_of(member(one) + member(two) + member(standby, " status=+D") +
                                 "    ProxySet stickysession=S nofailover=On\n") +
                         // Its name begins with the other's: the program must find the right nonce.
                         "<Proxy balancer://app2>\n" + member_line(one) + "    ProxySet nonce=other\n</Proxy>\n"));
    const std::string manager = httpd.url("/balancer-manager");
    runbook.configure("STANDBY_MANAGER=" + manager + "\nSTANDBY_BALANCER=app\nSTANDBY_MEMBER=" + standby.member() +
                      "\n");
    httpd.start();
    const auto ask = [&](const Backend& backend) {
        return get(httpd.url("/app/x"), {.cookie = "S=1." + backend.name()}).status;
    };
    const auto is_on = [&] { return ask(standby) == 200; };
    EXPECT_FALSE(is_on());
    const auto trip_one = [&](Backend& backend) {
        backend.answer(Reply::status(502));
        for (int i = 0; i < 3; ++i)
            EXPECT_EQ(ask(backend), 502);
        backend.answer_as_usual();
    };
    const auto recover = [&](const Backend& backend) {
        const auto is_well = [&] {
            return ask(backend) == 200 &&
                   BreakerPage(httpd).member(backend.member(), "balancer://app").at("State") == "closed";
        };
        EXPECT_TRUE(wait_until(is_well, patience, backend.name() + " to recover"));
    };
    trip_one(one);
    trip_one(two);
    ASSERT_TRUE(runbook.wait_for_lines("told", 2)) << httpd.describe();
    EXPECT_TRUE(is_on()) << httpd.describe();
    recover(one);
    ASSERT_TRUE(runbook.wait_for_lines("told", 3));
    EXPECT_TRUE(is_on()) << "the other one is still out\n" << httpd.describe();
    recover(two);
    ASSERT_TRUE(runbook.wait_for_lines("told", 4));
    EXPECT_FALSE(is_on()) << httpd.describe();
    EXPECT_TRUE(httpd.error_lines_with("circuitbreaker-runbook").empty()) << httpd.describe();

    runbook.configure("STANDBY_MANAGER=" + manager + "\nSTANDBY_BALANCER=app\nSTANDBY_MEMBER=http://no.such:1\n");
    trip_one(one);
    EXPECT_TRUE(httpd.wait_for_error_line("50-switch-standby: exit status 1")) << httpd.describe();
    EXPECT_EQ(httpd.error_lines_with("did not take the change of http://no.such:1").size(), 1U);
}

TEST(RunbookPrograms, ASnapshotHasTheEventAndTheEndOfTheLogs) {
    Backend app("app");
    const Runbook runbook;
    runbook.ready_program("log-snapshot", "on-open.d");
    runbook.program("on-open.d/90-tell", "echo >> $T/told");
    Httpd httpd(site(Mpm::event, policy + runbook.directive(), plain_worker(app)));
    runbook.configure("SNAPSHOT_LOGS='" + (httpd.root() / "error.log").string() + " " +
                      (httpd.root() / "access.log").string() + "'\nSNAPSHOT_FOLDER='" +
                      runbook.path("snapshots").string() + "'\nSNAPSHOT_LINES=5\nSNAPSHOT_KEEP=2\n");
    for (const char* old : {"20200101T000000.000Z-a-open", "20210101T000000.000Z-b-open", "other-folder"})
        std::filesystem::create_directories(runbook.path("snapshots") / old);
    httpd.start();
    EXPECT_EQ(statuses(9, httpd.url("/app/before")), "200 200 200 200 200 200 200 200 200");
    app.answer(Reply::status(502));
    EXPECT_EQ(statuses(2, httpd.url("/app/x")), "502 502");
    ASSERT_TRUE(httpd.wait_for_access_line("path=/app/x ", 2)) << "before the snapshot is made";
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "502");
    ASSERT_TRUE(runbook.wait_for_lines("told", 1)) << httpd.describe();
    std::vector<std::filesystem::path> snapshots;
    for (const auto& entry : std::filesystem::directory_iterator(runbook.path("snapshots")))
        snapshots.push_back(entry.path());
    std::sort(snapshots.begin(), snapshots.end());
    ASSERT_EQ(snapshots.size(), 3U) << "the oldest has gone, a folder of somebody else's has not";
    EXPECT_EQ(snapshots[0].filename(), "20210101T000000.000Z-b-open");
    EXPECT_EQ(snapshots[2].filename(), "other-folder");
    EXPECT_EQ(summary(read_events(snapshots[1] / "event.json")), std::vector<std::string>{"closed -> open"});
    EXPECT_NE(read_file(snapshots[1] / "error.log").find("closed -> open"), std::string::npos);
    const std::string access = read_file(snapshots[1] / "access.log");
    EXPECT_NE(access.find("path=/app/x "), std::string::npos) << access;
    EXPECT_LE(std::count(access.begin(), access.end(), '\n'), 5);
    EXPECT_TRUE(httpd.error_lines_with("circuitbreaker-runbook").empty()) << httpd.describe();
}

TEST(RunbookPrograms, ScalesOutOnceForManyTripsAndAgainAfterAFailure) {
    Backend one("one");
    Backend two("two");
    Backend three("three");
    const Runbook runbook;
    runbook.ready_program("scale-out", "on-open.d");
    runbook.program("on-open.d/90-tell", "echo >> $T/told");
    runbook.program("one-more", "echo $CB_MEMBER >> $T/scaled; [ -e $T/works ]");
    runbook.configure("SCALE_OUT_COMMAND=" + runbook.path("one-more").string() + "\n");
    Httpd httpd(site(Mpm::event, policy + runbook.directive(),
                     "ProxyPass /one " + one.member() + "\nProxyPass /two " + two.member() + "\nProxyPass /three " +
                         three.member() + "\n"));
    httpd.start();
    const auto exhaust = [&](Backend& backend, const std::string& path) {
        backend.answer(Reply::status(503));
        EXPECT_EQ(statuses(3, httpd.url(path)), "503 503 503");
    };
    exhaust(one, "/one/x");
    ASSERT_TRUE(runbook.wait_for_lines("told", 1));
    EXPECT_TRUE(httpd.wait_for_error_line("50-scale-out: exit status 1")) << httpd.describe();
    runbook.create("works");
    exhaust(two, "/two/x");
    ASSERT_TRUE(runbook.wait_for_lines("told", 2));
    exhaust(three, "/three/x");
    ASSERT_TRUE(runbook.wait_for_lines("told", 3));
    EXPECT_EQ(runbook.text("scaled"), one.member() + "\n" + two.member() + "\n") << "not so soon after the last one";
}

TEST(RunbookPrograms, RobotsThatSayNoWithA200AndWhatIsNotConfiguredAreFailures) {
    Backend app("app");
    Backend sink("sink");
    sink.answer(Reply::ok("{\"errcode\":310000,\"code\":19021,\"msg\":\"sign not match\"}"));
    const Runbook runbook;
    for (const char* name : {"webhook", "dingtalk", "feishu", "slack"})
        runbook.ready_program(name, "on-open.d");
    runbook.configure("DINGTALK_URL=" + sink.url("/d?x") + "\nFEISHU_URL=" + sink.url("/f") +
                      "\nSLACK_URL=" + sink.url("/missing") + "\n");
    sink.answer_path("/missing", Reply::status(404));
    Httpd httpd(site(Mpm::event, policy + runbook.directive(), plain_worker(app)));
    httpd.start();
    fail_three_times(httpd, app, "/app/x");
    for (const char* name : {"50-webhook", "50-dingtalk", "50-feishu", "50-slack"})
        EXPECT_TRUE(httpd.wait_for_error_line(std::string(name) + ": exit status ")) << httpd.describe();
    EXPECT_EQ(httpd.error_lines_with("sign not match").size(), 2U) << httpd.describe();
    EXPECT_EQ(httpd.error_lines_with("WEBHOOK_URL: is not set in " + runbook.path("runbook.conf").string()).size(), 1U);
    EXPECT_EQ(sink.requests_for("/missing"), 1U) << "trying again would not help";
}

TEST(RunbookPrograms, AWebhookThatIsAwayForAMomentIsTriedAgain) {
    Backend app("app");
    Backend sink("sink");
    sink.answer_next(1, Reply::status(503));
    const Runbook runbook;
    runbook.ready_program("webhook", "on-open.d");
    runbook.configure("WEBHOOK_URL=" + sink.url("/hook") + "\n");
    Httpd httpd(site(Mpm::event, policy + runbook.directive(), plain_worker(app)));
    httpd.start();
    fail_three_times(httpd, app, "/app/x");
    ASSERT_TRUE(sink.wait_for_requests(2)) << httpd.describe();
    EXPECT_EQ(Event(sink.last_request()->body).text("to"), "open");
}

}  // namespace
}  // namespace cb::test
