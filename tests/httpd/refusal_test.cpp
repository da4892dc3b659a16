// What a refusal is to the client and in the logs, and what Observe does instead.
#include "traffic.hpp"

namespace cb::test {
namespace {

class Refusal : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, Refusal, any_mpm, mpm_name);

TEST_P(Refusal, SaysWhenToComeBackAndCostsTheBackendNothing) {
    Backend app("app");
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerOpenTime 20s jitter=0\n", plain_worker(app)));
    httpd.start();
    app.refuse();
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "503 503 503");
    app.accept_again();
    const std::uint64_t before = BreakerPage(httpd).member(app).number("Next-probe-ms");
    const Response refused = get(httpd.url("/app/x"));
    const std::uint64_t after = BreakerPage(httpd).member(app).number("Next-probe-ms");
    EXPECT_EQ(refused.status, 503);
    const unsigned long seconds = std::stoul(refused.header("Retry-After"));
    EXPECT_LE(seconds, (before + 999) / 1000);
    EXPECT_GE(seconds, (after + 999) / 1000) << "rounded up, so that nobody comes too early";
    EXPECT_EQ(app.connections(), 0U);
    EXPECT_EQ(get(httpd.url("/app/x"), {.method = "POST", .body = "order"}).status, 503);
    EXPECT_EQ(app.connections(), 0U);
}

TEST_P(Refusal, ReachesAnErrorDocumentWithItsHeaderAndItsReason) {
    Backend app("app");
    Httpd httpd(site(std::string(quick_policy) + long_open + "ErrorDocument 503 /sorry.html\n", plain_worker(app)));
    httpd.put_document("sorry.html", "come back later");
    httpd.start();
    app.answer(Reply::status(502));
    (void)statuses(3, httpd.url("/app/x"));
    const Response refused = get(httpd.url("/app/x"));
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(refused.body, "come back later");
    EXPECT_TRUE(refused.headers.has("Retry-After"));
    EXPECT_TRUE(httpd.wait_for_access_line("rejected=open ", 1));
}

TEST_P(Refusal, HasNoRetryAfterWhereTheLocationSaysSo) {
    Backend app("app");
    Httpd httpd(site(std::string(quick_policy) + long_open +
                         "<Location /app/quiet>\n    CircuitBreakerRetryAfter Off\n</Location>\n"
                         "<If \"%{QUERY_STRING} == 'quiet'\">\n    CircuitBreakerRetryAfter Off\n</If>\n",
                     plain_worker(app)));
    httpd.start();
    app.answer(Reply::status(502));
    (void)statuses(3, httpd.url("/app/x"));
    EXPECT_TRUE(get(httpd.url("/app/x")).headers.has("Retry-After"));
    const Response quiet = get(httpd.url("/app/quiet/x"));
    EXPECT_EQ(quiet.status, 503);
    EXPECT_FALSE(quiet.headers.has("Retry-After"));
    const Response also_quiet = get(httpd.url("/app/x?quiet"));
    EXPECT_EQ(also_quiet.status, 503);
    EXPECT_FALSE(also_quiet.headers.has("Retry-After"));
    EXPECT_EQ(app.requests(), 3U);
}

TEST_P(Refusal, AndEveryCallStandInTheEnvironmentForTheAccessLog) {
    Backend app("app");
    Backend out("out");
    HttpdOptions options = site(quick_policy, plain_worker(app) + "ProxyPass /out " + out.member() + "\n<Proxy \"" +
                                                  out.member() + "\">\n" + long_open + "</Proxy>\n");
    options.config += "CustomLog access.log \"own path=%U%q member=%{CIRCUIT_BREAKER_MEMBER}e\"\n";
    Httpd httpd(options);
    httpd.start();
    EXPECT_EQ(get(httpd.url("/app/well")).status, 200);
    out.answer(Reply::status(502));
    EXPECT_EQ(statuses(5, httpd.url("/out/x")), "502 502 502 503 503");
    app.answer(Reply::status(502));
    (void)statuses(3, httpd.url("/app/ill"));
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    (void)statuses(1, httpd.url("/app/ill-probe"));
    app.answer_as_usual();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    (void)statuses(1, httpd.url("/app/well-probe"));

    const auto logged = [&](const std::string& path, const std::string& rest) {
        EXPECT_TRUE(httpd.wait_for_access_line("path=" + path + " "));
        for (const std::string& line : httpd.access_lines_with("path=" + path + " ")) {
            if (line.starts_with("own ")) continue;
            EXPECT_NE(line.find(rest), std::string::npos) << line << "\nlacks " << rest;
        }
    };
    logged("/app/well", " state=closed verdict=success probe=- rejected=- ");
    logged("/app/ill", " state=closed verdict=failure:502 probe=- rejected=- ");
    EXPECT_TRUE(httpd.wait_for_access_line("path=/out/x member=- state=- verdict=- probe=- rejected=open ", 2));
    logged("/app/ill-probe", " state=half-open verdict=failure:502 probe=1 rejected=- ");
    logged("/app/well-probe", " state=half-open verdict=success probe=1 rejected=- ");
    EXPECT_TRUE(httpd.wait_for_access_line("own path=/app/well member=" + app.member(), 1));
    EXPECT_TRUE(httpd.wait_for_access_line("own path=/app/ill member=" + app.member(), 3));
}

