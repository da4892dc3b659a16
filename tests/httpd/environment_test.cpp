// Who sees the environment CIRCUIT_BREAKER_*: logs and expressions do, applications don't.
#include <filesystem>
#include <fstream>

#include "protocols.hpp"

namespace cb::test {
namespace {

const std::string names = "CIRCUIT_BREAKER_";

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

class Environment : public testing::TestWithParam<Protocol> {
  protected:
    static HttpdOptions with(const std::string& policy, const std::string& proxied) {
        return wire_site(quick_policy + policy, proxied);
    }
    /// Asked once by a request, which has that answer.
    static Response expect_unseen(WireBackend& app, const Httpd& httpd, const std::string& path) {
        const unsigned before = app.requests();
        Response response = get(httpd.url(path));
        EXPECT_EQ(app.requests(), before + 1);
        EXPECT_FALSE(has(app.last_request(), names)) << app.last_request();
        if (app.dialect().scheme != "h2c" && app.dialect().scheme != "ajp") {
            EXPECT_TRUE(has(app.last_request(), "SERVER_SOFTWARE")) << "or this test proves nothing";
        }
        return response;
    }
};
INSTANTIATE_TEST_SUITE_P(Each, Environment, testing::ValuesIn(protocols()), protocol_name);

TEST_P(Environment, OfTheBreakersReachesNoApplicationNotEvenInAProbe) {
    WireBackend app("app", GetParam().dialect(), GetParam().on_unix_socket);
    for (const std::string mode : {"On", "Observe"}) {
        SCOPED_TRACE(mode);
        Httpd httpd(with("CircuitBreaker " + mode + "\n", worker_at("/app", app, GetParam())));
        httpd.start();
        app.answer(WireReply::status(200));
        EXPECT_EQ(expect_unseen(app, httpd, "/app/well").status, 200);
        app.answer(WireReply::status(503));
        for (int i = 0; i < 3; ++i)
            EXPECT_EQ(expect_unseen(app, httpd, "/app/ill").status, 503);
        ASSERT_TRUE(wait_for_end_of_open_time(httpd, app.member()));
        app.answer(WireReply::status(200));
        EXPECT_EQ(expect_unseen(app, httpd, "/app/probe").status, 200);
        EXPECT_TRUE(httpd.wait_for_access_line(
            "status=200 method=GET path=/app/well member=- state=closed verdict=success probe=-", 1));
        EXPECT_TRUE(httpd.wait_for_access_line(
            "status=503 method=GET path=/app/ill member=- state=closed verdict=failure:503 probe=-", 3));
        EXPECT_TRUE(httpd.wait_for_access_line(
            "status=200 method=GET path=/app/probe member=- state=half-open verdict=success probe=1", 1));
    }
}

TEST_P(Environment, OfAFailedCallAndOfAFallbackReachesNobodyElse) {
    WireBackend bad("bad", GetParam().dialect(), GetParam().on_unix_socket);
    WireBackend good("good", GetParam().dialect(), GetParam().on_unix_socket);
    WireBackend spare("spare", GetParam().dialect(), GetParam().on_unix_socket);
    const auto member = [](const WireBackend& backend, const std::string& more) {
        return "    BalancerMember \"" + backend.member() + "\" " + GetParam().parameters + " " + more + "\n";
    };
    Httpd httpd(with(std::string(long_open) + "CircuitBreakerFailover All budget=100\n",
                     "<Proxy balancer://app>\n    CircuitBreakerFallback balancer://spare\n" +
                         member(bad, "loadfactor=100") + member(good, "") + "</Proxy>\n<Proxy balancer://spare>\n" +
                         member(spare, "") + "</Proxy>\nProxyPass /app balancer://app\n"));
    httpd.start();
    bad.answer(WireReply::status(503));
    EXPECT_EQ(expect_unseen(good, httpd, "/app/x").status, 200);
    EXPECT_FALSE(has(bad.last_request(), names));
    EXPECT_EQ(bad.requests(), 1U);
    good.answer(WireReply::status(503));
    for (int i = 0; i < 5; ++i)
        (void)get(httpd.url("/app/y"));
    ASSERT_EQ(BreakerPage(httpd).member(bad.member()).at("State"), "open");
    ASSERT_EQ(BreakerPage(httpd).member(good.member()).at("State"), "open");
    EXPECT_EQ(expect_unseen(spare, httpd, "/app/spared").status, 200);
}

TEST_P(Environment, OfARefusalReachesNoApplicationThatGivesTheErrorPage) {
    Backend out("out");
    WireBackend pages("pages", GetParam().dialect(), GetParam().on_unix_socket);
    for (const std::string breaker : {"On", "Observe", "Off"}) {
        SCOPED_TRACE(breaker);
        Httpd httpd(with(std::string(long_open) + "ErrorDocument 503 /pages/sorry\n<Location />\n" +
                             "    Header always set X-Reason \"%{REDIRECT_CIRCUIT_BREAKER_REJECTED}e\"\n</Location>\n" +
                             "<Proxy \"" + pages.member() + "\">\n    CircuitBreaker " + breaker + "\n</Proxy>\n",
                         worker_at("/pages", pages, GetParam()) + plain_worker(out)));
        httpd.start();
        out.answer_next(3, Reply::status(502));
        EXPECT_EQ(statuses(3, httpd.url("/app/x")), "502 502 502");
        EXPECT_EQ(expect_unseen(pages, httpd, "/app/x").header("X-Reason"), "open") << "an expression still sees it";
    }
}

// An application that hands a request on to another one (a CGI's local redirect).
TEST(EnvironmentOfRedirects, ReachesNoApplicationThatAnotherOneNames) {
    WireBackend first("first", scgi());
    WireBackend second("second", fcgi());
    first.answer({.more_fields = "Location: /second/x\r\n"});
    for (const std::string mode : {"On", "Observe"}) {
        SCOPED_TRACE(mode);
        Httpd httpd(wire_site(quick_policy + ("CircuitBreaker " + mode) + "\nHeader set X-First \"" +
                                  "%{REDIRECT_CIRCUIT_BREAKER_VERDICT}e\"\n",
                              "ProxyPass /first " + first.member() + "\nProxyPass /second " + second.member() + "\n"));
        httpd.start();
        const unsigned before = second.requests();
        const Response response = get(httpd.url("/first/x"));
        EXPECT_TRUE(response.backend().ends_with("second")) << response.backend();
        EXPECT_EQ(second.requests(), before + 1);
        EXPECT_TRUE(has(second.last_request(), "REDIRECT_STATUS"));
        EXPECT_FALSE(has(second.last_request(), names)) << second.last_request();
        EXPECT_EQ(response.header("X-First"), mode == "On" ? "success" : "(null)");
    }
}

/// With a CGI program at /cgi/env that shows its environment.
HttpdOptions with_cgi(const std::string& policy, const std::string& proxied) {
    HttpdOptions options = site(Mpm::prefork, std::string(quick_policy) + long_open + policy, proxied);
    options.add_modules = {"cgi", "include"};
    return options;
}

void put_cgi(Httpd& httpd) {
    const std::filesystem::path program = httpd.root() / "cgi-bin" / "env";
    std::filesystem::create_directories(program.parent_path());
    std::ofstream(program) << "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nenv\n";
    std::filesystem::permissions(program, std::filesystem::perms(0755));
    httpd.options().config += "ScriptAlias /cgi/ \"" + program.parent_path().string() +
                              "/\"\n<Location /cgi>\n    Require all granted\n    Header always set X-Reason "
                              "\"%{REDIRECT_CIRCUIT_BREAKER_REJECTED}e\"\n</Location>\n";
    httpd.write_config();
}

TEST(EnvironmentOfCgi, HasNothingOfTheRequestThatWasRefused) {
    Backend app("app");
    Httpd httpd(
        with_cgi("ErrorDocument 503 /cgi/env\nProxyPass /cgi !\n"
                 "SetEnvIfExpr \"-n reqenv('REDIRECT_CIRCUIT_BREAKER_REJECTED')\" REFUSED=yes\n",
                 plain_worker(app)));
    put_cgi(httpd);
    httpd.start();
    app.answer(Reply::status(502));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "502 502 502");
    const Response refused = get(httpd.url("/app/x"));
    EXPECT_EQ(refused.status, 503);
    EXPECT_TRUE(has(refused.body, "REDIRECT_STATUS=503")) << refused.body;
    EXPECT_TRUE(has(refused.body, "REFUSED=yes")) << "what is meant for it" << refused.body;
    EXPECT_FALSE(has(refused.body, names)) << refused.body;
    EXPECT_EQ(refused.header("X-Reason"), "open");
    EXPECT_TRUE(httpd.wait_for_access_line("rejected=open ", 1));
}

TEST(EnvironmentOfCgi, HasNothingOfThePageThatItIsAPartOf) {
    Backend app("app");
    app.answer(Reply::ok("<!--#include virtual=\"/cgi/env\" -->|<!--#echo var=\"CIRCUIT_BREAKER_STATE\" -->")
                   .header("Content-Type", "text/html"));
    Httpd httpd(
        with_cgi("<Location /app>\n    Options +Includes\n    SetOutputFilter INCLUDES\n</Location>\n"
                 "ProxyPass /cgi !\n",
                 plain_worker(app)));
    put_cgi(httpd);
    httpd.start();
    const Response page = get(httpd.url("/app/x"));
    EXPECT_TRUE(has(page.body, "SERVER_SOFTWARE=")) << page.body;
    EXPECT_FALSE(has(page.body, names)) << page.body;
    EXPECT_TRUE(has(page.body, "|closed")) << page.body;
}

TEST(EnvironmentOfRules, IsSeenByEveryExpressionOfOurs) {
    Backend app("app");
    Backend out("out");
    for (const std::string mode : {"On", "Observe"}) {
        SCOPED_TRACE(mode);
        Httpd httpd(
            site(Mpm::event,
                 quick_policy + ("CircuitBreaker " + mode) + "\nErrorDocument 502 /app/sorry\n" +
                     "CircuitBreakerVerdict tolerate 200 \"expr=reqenv('CIRCUIT_BREAKER_STATE') == 'closed'\"\n" +
                     "CircuitBreakerVerdict ignore reset \"expr=reqenv('CIRCUIT_BREAKER_MEMBER') == '" + app.member() +
                     "'\"\n",
                 plain_worker(app)));
        httpd.start();
        app.answer_as_usual();
        EXPECT_EQ(get(httpd.url("/app/x")).status, 200);
        app.answer(Reply::reset());
        (void)get(httpd.url("/app/y"));
        EXPECT_TRUE(wait_for_counter(httpd, app, "Verdict-tolerate", 1));
        EXPECT_TRUE(wait_for_counter(httpd, app, "Verdict-ignore", 1)) << httpd.describe();
    }
}

TEST(EnvironmentOfRules, IsSeenByWhatChoosesProbesAlsoInAnErrorPagesOwnRequest) {
    Backend app("app");
    Httpd httpd(site(Mpm::event,
                     std::string(quick_policy) +
                         "ErrorDocument 503 /app/sorry\n"
                         "CircuitBreakerProbeIf \"-n reqenv('REDIRECT_CIRCUIT_BREAKER_REJECTED')\"\n",
                     plain_worker(app)));
    httpd.start();
    app.answer(Reply::status(502));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "502 502 502");
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    app.answer_as_usual();
    app.forget();
    (void)get(httpd.url("/app/x"));
    ASSERT_EQ(app.requests(), 1U) << "the refused request is no probe, its error page is one";
    EXPECT_EQ(app.last_request()->target, "/sorry");
}

