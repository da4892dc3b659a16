// Error pages of refusals: a file, a page of another backend, a page of the very balancer that refuses.
#include "trip.hpp"

namespace cb::test {
namespace {

/// One failure trips, for the rest of the test.
const std::string touchy_policy = std::string(quick_policy) + "CircuitBreakerConsecutiveFailures 1\n" + long_open;

class ErrorDocument : public TrafficTest {
  protected:
    void expect_refused(const Response& response, const std::string& body) const {
        EXPECT_EQ(response.status, 503);
        EXPECT_NE(response.body.find(body), std::string::npos) << response.body;
        EXPECT_EQ(response.headers.all("Retry-After").size(), 1U);
        const long wait = std::stol(response.header("Retry-After"));
        const auto since = std::chrono::ceil<std::chrono::seconds>(std::chrono::steady_clock::now() - begin_).count();
        EXPECT_LE(wait, 600);
        EXPECT_GE(wait, 600 - since);
    }

    const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};
INSTANTIATE_TEST_SUITE_P(Mpms, ErrorDocument, any_mpm, mpm_name);

TEST_P(ErrorDocument, ThatIsAFileComesWithTheStatusTheHeaderAndTheReason) {
    Backend app("app");
    Httpd httpd(site(touchy_policy + "ErrorDocument 503 /sorry.html\n"
                                     "Header always set X-Reason \"%{REDIRECT_CIRCUIT_BREAKER_REJECTED}e\" "
                                     "\"expr=-n reqenv('REDIRECT_CIRCUIT_BREAKER_REJECTED')\"\n"
                                     "Header always set X-Member \"%{REDIRECT_CIRCUIT_BREAKER_STATE}e\"\n",
                     plain_worker(app)));
    httpd.put_document("sorry.html", "come back later");
    httpd.start();
    trip(httpd, app, {.failures = 1});
    for (const char* method : {"GET", "POST", "DELETE"}) {
        SCOPED_TRACE(method);
        const Response refused = get(httpd.url("/app/x?y=z"), {.method = method});
        expect_refused(refused, "come back later");
        EXPECT_EQ(refused.header("X-Reason"), "open");
    }
    const Response head = get(httpd.url("/app/x"), {.method = "HEAD"});
    EXPECT_EQ(head.status, 503);
    EXPECT_TRUE(head.headers.has("Retry-After"));
    EXPECT_TRUE(httpd.wait_for_access_line("rejected=open ", 4)) << httpd.access_log();
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Refused"), 4U);
    EXPECT_EQ(app.requests(), 0U);
}

// mod_proxy keeps the status of what went wrong only under ProxyErrorOverride.
TEST_P(ErrorDocument, OfAnotherBackendIsACallToThatOneAndNoneToTheFirst) {
    Backend app("app");
    Backend pages("pages");
    Httpd httpd(site(touchy_policy +
                         "ErrorDocument 503 /pages/sorry\n"
                         "<Location /pages>\n    RequestHeader set X-Reason "
                         "\"%{REDIRECT_CIRCUIT_BREAKER_REJECTED}e\"\n    ProxyErrorOverride On\n</Location>\n"
                         "<Location /pages/plain>\n    ProxyErrorOverride Off\n</Location>\n"
                         "<Location /app/plain>\n    ErrorDocument 503 /pages/plain\n</Location>\n",
                     balancer_of(member_line(app)) + "ProxyPass /pages " + pages.member() + "\n"));
    httpd.start();
    trip(httpd, app, {.failures = 1});
    pages.answer(Reply::ok("another backend's page"));
    for (std::uint64_t i = 1; i <= 3; ++i) {
        const Response refused = get(httpd.url("/app/x"));
        expect_refused(refused, "another backend's page");
        EXPECT_EQ(refused.backend(), "pages");
        EXPECT_EQ(pages.last_request()->headers.get("X-Reason"), "open");
        EXPECT_EQ(BreakerPage(httpd).member(pages).number("Calls"), i);
        EXPECT_EQ(BreakerPage(httpd).member(app).number("Refused"), i);
    }
    EXPECT_EQ(BreakerPage(httpd).member(pages).number("Outcome-2xx"), 3U) << "though the client has seen 503";
    EXPECT_EQ(BreakerPage(httpd).member(pages).number("Verdict-success"), 3U);
    EXPECT_EQ(app.requests(), 0U);
    EXPECT_TRUE(wait_for_no_permits(httpd, pages));

    const Response plain = get(httpd.url("/app/plain"));
    EXPECT_EQ(plain.status, 200);
    EXPECT_FALSE(plain.headers.has("Retry-After")) << "it belongs to a 503";

    // That one fails too, and then is refused too.
    pages.answer(Reply::status(502, "no page"));
    const Response failed = get(httpd.url("/app/x"));
    EXPECT_EQ(failed.status, 502);
    EXPECT_FALSE(failed.headers.has("Retry-After"));
    EXPECT_EQ(state_of(httpd, pages), "open");
    pages.forget();
    expect_refused(get(httpd.url("/app/x")), "503");
    EXPECT_EQ(pages.requests(), 0U);
    EXPECT_EQ(app.requests(), 0U);
    EXPECT_EQ(BreakerPage(httpd).member(pages).number("Refused"), 1U);
    EXPECT_TRUE(wait_for_no_permits(httpd, pages));
}

TEST_P(ErrorDocument, OfTheVeryMemberOrBalancerThatRefusesIsRefusedOnceMoreAndThatIsAll) {
    Backend one("one");
    Backend two("two");
    for (const std::string& proxied : {plain_worker(one), balancer_of(member_line(one) + member_line(two))}) {
        SCOPED_TRACE(proxied);
        const bool has_two = proxied.find("balancer") != std::string::npos;
        Httpd httpd(site(touchy_policy + "ErrorDocument 503 /app/sorry\n", proxied));
        httpd.start();
        one.answer(Reply::status(502));
        two.answer(Reply::status(502));
        EXPECT_EQ(statuses(has_two ? 2 : 1, httpd.url("/app/trip")), has_two ? "502 502" : "502");
        one.forget();
        two.forget();
        const std::uint64_t before = BreakerPage(httpd).member(one).number("Refused");
        for (std::uint64_t i = 1; i <= 3; ++i) {
            const Response refused = get(httpd.url("/app/x"));
            expect_refused(refused, "503");
            EXPECT_NE(refused.body.find("while trying to use an ErrorDocument"), std::string::npos) << refused.body;
            EXPECT_EQ(BreakerPage(httpd).member(one).number("Refused"), before + 2 * i);
        }
        EXPECT_EQ(one.requests() + two.requests(), 0U);
        EXPECT_TRUE(httpd.wait_for_access_line("rejected=open ", 3));
        EXPECT_TRUE(wait_for_no_permits(httpd, one));
        EXPECT_EQ(transition_lines(httpd).size(), has_two ? 2U : 1U) << httpd.describe();
    }
}

TEST_P(ErrorDocument, OfAnotherMemberOfTheSameBalancerIsServedByIt) {
    Backend app("app");
    Backend spare("spare");
    Httpd httpd(site(touchy_policy + "ErrorDocument 502 /app/sorry\nProxyErrorOverride On\n",
                     balancer_of(member_line(app) + member_line(spare, "status=+H"))));
    httpd.start();
    app.answer(Reply::status(502, "the backend's own"));
    spare.answer(Reply::ok("the spare's page"));
    const Response response = get(httpd.url("/app/x"));
    EXPECT_EQ(response.status, 502);
    EXPECT_EQ(response.body, "the spare's page");
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Verdict-failure"), 1U);
    EXPECT_EQ(BreakerPage(httpd).member(spare).number("Verdict-success"), 1U);
    EXPECT_EQ(get(httpd.url("/app/x")).status, 200) << "the spare does all of it now";
    EXPECT_TRUE(wait_for_no_permits(httpd, app));
    EXPECT_TRUE(wait_for_no_permits(httpd, spare));
}

TEST_P(ErrorDocument, OfAnotherErrorThatIsRefusedLeavesThatErrorWithoutRetryAfter) {
    Backend app("app");
    Backend pages("pages");
    pages.answer(Reply::status(404, "none").header("Retry-After", "9"));
    Httpd httpd(site(touchy_policy + "ErrorDocument 404 /app/none\nErrorDocument 403 /app/none\n<Location /closed>\n"
                                     "    Require all denied\n</Location>\n<Location /own>\n"
                                     "    Header always set Retry-After 7\n</Location>\n",
                     plain_worker(app) + "ProxyPass /pages " + pages.member() + "\n"));
    httpd.start();
    trip(httpd, app, {.failures = 1});
    for (const char* method : {"GET", "POST", "HEAD"}) {
        SCOPED_TRACE(method);
        const Response missing = get(httpd.url("/missing"), {.method = method});
        EXPECT_EQ(missing.status, 404);
        EXPECT_FALSE(missing.headers.has("Retry-After"));
        const Response closed = get(httpd.url("/closed"), {.method = method});
        EXPECT_EQ(closed.status, 403);
        EXPECT_FALSE(closed.headers.has("Retry-After"));
    }
    EXPECT_EQ(app.requests(), 0U);
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Refused"), 6U);
    EXPECT_EQ(get(httpd.url("/own/missing")).header("Retry-After"), "7") << "the administrator's";
    EXPECT_EQ(get(httpd.url("/pages/x")).header("Retry-After"), "9") << "the member's";
    expect_refused(get(httpd.url("/app/x")), "503");
}

TEST_P(ErrorDocument, ThatMakesAnotherStatusOfTheRefusalHasNoRetryAfter) {
    Backend app("app");
    HttpdOptions options = site(touchy_policy +
                                    "<Location /app/moved>\n    ErrorDocument 503 http://elsewhere.example/\n"
                                    "</Location>\n<Location /app/asis>\n    ErrorDocument 503 /sorry.asis\n"
                                    "</Location>\n<Location /app/file>\n    ErrorDocument 503 /sorry.html\n"
                                    "</Location>\n<Location /app/text>\n    ErrorDocument 503 \"in words\"\n"
                                    "</Location>\n<Location /sorry.asis>\n    SetHandler send-as-is\n</Location>\n",
                                plain_worker(app));
    options.add_modules = {"asis"};
    Httpd httpd(options);
    httpd.put_document("sorry.asis", "Status: 200 Never mind\nContent-Type: text/plain\n\nnever mind");
    httpd.put_document("sorry.html", "come back later");
    httpd.start();
    trip(httpd, app, {.failures = 1});
    const Response moved = get(httpd.url("/app/moved"));
    EXPECT_EQ(moved.status, 302);
    EXPECT_FALSE(moved.headers.has("Retry-After")) << "a browser would wait before it goes there (RFC 9110 10.2.3)";
    const Response as_is = get(httpd.url("/app/asis"));
    EXPECT_EQ(as_is.status, 200);
    EXPECT_EQ(as_is.body, "never mind");
    EXPECT_FALSE(as_is.headers.has("Retry-After"));
    expect_refused(get(httpd.url("/app/file")), "come back later");
    expect_refused(get(httpd.url("/app/text")), "in words");
}

}  // namespace
}  // namespace cb::test
