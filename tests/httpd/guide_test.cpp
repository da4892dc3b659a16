// The numbers and the short recipes of GUIDE.md, as they stand there.
#include <filesystem>
#include <fstream>

#include "config_check.hpp"
#include "guide.hpp"
#include "trip.hpp"

namespace cb::test {
namespace {

/// One failure trips, for the rest of the test.
const std::string touchy_policy = std::string(quick_policy) + "CircuitBreakerConsecutiveFailures 1\n" + long_open;

/// What is proxied to /app in the tests is proxied to another path in the guide.
std::string worker_at(const std::string& path, const Backend& backend) {
    return "ProxyPass " + path + " " + backend.member() + "\n";
}

class Guide : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, Guide, any_mpm, mpm_name);

TEST_P(Guide, TheNumbersOpenByTheRateOnlyAndForAMinute) {
    Backend app("app");
    std::string config = from_guide("Choosing the numbers", "apache");
    put(config, "http://10.0.0.7:8080", app.member());
    put(config, "    BalancerMember \"http://10.0.0.8:8080\"\n", "");
    Httpd httpd(site("", config + "ProxyPass /app balancer://app\n"));
    httpd.start();
    const auto request = [&](unsigned count) {
        for (unsigned i = 0; i < count; ++i)
            (void)get(httpd.url("/app/x"));
        return state_of(httpd, app);
    };
    EXPECT_EQ(request(30), "closed");
    app.answer(Reply::status(502));
    EXPECT_EQ(request(29), "closed") << "a blip: not even half of the window";
    EXPECT_EQ(request(1), "open") << httpd.describe();
    const std::uint64_t left = BreakerPage(httpd).member(app).number("Next-probe-ms");
    EXPECT_LE(left, 66000U);
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Probes-limit"), 2U);
    EXPECT_EQ(httpd.error_lines_with("next probe in 5").size() + httpd.error_lines_with("next probe in 6").size(), 1U)
        << httpd.describe();
}

TEST(GuideTable, NamesDirectivesAsTheyCanBeWritten) {
    std::ifstream guide(project() / "mod_circuitbreaker/GUIDE.md");
    std::string lines;
    unsigned rows = 0;
    bool is_table = false;
    for (std::string line; std::getline(guide, line);) {
        if (line.starts_with("### ")) is_table = line == "### From other circuit breakers";
        if (!is_table || !line.starts_with("| `")) continue;
        ++rows;
        const std::size_t begin = line.find("| ", 2) + 2;
        std::istringstream cell(line.substr(begin, line.find(" |", begin) - begin));
        for (std::string text; std::getline(cell, text, '`') && std::getline(cell, text, '`');)
            lines += "<Proxy http://127.0.0.1:9001>\n    CircuitBreaker On\n    CircuitBreakerSlowCall 1s\n    " +
                     text + "\n</Proxy>\n";
    }
    EXPECT_GE(rows, 12U);
    EXPECT_NE(lines.find("CircuitBreakerMaxOpen 10\n"), std::string::npos) << lines;
    ConfigCheck check("ProxyPass / http://127.0.0.1:9001/\n");
    check.expect_accepted(lines);
}

class PlainTextRefusal : public TrafficTest {
  protected:
    static void expect_plain_refusals(const Httpd& httpd, const std::string& text) {
        for (const char* method : {"GET", "POST", "HEAD"}) {
            SCOPED_TRACE(method);
            const Response refused = get(httpd.url("/api/x"), {.method = method});
            EXPECT_EQ(refused.status, 503);
            EXPECT_TRUE(refused.headers.has("Retry-After"));
            EXPECT_TRUE(refused.header("Content-Type").starts_with("text/plain")) << refused.header("Content-Type");
            EXPECT_EQ(refused.headers.all("Content-Type").size(), 1U);
            EXPECT_EQ(refused.body, std::string(method) == "HEAD" ? "" : text);
        }
    }
};
INSTANTIATE_TEST_SUITE_P(Mpms, PlainTextRefusal, any_mpm, mpm_name);

TEST_P(PlainTextRefusal, FromTheConfiguration) {
    Backend app("app");
    Httpd httpd(site(touchy_policy + from_guide("A refusal as plain text", "apache"), worker_at("/api", app)));
    httpd.start();
    app.answer_next(1, Reply::status(503, "<p>its own").header("Content-Type", "text/html"));
    const Response own = get(httpd.url("/api/x"));
    EXPECT_EQ(own.body, "<p>its own");
    EXPECT_EQ(own.header("Content-Type"), "text/html");
    expect_plain_refusals(httpd, "The service is busy. Please try again later.");
    EXPECT_EQ(app.requests(), 1U);
}

TEST_P(PlainTextRefusal, FromAFile) {
    Backend app("app");
    const TempDir folder("cb-errors");
    std::ofstream(folder.path() / "busy.txt") << "busy\n";
    std::string config = from_guide("A refusal as plain text", "apacheconf");
    put(config, "/var/www/errors", folder.path().string());
    HttpdOptions options =
        site(touchy_policy + "TypesConfig /etc/mime.types\n" + config, worker_at("/api", app) + worker_at("/", app));
    options.add_modules = {"alias", "mime"};
    Httpd httpd(options);
    httpd.start();
    app.answer_next(1, Reply::status(503));
    EXPECT_EQ(get(httpd.url("/api/x")).status, 503);
    expect_plain_refusals(httpd, "busy\n");
    EXPECT_EQ(app.requests(), 1U);
}

class StaleAnswers : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, StaleAnswers, any_mpm, mpm_name);

