// Settings of mod_proxy that change what becomes of a failing answer don't change its verdict.
#include "outcomes.hpp"

namespace cb::test {
namespace {

class Override : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, Override, any_mpm, mpm_name);

TEST_P(Override, OfErrorPagesLeavesEveryVerdictAsItIs) {
    std::map<std::string, std::string> judged[2];
    for (const bool is_on : {false, true}) {
        Backend app("app");
        Httpd httpd(site(counting_policy + std::string(is_on ? "ProxyErrorOverride On\n" : "") +
                             "ErrorDocument 404 /own.html\nErrorDocument 503 /own.html\n",
                         plain_worker(app, "timeout=2 disablereuse=on")));
        httpd.put_document("own.html", "a page of httpd's");
        httpd.start();
        const auto judge = [&](const std::string& name, const Reply& reply, const std::string& method) {
            const OutcomeCounters before(httpd, app);
            app.answer_next(1, reply);
            const Response response = get(httpd.url("/app/x"), {.method = method});
            judged[is_on ? 1 : 0][name + " to " + method] = OutcomeCounters::of_next_call(httpd, app, before) - before;
            return response;
        };
        for (const char* method : {"GET", "HEAD"}) {
            for (const int status : {200, 302, 401, 404, 500, 502, 503, 504}) {
                const Response response = judge(std::to_string(status), Reply::status(status, "the backend's"), method);
                EXPECT_EQ(response.status, status);
                if (status == 404 && method == std::string("GET")) {
                    EXPECT_EQ(response.body, is_on ? "a page of httpd's" : "the backend's");
                }
            }
            (void)judge("reset", Reply::reset(), method);
            (void)judge("half a header", Reply::half_header(), method);
        }
        (void)judge("hang", Reply::hang(), "GET");
        (void)judge("503 in chunks", Reply::status(503, "the backend's").in_chunks(), "GET");
    }
    EXPECT_EQ(judged[0].size(), 22U);
    for (const auto& [name, outcome] : judged[0])
        EXPECT_EQ(judged[1][name], outcome) << name;
    EXPECT_EQ(judged[1]["503 to GET"], "Outcome-5xx Verdict-failure");
    EXPECT_EQ(judged[1]["404 to HEAD"], "Outcome-4xx Verdict-success");
    EXPECT_EQ(judged[1]["hang to GET"], "Outcome-timeout Verdict-failure");
}

TEST_P(Override, OfErrorPagesFindsThePageAfterAnInternalRedirectToo) {
    Backend app("app");
    HttpdOptions options = site(
        counting_policy + std::string("ProxyErrorOverride On\nErrorDocument 404 /own.html\n"),
        "Action gate /app/gate virtual\n<Location /acted>\n    SetHandler gate\n</Location>\n" + plain_worker(app));
    options.add_modules = {"actions"};
    Httpd httpd(options);
    httpd.put_document("own.html", "a page of httpd's");
    httpd.start();
    app.answer(Reply::status(404, "the backend's"));
    const Response response = get(httpd.url("/acted/x"));
    EXPECT_EQ(response.status, 404);
    EXPECT_EQ(response.body, "a page of httpd's");
    EXPECT_EQ(app.requests(), 1U);
}

TEST_P(Override, OfErrorPagesTripsAtTheSameCall) {
    Backend app("app");
    Httpd httpd(site(std::string(quick_policy) + long_open + "ProxyErrorOverride On\n", plain_worker(app)));
    httpd.start();
    app.answer(Reply::status(503));
    EXPECT_EQ(statuses(6, httpd.url("/app/x")), "503 503 503 503 503 503");
    EXPECT_EQ(app.requests(), 3U);
}

TEST_P(Override, ByFailonstatusLeavesNoErrorStateOfModProxysBehind) {
    Backend app("app");
    Httpd httpd(site(counting_policy, balancer_of(member_line(app, "retry=600") +
                                                  "    ProxySet failonstatus=503,404 failontimeout=On\n")));
    httpd.start();
    app.answer_path("/bad", Reply::status(503));
    app.answer_path("/missing", Reply::status(404));
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(get(httpd.url("/app/bad")).backend(), "app");
        EXPECT_EQ(get(httpd.url("/app/missing")).backend(), "app");
        EXPECT_EQ(get(httpd.url("/app/good")).status, 200) << "mod_proxy would have kept it out for 600 s";
    }
    const BreakerBlock block = BreakerPage(httpd).member(app);
    EXPECT_EQ(block.number("Calls"), 15U);
    EXPECT_EQ(block.number("Outcome-local"), 0U);
    EXPECT_GE(block.number("Verdict-failure"), 5U);
}

TEST_P(Override, IsNotNeededForOneBrokenPageNotToTripAMember) {
    Backend app("app");
    Httpd httpd(site("CircuitBreaker On\n" + std::string(long_open), plain_worker(app)));
    httpd.start();
    app.answer_path("/broken", Reply::status(500));
    for (int i = 0; i < 30; ++i)
        EXPECT_EQ(get(httpd.url("/app/broken")).backend(), "app");
    EXPECT_EQ(get(httpd.url("/app/other")).status, 200);
    const BreakerBlock block = BreakerPage(httpd).member(app);
    EXPECT_EQ(block.at("State"), "closed");
    EXPECT_EQ(block.number("Outcome-5xx"), 30U);
    EXPECT_EQ(block.number("Verdict-success"), 31U);
}

TEST_P(Override, OfNothingIsNeededForHealthyRequestsToSurviveTheFailingOnesOfTheSameMember) {
    Backend one("one");
    Backend two("two");
    Httpd httpd(site(counting_policy, balancer_of(member_line(one, "retry=60") + member_line(two, "retry=60") +
                                                  "    ProxySet failonstatus=503\n")));
    httpd.start();
    for (Backend* backend : {&one, &two}) {
        backend->answer_path("/bad", Reply::status(503));
        backend->answer_path("/worse", Reply::reset());
    }
    BackgroundLoad bad(httpd.url("/app/bad"), {.threads = 3, .keep_connections = false});
    BackgroundLoad worse(httpd.url("/app/worse"), {.threads = 3, .keep_connections = false});
    const LoadResult good =
        load(httpd.url("/app/good"), {.threads = 4, .requests_per_thread = 150, .keep_connections = false});
    EXPECT_TRUE(good.all(200)) << good.describe();
    EXPECT_GT(good.from("one"), 150U);
    EXPECT_GT(good.from("two"), 150U);
    EXPECT_GT(bad.finish().with_status(503), 50U);
    EXPECT_GT(worse.finish().with_status(502), 50U);
}

}  // namespace
}  // namespace cb::test