TEST(EnvironmentOfHeaders, NamesTheFallbackWhetherItsMembersHaveBreakersOrNot) {
    Backend app("app");
    Backend spare("spare");
    for (const std::string breaker : {"On", "Off"}) {
        SCOPED_TRACE(breaker);
        Httpd httpd(site(Mpm::event,
                         std::string(quick_policy) + long_open +
                             "CircuitBreakerFallback balancer://spare\nHeader set X-Fallback "
                             "\"%{CIRCUIT_BREAKER_FALLBACK}e\"\n",
                         balancer_of(member_line(app)) + "<Proxy balancer://spare>\n    CircuitBreaker " + breaker +
                             "\n" + member_line(spare) + "</Proxy>\n"));
        httpd.start();
        app.answer_next(3, Reply::status(502));
        EXPECT_EQ(statuses(3, httpd.url("/app/x")), "502 502 502");
        EXPECT_EQ(get(httpd.url("/app/x")).header("X-Fallback"), "balancer://spare");
    }
}

// With Observe nothing changes: a response shows no more than it would without the module.
TEST(EnvironmentOfHeaders, IsSeenByThemAndInObserveNotEvenByThem) {
    Backend app("app");
    const auto shown = [&](const std::string& mode) {
        Httpd httpd(site(Mpm::event,
                         quick_policy + ("CircuitBreaker " + mode) +
                             "\nHeader set X-State \"%{CIRCUIT_BREAKER_STATE}e\"\n"
                             "Header set X-Verdict \"expr=%{reqenv:CIRCUIT_BREAKER_VERDICT}\"\n"
                             "Header always set X-Member \"%{CIRCUIT_BREAKER_MEMBER}e\"\n",
                         plain_worker(app)));
        httpd.start();
        app.answer(Reply::ok("page"));
        const Response response = get(httpd.url("/app/x"));
        EXPECT_TRUE(httpd.wait_for_access_line("path=/app/x " + std::string(mode == "Off" ? ""
                                                                                          : "member=- state=closed "
                                                                                            "verdict=success")));
        return response.header("X-State") + " " + response.header("X-Member");
    };
    EXPECT_EQ(shown("On"), "closed " + app.member());
    const std::string without = shown("Off");
    EXPECT_EQ(without, "(null) (null)");
    EXPECT_EQ(shown("Observe"), without);
}

}  // namespace
}  // namespace cb::test
