// What programs of an opening have set is cleared by clear.d's programs of the same names when the member is back.
#include "restarts.hpp"
#include "runbook_marks.hpp"

namespace cb::test {
namespace {

class RunbookClear : public NotingRunner {};

const std::string mark_of_m = "marks/set-fff1371912fb9590/cbf29ce484222325.10";  // balancer b, no virtual host

TEST_F(RunbookClear, RunsAfterTheFoldersOwnProgramsInTheOrderOfNamesAndOnce) {
    programs({"on-open.d/20", "on-open.d/10", "on-closed.d/90", "clear.d/10", "clear.d/20", "clear.d/30"});
    EXPECT_EQ(ran(event("m") + event("m") + event("m", "closed")),
              "on-open.d/10 m\non-open.d/20 m\non-open.d/10 m\non-open.d/20 m\non-closed.d/90 m\nclear.d/10 m\n"
              "clear.d/20 m\n")
        << "30 has set nothing";
    EXPECT_EQ(ran(event("m", "closed")), "on-closed.d/90 m\n") << "it is cleared";
    EXPECT_EQ(output_, "");
    EXPECT_EQ(marks(), 0U);
}

TEST_F(RunbookClear, RunsForEachWayInAndEachWayBackAndForThatMemberOnly) {
    programs({"on-open.d/10", "on-forced-open.d/10", "on-suppressed.d/10", "on-half-open.d/10", "clear.d/10"});
    const std::string reset = "{\"event\":\"reset\",\"balancer\":\"b\",\"member\":\"m\",\"reason\":\"r\"}\n";
    const std::string suppressed = "{\"event\":\"suppressed\",\"balancer\":\"b\",\"member\":\"m\",\"reason\":\"r\"}\n";
    for (const std::string& back : {event("m", "closed"), event("m", "forced-closed"), reset}) {
        EXPECT_EQ(ran(event("m") + event("n", "closed") + event("m", "half-open")),
                  "on-open.d/10 m\non-half-open.d/10 m\n");
        EXPECT_EQ(ran(back), "clear.d/10 m\n") << back;
    }
    EXPECT_EQ(ran(event("m", "forced-open") + event("m", "closed")), "on-forced-open.d/10 m\nclear.d/10 m\n");
    EXPECT_EQ(ran(suppressed + event("m", "half-open") + event("m", "closed")),
              "on-suppressed.d/10 m\non-half-open.d/10 m\n")
        << "these are no openings";
}

TEST_F(RunbookClear, IsOnlyForWhatHasSucceeded) {
    programs({"on-open.d/10", "on-open.d/20", "clear.d/10", "clear.d/20"});
    runbook_.program("on-open.d/30", noting, false);
    runbook_.program("on-open.d/40", "trap 'exit 0' TERM; sleep 60 & wait");
    programs({"clear.d/30", "clear.d/40"});
    ends_with("10", 1);
    EXPECT_EQ(ran(event("m") + event("m", "closed"), "-t 1"), "on-open.d/10 m\non-open.d/20 m\nclear.d/20 m\n");
    EXPECT_NE(output_.find("on-open.d/40: killed after 1 s"), std::string::npos) << output_;
}

TEST_F(RunbookClear, ThatFailsIsTriedAgainAndThatIsMissingIsForgotten) {
    programs({"on-open.d/10", "on-open.d/20", "clear.d/10"});
    EXPECT_EQ(ran(event("m")), "on-open.d/10 m\non-open.d/20 m\n");
    EXPECT_EQ(marks(), 2U);
    ends_with("10", 3);
    EXPECT_EQ(ran(event("m", "closed")), "clear.d/10 m\n");
    EXPECT_NE(output_.find("clear.d/10: exit status 3 (member m, 1 failed so far)"), std::string::npos) << output_;
    EXPECT_EQ(marks(), 1U) << "20 has no program that could clear it";
    programs({"clear.d/20"});
    ends_with("10", 0);
    EXPECT_EQ(ran(event("m", "closed")), "clear.d/10 m\n");
    EXPECT_EQ(marks(), 0U);
}

TEST_F(RunbookClear, NothingOfAnEventBecomesPartOfAPath) {
    programs({"on-open.d/10", "clear.d/10"});
    const std::string member = "../../x;\\\"$(touch harm)/" + std::string(1000, 'y');
    (void)ran(event(member));
    EXPECT_EQ(marks(), 1U);
    for (const auto& entry : std::filesystem::directory_iterator(runbook_.path("marks"))) {
        const std::string name = entry.path().filename().string();
        EXPECT_EQ(name.size(), std::string("set-").size() + 16U) << name;
        EXPECT_EQ(name.find_first_not_of("0123456789abcdef", 4), std::string::npos) << name;
        EXPECT_EQ(entry.status().permissions(), std::filesystem::perms::owner_all);
    }
    EXPECT_EQ(std::filesystem::status(runbook_.path("marks")).permissions(), std::filesystem::perms::owner_all);
    EXPECT_NE(ran(event(member, "closed")).find("clear.d/10 "), std::string::npos);
    EXPECT_EQ(marks(), 0U);
}

TEST_F(RunbookClear, MarksAreNamedByADocumentedHash) {
    // 64-bit FNV-1a of "b\nm" and of "", worked out elsewhere: a later version must find what this one has left.
    programs({"on-open.d/10"});
    (void)ran(event("m"));
    EXPECT_TRUE(std::filesystem::exists(runbook_.path(mark_of_m)));
}

TEST_F(RunbookClear, RemembersInMemoryIfItCannotInAFolderAndSaysSoOnce) {
    programs({"on-open.d/10", "clear.d/10"});
    std::ofstream(runbook_.path("marks")) << "no folder\n";
    EXPECT_EQ(ran(event("m") + event("n") + event("m", "closed")).size(),
              std::string("on-open.d/10 m\non-open.d/10 n\nclear.d/10 m\n").size());
    EXPECT_EQ(output_, "circuitbreaker-runbook: can't remember in " + runbook_.path("marks").string() +
                           " what programs have set: Not a directory; it is forgotten when httpd is restarted\n");
    std::filesystem::remove(runbook_.path("marks"));
    std::filesystem::create_directories(runbook_.path("marks"));
    std::filesystem::permissions(runbook_.path("marks"), std::filesystem::perms::all);
    EXPECT_EQ(ran(event("m") + event("m", "closed")), "on-open.d/10 m\nclear.d/10 m\n");
    EXPECT_NE(output_.find("can't remember"), std::string::npos) << "anybody may write there";
    EXPECT_EQ(marks(), 0U);
    const std::filesystem::path planted = runbook_.path(mark_of_m);
    std::filesystem::create_directories(planted.parent_path());
    std::ofstream{planted};
    EXPECT_EQ(ran(event("m", "closed")), "") << "nor is it believed what stands there";
}

TEST_F(RunbookClear, UnlinksNothingWhereOthersCouldHavePutALink) {
    programs({"on-open.d/10", "clear.d/10"});
    const std::filesystem::path folder = runbook_.path(mark_of_m).parent_path();
    const std::filesystem::path victim = runbook_.path("victim") / runbook_.path(mark_of_m).filename();
    std::filesystem::create_directories(folder.parent_path());
    std::filesystem::create_directories(victim.parent_path());
    std::ofstream{victim};
    std::filesystem::create_directory_symlink(victim.parent_path(), folder);
    for (const auto& rights : {std::filesystem::perms::all, std::filesystem::perms::owner_all}) {
        std::filesystem::permissions(runbook_.path("marks"), rights);
        EXPECT_EQ(ran(event("m") + event("m", "closed")), "on-open.d/10 m\nclear.d/10 m\n");
        EXPECT_TRUE(std::filesystem::exists(victim)) << "somebody else's file";
    }
}

TEST_F(RunbookClear, IsForOneVirtualHostWhileTheMembersBreakerInAnotherIsOpen) {
    programs({"on-open.d/10", "clear.d/10"});
    EXPECT_EQ(ran(event_of("one:80", "m") + event_of("two:80", "m")), "on-open.d/10 m\non-open.d/10 m\n");
    EXPECT_EQ(ran(event_of("one:80", "m", "closed")), "clear.d/10 m\n");
    EXPECT_EQ(marks(), 1U);
    EXPECT_EQ(ran(event_of("one:80", "m", "closed")), "");
    EXPECT_EQ(ran(event_of("two:80", "m", "closed")), "clear.d/10 m\n");
    EXPECT_EQ(marks(), 0U);
}

TEST_F(RunbookClear, IsForAnyVirtualHostIfHttpdsParentDoesNotKnowIt) {
    programs({"on-open.d/10", "clear.d/10"});
    for (const bool in_memory : {false, true}) {
        if (in_memory) std::filesystem::permissions(runbook_.path("marks"), std::filesystem::perms::all);
        const std::string set = "on-open.d/10 m\n";
        const std::string cleared = "clear.d/10 m\n";
        EXPECT_EQ(ran(event_of("", "m") + event_of("one:80", "m", "closed") + event_of("one:80", "m", "closed")),
                  set + cleared)
            << "its opening";
        EXPECT_EQ(ran(event_of("one:80", "m") + event_of("two:80", "m") + event_of("", "n", "closed") +
                      event_of("", "m", "closed") + event_of("two:80", "m", "closed")),
                  set + set + cleared)
            << "its closing, which clears once";
        EXPECT_EQ(marks(), 0U);
    }
}

class RunbookClearOfHttpd : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, RunbookClearOfHttpd, any_mpm, mpm_name);

TEST_P(RunbookClearOfHttpd, WhatWasSetBeforeAGracefulRestartIsClearedAfterIt) {
    Backend app("app");
    const Runbook runbook;
    for (const char* program : {"on-open.d/10", "clear.d/10"})
        runbook.program(program, noting);
    Httpd httpd(site(quick_policy + runbook.directive(), plain_worker(app)));
    httpd.start();
    fail_three_times(httpd, app, "/app/x");
    ASSERT_TRUE(runbook.wait_for_lines("ran", 1)) << httpd.describe();
    ASSERT_TRUE(graceful_to_the_end(httpd));
    app.answer_as_usual();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "200");
    ASSERT_TRUE(runbook.wait_for_lines("ran", 2)) << httpd.describe();
    EXPECT_EQ(runbook.text("ran"), "on-open.d/10 " + app.member() + "\nclear.d/10 " + app.member() + "\n");
    EXPECT_TRUE(httpd.error_lines_with("circuitbreaker-runbook").empty()) << httpd.describe();
}

TEST_P(RunbookClearOfHttpd, AProgramThatStillRunsDuringAGracefulRestartIsClearedAfterIt) {
    Backend app("app");
    const Runbook runbook;
    runbook.program("on-open.d/10",
                    "echo begun >> $T/ran; until [ -e $T/go ]; do sleep 0.02; done; echo set >> $T/ran");
    runbook.program("clear.d/10", "echo cleared >> $T/ran");
    Httpd httpd(site(quick_policy + runbook.directive(), plain_worker(app)));
    httpd.start();
    fail_three_times(httpd, app, "/app/x");
    ASSERT_TRUE(runbook.wait_for_lines("ran", 1)) << httpd.describe();
    ASSERT_TRUE(graceful_to_the_end(httpd)) << "another runner, while the first has one at work";
    app.answer_as_usual();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "200");
    ASSERT_TRUE(httpd.wait_for_error_line("half-open -> closed"));
    runbook.create("go");
    ASSERT_TRUE(runbook.wait_for_lines("ran", 3)) << runbook.text("ran") << httpd.describe();
    EXPECT_EQ(runbook.text("ran"), "begun\nset\ncleared\n");
}

}  // namespace
}  // namespace cb::test