TEST_P(Refusal, OfAFailedOverRequestIsNoneAndTheLogNamesTheMemberThatAnswered) {
    Backend dead("dead");
    Backend good("good");
    HttpdOptions options =
        site(std::string(quick_policy) + long_open, balancer_of(member_line(dead) + member_line(good)));
    options.config += "CustomLog access.log \"own path=%U%q member=%{CIRCUIT_BREAKER_MEMBER}e\"\n";
    Httpd httpd(options);
    httpd.start();
    dead.refuse();
    EXPECT_EQ(statuses(6, httpd.url("/app/x")), "200 200 200 200 200 200");
    EXPECT_TRUE(
        httpd.wait_for_access_line("member=" + good.member() + " state=closed verdict=success probe=- rejected=- ", 6));
    EXPECT_TRUE(httpd.wait_for_access_line("own path=/app/x member=" + good.member(), 6));
}

TEST_P(Refusal, IsOnlyCountedInObserveAndTheStatesGoOn) {
    Backend app("app");
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreaker Observe\n", plain_worker(app)));
    httpd.start();
    app.answer(Reply::status(502));
    EXPECT_EQ(answerers(10, httpd.url("/app/x")), "app app app app app app app app app app");
    BreakerBlock block = BreakerPage(httpd).member(app);
    EXPECT_EQ(block.at("State"), "open");
    EXPECT_EQ(block.at("Mode"), "Observe");
    std::uint64_t probes_in_vain = block.number("Probes");  // on a slow machine
    EXPECT_EQ(block.number("Would-refuse"), 7U - probes_in_vain);
    EXPECT_EQ(block.number("Refused"), 0U);
    EXPECT_EQ(block.number("Calls"), 10U);
    EXPECT_FALSE(get(httpd.url("/app/x")).headers.has("Retry-After"));
    EXPECT_TRUE(httpd.wait_for_access_line("status=502 method=GET path=/app/x", 11));
    probes_in_vain = BreakerPage(httpd).member(app).number("Probes");
    for (const std::string& line : httpd.access_lines_with("rejected="))
        EXPECT_NE(line.find("rejected=- "), std::string::npos) << line;

    app.answer_as_usual();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "200 200 200");
    EXPECT_EQ(state_of(httpd, app), "closed");
    EXPECT_EQ(transition_lines(httpd).size(), 3U + 2 * probes_in_vain) << httpd.describe();
    EXPECT_TRUE(wait_for_no_permits(httpd, app));
}

TEST_P(Refusal, InObserveABalancerStaysAsModProxyRunsIt) {
    Backend dead("dead");
    Backend good("good");
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreaker Observe\n" + long_open,
                     balancer_of(member_line(dead, "retry=600") + member_line(good))));
    httpd.start();
    dead.refuse();
    EXPECT_EQ(statuses(10, httpd.url("/app/x")), "200 200 200 200 200 200 200 200 200 200");
    const BreakerBlock block = BreakerPage(httpd).member(dead);
    EXPECT_EQ(block.number("Outcome-connect"), 1U) << "mod_proxy marked it at the first, and its retry= is long";
    EXPECT_EQ(block.number("Failovers"), 0U) << "the failover was mod_proxy's";
    EXPECT_EQ(block.at("State"), "closed");
    EXPECT_EQ(BreakerPage(httpd).member(good).number("Calls"), 10U);
}

}  // namespace
}  // namespace cb::test
