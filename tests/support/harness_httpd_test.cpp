// Proves Httpd on each MPM, with plain mod_proxy: no module under test is needed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "backend.hpp"
#include "http_client.hpp"
#include "httpd.hpp"
#include "load.hpp"

namespace cb::test {

void PrintTo(Mpm mpm, std::ostream* out);  // GoogleTest finds it by its name
void PrintTo(Mpm mpm, std::ostream* out) {
    *out << name_of(mpm);
}

namespace {

std::string balancer_of(const Backend& one, const Backend& two) {
    return "<Proxy balancer://app>\n  BalancerMember " + one.member() + "\n  BalancerMember " + two.member() +
           "\n</Proxy>\nProxyPass / balancer://app/\n";
}

class EachMpm : public testing::TestWithParam<Mpm> {
  protected:
    [[nodiscard]] static HttpdOptions plain(const std::string& config, unsigned children = 2) {
        return {.mpm = GetParam(), .config = config, .children = children, .circuitbreaker = false};
    }
};

INSTANTIATE_TEST_SUITE_P(Httpd, EachMpm, testing::Values(Mpm::prefork, Mpm::worker, Mpm::event),
                         [](const auto& mpm) { return name_of(mpm.param); });

TEST_P(EachMpm, StartsServesAndLeavesNothingBehind) {
    Backend app("app");
    std::filesystem::path root;
    pid_t parent = 0;
    {
        Httpd httpd(plain("ProxyPass /app " + app.member()));
        root = httpd.root();
        httpd.start();
        parent = httpd.parent();
        EXPECT_EQ(get(httpd.url("/app/x")).body, "app") << httpd.describe();
        EXPECT_EQ(app.requests(), 1U) << "starting must not have sent the backend anything";
        EXPECT_GE(processes_in_group(parent).size(), 3U);
        EXPECT_TRUE(httpd.wait_for_access_line("status=200 method=GET path=/app/x"));
        EXPECT_EQ(httpd.access_lines_with("pid=").size(), 1U) << httpd.access_log();

        EXPECT_EQ(httpd.stop(), 0);
        EXPECT_FALSE(httpd.running());
        EXPECT_TRUE(httpd.left_behind().empty());
        EXPECT_TRUE(processes_in_group(parent).empty());
        EXPECT_EQ(get(httpd.url()).code, CURLE_COULDNT_CONNECT);

        httpd.start();
        EXPECT_EQ(get(httpd.url("/app/x")).status, 200) << "it can be started again, on the same port";
        parent = httpd.parent();
    }
    EXPECT_TRUE(processes_in_group(parent).empty());
    EXPECT_FALSE(std::filesystem::exists(root));
}

TEST_P(EachMpm, BalancesOverTwoBackendsAndSurvivesOneThatRefuses) {
    Backend one("one");
    Backend two("two");
    Httpd httpd(plain(balancer_of(one, two)));
    httpd.start();
    const LoadResult both = load(httpd.url(), {.threads = 4, .requests_per_thread = 25});
    EXPECT_TRUE(both.all(200)) << both.describe();
    EXPECT_GT(both.from("one"), 20U);
    EXPECT_GT(both.from("two"), 20U);

    one.refuse();
    const LoadResult half = load(httpd.url(), {.threads = 4, .requests_per_thread = 25});
    EXPECT_TRUE(half.all(200)) << half.describe() << httpd.describe();
    EXPECT_EQ(half.from("two"), 100U);
    EXPECT_TRUE(httpd.wait_for_error_line("Connection refused"));
}

TEST_P(EachMpm, ReportsWhatABrokenBackendDoes) {
    Backend app;
    // Only a hang is to run into a timeout.
    Httpd httpd(
        plain("ProxyPass /hang " + app.member() + "/hang timeout=1\nProxyPass / " + app.member() + "/ retry=0"));
    httpd.start();
    app.answer_path("/reset", Reply::reset());
    app.answer_path("/hang", Reply::hang());
    app.answer_path("/half", Reply::half_header());
    app.answer_path("/cut", Reply::of_size(1'000'000).cut_after(10'000, Ending::reset));
    EXPECT_EQ(get(httpd.url("/reset")).status, 502);
    EXPECT_EQ(get(httpd.url("/hang")).status, 502) << "mod_proxy_http's answer to a timeout before the status line";
    EXPECT_EQ(get(httpd.url("/half")).status, 502);
    const Response cut = get(httpd.url("/cut"));
    EXPECT_EQ(cut.status, 200);
    EXPECT_FALSE(cut.complete());
    EXPECT_LE(cut.body.size(), 10'000U);
    app.refuse();
    EXPECT_EQ(get(httpd.url("/")).status, 503);
}

TEST_P(EachMpm, GracefulUnderLoadLosesNoRequest) {
    Backend one("one");
    Backend two("two");
    Httpd httpd(plain(balancer_of(one, two)));
    httpd.start();
    const pid_t parent = httpd.parent();
    BackgroundLoad load(httpd.url(), {.threads = 4, .keep_connections = false});
    for (int i = 0; i < 3; ++i) {
        const std::vector<pid_t> old = httpd.children();
        EXPECT_TRUE(load.wait_for_answers(50));
        EXPECT_TRUE(httpd.graceful()) << httpd.describe();
        EXPECT_TRUE(httpd.wait_for_end_of(old));
    }
    EXPECT_TRUE(load.wait_for_answers(50));
    const LoadResult result = load.finish();
    EXPECT_TRUE(result.all(200)) << result.describe() << httpd.describe();
    EXPECT_EQ(httpd.parent(), parent);
    EXPECT_EQ(httpd.stop(), 0);
    EXPECT_TRUE(httpd.left_behind().empty());
}

TEST_P(EachMpm, RestartsWithAnotherConfigurationWhileALongRequestRuns) {
    Backend one("one");
    Backend two("two");
    Httpd httpd(plain("ProxyPass / " + one.member() + "/"));
    httpd.start();
    one.answer(Reply::hang());
    auto long_one = get_later(httpd.url());
    EXPECT_TRUE(one.wait_for_concurrent(1));
    one.answer_as_usual();  // old children may still take new requests

    httpd.set_config("ProxyPass / " + two.member() + "/");
    EXPECT_TRUE(httpd.graceful());
    EXPECT_TRUE(wait_until([&] { return get(httpd.url()).backend() == "two"; }, patience, "the new configuration"));
    one.release();
    EXPECT_EQ(long_one.get().status, 200);

    httpd.set_config("Redirect 404 /");
    EXPECT_TRUE(httpd.restart());
    EXPECT_EQ(get(httpd.url()).status, 404);
}

TEST_P(EachMpm, ReplacesAChildThatIsKilled) {
    Httpd httpd(plain("", 4));
    httpd.start();
    ASSERT_TRUE(httpd.wait_for_children(4)) << httpd.describe();
    const std::vector<pid_t> before = httpd.children();
    EXPECT_TRUE(httpd.kill_child(before[0]));
    EXPECT_TRUE(httpd.wait_for_end_of({before[0]}));
    EXPECT_TRUE(wait_until([&] { return httpd.children().size() >= 3; }, patience, "enough children"));
    EXPECT_EQ(get(httpd.url("/nothing")).status, 404);
    EXPECT_FALSE(httpd.kill_child(before[0])) << "it is gone";
    EXPECT_FALSE(httpd.kill_child(::getpid())) << "it is no child of httpd";
    EXPECT_GT(httpd.parent_resident_kib(), 1000U);

    const pid_t parent = httpd.parent();
    httpd.kill_all();
    EXPECT_TRUE(processes_in_group(parent).empty());
    EXPECT_EQ(httpd.exit_status(), 128 + SIGKILL);
}

TEST_P(EachMpm, StopsSoonAlthoughARequestHangs) {
    Backend app;
    app.answer(Reply::hang());
    std::future<Response> hung;
    {
        Httpd httpd(plain("ProxyPass / " + app.member() + "/"));
        httpd.start();
        hung = get_later(httpd.url());
        EXPECT_TRUE(app.wait_for_concurrent(1));
    }
    const Response cut = hung.get();
    EXPECT_NE(cut.status, 200);
    EXPECT_NE(cut.code, CURLE_OPERATION_TIMEDOUT) << "the client's patience was at its end before httpd was";
    EXPECT_TRUE(app.wait_until_quiet());
}

TEST(Httpd, TestsAConfigurationWithoutAStart) {
    Httpd httpd({.config = "ProxyPass / http://127.0.0.1:1/", .circuitbreaker = false});
    const CommandResult good = httpd.config_test();
    EXPECT_EQ(good.exit_status, 0);
    EXPECT_NE(good.output.find("Syntax OK"), std::string::npos) << good.output;

    httpd.set_config("NoSuchDirective On");
    const CommandResult bad = httpd.config_test();
    EXPECT_EQ(bad.exit_status, 1);
    EXPECT_NE(bad.output.find("Invalid command 'NoSuchDirective'"), std::string::npos) << bad.output;
    EXPECT_FALSE(std::filesystem::exists(httpd.root() / "error.log")) << "nothing was started";
}

TEST(Httpd, ReportsWhyItDidNotStart) {
    Httpd httpd({.config = "NoSuchDirective On", .circuitbreaker = false});
    EXPECT_FALSE(httpd.try_start());
    EXPECT_EQ(httpd.exit_status(), 1);
    EXPECT_NE(httpd.console().find("Invalid command 'NoSuchDirective'"), std::string::npos) << httpd.describe();
    EXPECT_THROW(httpd.start(), std::runtime_error);
}

TEST(Httpd, LeavesOutAndAddsModules) {
    Httpd httpd(
        {.add_modules = {"rewrite"}, .leave_out_modules = {"proxy_balancer", "status"}, .circuitbreaker = false});
    const std::string modules = httpd.run({"-M"}).output;
    EXPECT_NE(modules.find("proxy_http_module"), std::string::npos) << modules;
    EXPECT_NE(modules.find("rewrite_module"), std::string::npos);
    EXPECT_EQ(modules.find("proxy_balancer_module"), std::string::npos);
    EXPECT_EQ(modules.find("status_module"), std::string::npos);
}

TEST(Httpd, LoadsTheModuleUnderTestFromTheGivenFile) {
    Httpd httpd({.circuitbreaker_file = "/nowhere/mod_circuitbreaker.so"});
    const CommandResult result = httpd.config_test();
    EXPECT_EQ(result.exit_status, 1);
    EXPECT_NE(result.output.find("/nowhere/mod_circuitbreaker.so"), std::string::npos) << result.output;
}

TEST(Httpd, TakesMpmDirectivesLogLevelEnvironmentAndDocuments) {
    Httpd httpd({.config = "LoadModule actions_module /usr/lib/apache2/modules/mod_actions.so\n"
                           "PassEnv CB_WORD\nHeader set X-Word \"%{CB_WORD}e\"",
                 .children = 1,
                 .mpm_directives = {"MaxRequestWorkers 8"},
                 .circuitbreaker = false,
                 .log_level = "notice core:debug",
                 .environment = {{"CB_WORD", "spoken"}}});
    httpd.put_document("folder/page.txt", "a page");
    httpd.start();
    const Response page = get(httpd.url("/folder/page.txt"));
    EXPECT_EQ(page.body, "a page");
    EXPECT_EQ(page.header("X-Word"), "spoken");
    EXPECT_FALSE(httpd.error_lines_with("[core:debug]").empty()) << httpd.error_log();
    EXPECT_EQ(httpd.options().mpm_directives.size(), 1U);
    EXPECT_NE(read_file(httpd.root() / "httpd.conf").find("\nMaxRequestWorkers 8\n"), std::string::npos);
}

TEST(Httpd, ProxiesToAUnixSocket) {
    Backend app("uds", OnUnixSocket{});
    Httpd httpd({.config = "ProxyPass / \"" + app.member() + "/\"", .circuitbreaker = false});
    httpd.start();
    EXPECT_EQ(get(httpd.url()).body, "uds") << httpd.describe();
}

TEST(Httpd, CountsAPipedLoggerAsNoChildAndEndsItToo) {
    Httpd httpd({.config = "CustomLog \"|/bin/cat\" \"%U\"", .circuitbreaker = false});
    httpd.start();
    const auto logger_runs = [&] {
        return std::ranges::any_of(processes_in_group(httpd.parent()), [](const auto& p) { return p.name == "cat"; });
    };
    EXPECT_TRUE(wait_until(logger_runs, patience, "the logger"));
    EXPECT_EQ(httpd.children().size(), 2U);
    EXPECT_EQ(httpd.stop(), 0);
    EXPECT_TRUE(httpd.left_behind().empty());
}

TEST(Httpd, EndsWithTheTestThatStartedIt) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const Socket reading(ends[0]);
    const Socket writing(ends[1]);
    const pid_t test = ::fork();
    ASSERT_GE(test, 0);
    if (test == 0) {
        Httpd httpd({.circuitbreaker = false});
        httpd.start();
        const std::string news = std::to_string(httpd.parent()) + " " + httpd.root().string() + "\n";
        (void)!::write(writing.fd(), news.data(), news.size());
        ::raise(SIGKILL);
    }
    char news[4096] = "";
    ASSERT_GT(::read(reading.fd(), news, sizeof news - 1), 0);
    EXPECT_EQ(::waitpid(test, nullptr, 0), test);
    std::istringstream words(news);
    pid_t parent = 0;
    std::string root;
    words >> parent >> root;
    EXPECT_TRUE(wait_until([&] { return processes_in_group(parent).empty(); }, patience, "the end of httpd"));
    ASSERT_TRUE(root.starts_with((std::filesystem::temp_directory_path() / "cb-httpd.").string())) << root;
    std::filesystem::remove_all(root);  // what the dead test could not do
}

}  // namespace
}  // namespace cb::test