TEST_P(StaleAnswers, AreSentInPlaceOfRefusals) {
    Backend app("app");
    const TempDir folder("cb-cache");
    std::filesystem::permissions(folder.path(), std::filesystem::perms::all);  // the children are another user's
    std::string config = from_guide("Stale answers while a breaker is open", "apache");
    put(config, "/var/cache/apache2/mod_cache_disk", folder.path().string());
    HttpdOptions options = site(touchy_policy + config, plain_worker(app));
    options.add_modules = {"cache", "cache_disk"};
    Httpd httpd(options);
    httpd.start();
    app.answer([](const Request& request) {
        return Reply::ok("page " + request.path).header("Cache-Control", "max-age=1" + request.path.substr(2));
    });
    const std::vector<std::string> strict{"/x,must-revalidate", "/x,proxy-revalidate", "/x,s-maxage=1"};
    const auto url = [&](const std::string& path) { return httpd.url("/app" + path); };
    EXPECT_EQ(get(url("/x")).body, "page /x");
    for (const std::string& path : strict)
        EXPECT_EQ(get(url(path)).status, 200) << path;
    app.answer(Reply::status(502));
    EXPECT_EQ(statuses(2, httpd.url("/app/bad")), "502 503") << "open";
    const unsigned asked = app.requests();
    Response stale;
    ASSERT_TRUE(wait_until(
        [&] {
            stale = get(url("/x"));
            return stale.headers.has("Warning");
        },
        patience, "the end of its freshness"));
    EXPECT_EQ(stale.status, 200);
    EXPECT_EQ(stale.body, "page /x");
    EXPECT_EQ(stale.header("Warning").substr(0, 3), "111");
    EXPECT_TRUE(httpd.wait_for_access_line("path=/app/x ")) << httpd.access_log();
    EXPECT_TRUE(wait_until(
        [&] {
            for (const std::string& line : httpd.access_lines_with("status=200 method=GET path=/app/x "))
                if (line.find("rejected=open ") != std::string::npos) return true;
            return false;
        },
        patience, "the refusal in the access log"));
    for (const std::string& path : strict) {
        EXPECT_TRUE(wait_until([&] { return get(url(path)).status == 503; }, patience, "no stale answer of " + path));
    }
    EXPECT_EQ(app.requests(), asked);
}

TEST_P(StaleAnswers, TheFirstRequestForAStaleCopyIsTheProbeWhenItIsTime) {
    Backend app("app");
    const TempDir folder("cb-cache");
    std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
    std::string config = from_guide("Stale answers while a breaker is open", "apache");
    put(config, "/var/cache/apache2/mod_cache_disk", folder.path().string());
    HttpdOptions options =
        site(std::string(quick_policy) +
                 "CircuitBreakerConsecutiveFailures 1\nCircuitBreakerOpenTime 1500ms jitter=0\n" + config,
             plain_worker(app));
    options.add_modules = {"cache", "cache_disk"};
    Httpd httpd(options);
    httpd.start();
    app.answer(Reply::ok("old").header("Cache-Control", "max-age=1"));
    EXPECT_EQ(get(httpd.url("/app/x")).body, "old");
    app.answer_next(1, Reply::status(502));
    EXPECT_EQ(statuses(1, httpd.url("/app/bad")), "502");
    app.answer(Reply::ok("new").header("Cache-Control", "max-age=1"));
    EXPECT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).body == "new"; }, patience, "the probe"));
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Probes"), 1U);
    EXPECT_EQ(state_of(httpd, app), "closed");
}

class SlowerAnswers : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, SlowerAnswers, any_mpm, mpm_name);

TEST_P(SlowerAnswers, AreThoseOfARecoveringMemberOnly) {
    Backend app("app");
    HttpdOptions options = site(std::string(quick_policy) + "CircuitBreakerRampUp 24h from=100\n" +
                                    from_guide("Slower answers while a member recovers", "apache") +
                                    // With a burst, the filter tells at debug what it does.
                                    "SetEnv rate-initial-burst 1\n",
                                plain_worker(app));
    options.add_modules = {"filter", "ratelimit"};
    options.log_level = "notice ratelimit:debug";
    Httpd httpd(options);
    httpd.start();
    const auto limited = [&] { return httpd.error_lines_with("rl: burst 1024;").size(); };
    EXPECT_EQ(statuses(2, httpd.url("/app/x")), "200 200");
    EXPECT_EQ(limited(), 0U) << "closed";
    trip(httpd, app);
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "503");
    EXPECT_EQ(limited(), 0U) << "a refusal";
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "200");
    EXPECT_EQ(limited(), 1U) << "the probe" << httpd.describe();
    ASSERT_EQ(state_of(httpd, app), "recovering");
    EXPECT_EQ(get(httpd.url("/app/x")).body, "app");
    EXPECT_EQ(limited(), 2U) << httpd.describe();
}

}  // namespace
}  // namespace cb::test
