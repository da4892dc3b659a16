// When a breaker opens: after exactly the evidence that was configured, whichever children saw it; and what a refusal
// is.
#include "traffic.hpp"

namespace cb::test {
namespace {

class Trip : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, Trip, each_mpm, mpm_name);

TEST_P(Trip, AFailingMemberIsAskedExactlyAsOftenAsTheEvidenceNeedsWhicheverChildrenAsk) {
    Backend app("app");
    Backend seats("seats");
    Httpd httpd(few_threads_each(site(std::string(quick_policy) + "CircuitBreakerConsecutiveFailures 5\n" + long_open,
                                      plain_worker(app) + seats_at(seats)),
                                 3));
    httpd.start();
    ClientForEachChild clients(httpd, seats, 3);
    app.answer(Reply::status(502));

    for (int i = 0; i < 5; ++i)
        EXPECT_EQ(clients.get("/app/x").backend(), "app") << "call " << i;
    EXPECT_TRUE(wait_for_several_children(httpd, "/app/x")) << "or this test proves nothing";
    for (int i = 0; i < 9; ++i) {
        const Response refused = clients.get("/app/x");
        EXPECT_EQ(refused.status, 503);
        EXPECT_EQ(refused.backend(), "") << "httpd itself answers";
        EXPECT_TRUE(refused.headers.has("Retry-After"));
    }
    EXPECT_EQ(app.requests(), 5U) << "not one more, in whichever child";
    EXPECT_EQ(state_of(httpd, app), "open");
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Refused"), 9U);
    EXPECT_EQ(transition_lines(httpd).size(), 1U) << httpd.describe();
}

TEST_P(Trip, AMemberOpensAtItsFailureRateOnceTheMinimumOfCallsIsThereOverAllChildren) {
    for (const std::string window : {"10s", "100calls"}) {
        Backend app("app");
        Backend seats("seats");
        Httpd httpd(few_threads_each(site("CircuitBreaker On\nCircuitBreakerConsecutiveFailures Off\n"
                                          "CircuitBreakerFailureRate 50\nCircuitBreakerMinimumCalls 10\n" +
                                              std::string(long_open) + "CircuitBreakerWindow " + window + "\n",
                                          plain_worker(app) + seats_at(seats)),
                                     3));
        httpd.start();
        ClientForEachChild clients(httpd, seats, 3);
        app.answer_next(6, Reply::ok());
        app.answer(Reply::status(502));

        for (int i = 0; i < 20; ++i)
            (void)clients.get("/app/x");
        // 6 of 6 are well; the 11th call is the 5th failure (45 %), the 12th the 6th (50 %).
        EXPECT_EQ(app.requests(), 12U) << window;
        EXPECT_TRUE(wait_for_several_children(httpd, "/app/x"));
        const BreakerBlock block = BreakerPage(httpd).member(app);
        EXPECT_EQ(block.at("State"), "open");
        EXPECT_EQ(block.number("Calls"), 12U);
        EXPECT_TRUE(httpd.wait_for_error_line("closed -> open: failure rate, 6 of 12 calls failed"));
    }
}

TEST_P(Trip, BeforeTheMinimumOfCallsTheRateDoesNotCount) {
    Backend app("app");
    Httpd httpd(
        site("CircuitBreaker On\nCircuitBreakerConsecutiveFailures Off\nCircuitBreakerFailureRate 50\n"
             "CircuitBreakerMinimumCalls 10\n" +
                 std::string(long_open),
             plain_worker(app)));
    httpd.start();
    app.answer(Reply::status(502));
    (void)statuses(9, httpd.url("/app/x"));
    EXPECT_EQ(state_of(httpd, app), "closed");
    (void)statuses(5, httpd.url("/app/x"));
    EXPECT_EQ(app.requests(), 10U);
    EXPECT_EQ(state_of(httpd, app), "open");
}

TEST_P(Trip, ACountOfFailuresInEitherKindOfWindowOpensHoweverManyCallsAreBetween) {
    for (const std::string window : {"1h", "100calls"}) {
        Backend app("app");
        Httpd httpd(site(counting_policy + std::string(long_open) + "CircuitBreakerWindow " + window +
                             "\nCircuitBreakerMinimumCalls 10\nCircuitBreakerFailureCount 3\n",
                         plain_worker(app)));
        httpd.start();
        for (const unsigned status : {503U, 200U, 200U, 503U, 200U, 503U, 503U, 200U, 200U}) {
            app.answer(Reply::status(static_cast<int>(status)));
            EXPECT_EQ(statuses(1, httpd.url("/app/x")), std::to_string(status));
        }
        EXPECT_EQ(state_of(httpd, app), "closed") << "four of nine calls, and it takes ten";
        app.answer(Reply::status(503));
        EXPECT_EQ(statuses(2, httpd.url("/app/x")), "503 503");
        EXPECT_EQ(app.requests(), 10U);
        EXPECT_EQ(BreakerPage(httpd).member(app).at("Reason"), "failure count");
        EXPECT_NE(get(httpd.url("/breakers")).body.find("3 or more failures in the window"), std::string::npos);
        EXPECT_TRUE(httpd.wait_for_error_line("closed -> open: failure count, 5 of 10 calls failed; next probe"));
    }
}

TEST_P(Trip, SlowAnswersOpenAMemberThoughEachOfThemIsWell) {
    Backend app("app");
    Backend seats("seats");
    Httpd httpd(few_threads_each(site(counting_policy + std::string(long_open) +
                                          "CircuitBreakerSlowCall 600ms rate=50\nCircuitBreakerMinimumCalls 4\n",
                                      plain_worker(app) + seats_at(seats)),
                                 2));
    httpd.start();
    ClientForEachChild clients(httpd, seats, 2);
    EXPECT_EQ(clients.get("/app/x").status, 200);
    EXPECT_EQ(clients.get("/app/x").status, 200);
    ASSERT_EQ(BreakerPage(httpd).member(app).number("Slow"), 0U) << "the machine is too slow for this test";
    app.answer(Reply::ok().after(800ms));
    EXPECT_EQ(clients.get("/app/x").status, 200);
    EXPECT_EQ(clients.get("/app/x").status, 200) << "2 of 4 calls were slow: open from here on";
    EXPECT_EQ(clients.get("/app/x").status, 503);
    EXPECT_EQ(app.requests(), 4U);
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Slow"), 2U);
    EXPECT_TRUE(httpd.wait_for_error_line("closed -> open: slow call rate, 2 of 4 calls were slow"));
}

TEST_P(Trip, CallsUnderWayAtTheTripDecideNothingAndItIsReportedOnce) {
    Backend app("app");
    HttpdOptions options = site(std::string(quick_policy) + long_open, plain_worker(app));
    options.children = GetParam() == Mpm::prefork ? 14 : 4;
    Httpd httpd(options);
    httpd.start();
    app.hold();
    app.answer(Reply::status(502));
    std::vector<std::future<Response>> responses;
    for (int i = 0; i < 12; ++i)
        responses.push_back(get_later(httpd.url("/app/x")));
    ASSERT_TRUE(app.wait_for_concurrent(12)) << httpd.describe();
    app.release();
    for (auto& response : responses)
        EXPECT_EQ(response.get().backend(), "app");
    EXPECT_TRUE(wait_for_no_permits(httpd, app)) << "a client can have its answer before the call is judged";

    const LoadResult refused = load(httpd.url("/app/x"), {.threads = 8, .requests_per_thread = 20});
    EXPECT_TRUE(refused.all(503)) << refused.describe();
    EXPECT_EQ(refused.from(""), 160U);
    EXPECT_EQ(app.requests(), 12U) << "nothing after the trip";
    const BreakerBlock block = BreakerPage(httpd).member(app);
    EXPECT_EQ(block.number("Calls"), 12U);
    EXPECT_EQ(block.number("Late"), 9U) << "three were the evidence";
    EXPECT_EQ(block.number("Opened"), 1U);
    EXPECT_EQ(transition_lines(httpd).size(), 1U) << httpd.describe();
}

TEST_P(Trip, ClientsOfABalancerGetTheHealthyMemberAndSeeOnlyTheCallsThatWereTheEvidence) {
    Backend bad("bad");
    Backend good("good");
    Httpd httpd(site(std::string(quick_policy) + long_open, balancer_of(member_line(bad) + member_line(good))));
    httpd.start();
    bad.answer(Reply::status(502));
    unsigned failures = 0;
    for (int i = 0; i < 40; ++i) {
        const Response response = get(httpd.url("/app/x"));
        EXPECT_NE(response.backend(), "") << "httpd never answers itself while a member is well";
        failures += response.status == 502 ? 1U : 0U;
    }
    EXPECT_EQ(failures, 3U);
    EXPECT_EQ(bad.requests(), 3U);
    const LoadResult result = load(httpd.url("/app/x"), {.threads = 8, .requests_per_thread = 50});
    EXPECT_TRUE(result.all(200)) << result.describe();
    EXPECT_EQ(bad.requests(), 3U);
}

TEST_P(Trip, ClientsOfABalancerNoticeNothingWhenAMemberRefusesConnections) {
    Backend dead("dead");
    Backend good("good");
    Httpd httpd(site(std::string(quick_policy) + long_open, balancer_of(member_line(dead) + member_line(good))));
    httpd.start();
    dead.refuse();
    const LoadResult result =
        load(httpd.url("/app/x"), {.threads = 8, .requests_per_thread = 40, .keep_connections = false});
    EXPECT_TRUE(result.all(200)) << result.describe() << httpd.describe();
    const BreakerBlock block = BreakerPage(httpd).member(dead);
    EXPECT_EQ(block.at("State"), "open");
    EXPECT_GE(block.number("Outcome-connect"), 3U);
    EXPECT_LE(block.number("Outcome-connect"), 3U + 7U) << "the evidence, and what was under way then";
    EXPECT_EQ(block.number("Failovers"), block.number("Outcome-connect"));
    EXPECT_EQ(transition_lines(httpd).size(), 1U) << httpd.describe();
}

TEST_P(Trip, EachChangeOfStateIsOneLineAndARequestIsNone) {
    Backend app("app");
    Httpd httpd(site(quick_policy, plain_worker(app)));
    httpd.start();
    app.answer(Reply::status(502));
    (void)statuses(10, httpd.url("/app/x"));
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    (void)statuses(1, httpd.url("/app/x"));  // a failing probe
    app.answer_as_usual();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    EXPECT_EQ(statuses(5, httpd.url("/app/x")), "200 200 200 200 200");

    const std::uint64_t probes = BreakerPage(httpd).member(app).number("Probes");
    EXPECT_GE(probes, 2U);  // and more if the ten requests took longer than the open time
    EXPECT_EQ(transitions(httpd, "closed", "open"), 1U);
    EXPECT_EQ(transitions(httpd, "open", "half-open"), probes);
    EXPECT_EQ(transitions(httpd, "half-open", "open"), probes - 1);
    EXPECT_EQ(transitions(httpd, "half-open", "closed"), 1U);
    const std::size_t changes = 1 + 2 * probes;
    EXPECT_EQ(httpd.error_lines_with("circuit breaker").size(), changes) << httpd.describe();
    EXPECT_EQ(httpd.error_lines_with("circuitbreaker:").size(), changes) << "nor any other line of the module";
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Transitions"), changes);
}

TEST_P(Trip, ASuccessInBetweenStartsTheCountOfFailuresAgain) {
    Backend app("app");
    Backend seats("seats");
    Httpd httpd(few_threads_each(site(std::string(quick_policy) + long_open, plain_worker(app) + seats_at(seats)), 2));
    httpd.start();
    ClientForEachChild clients(httpd, seats, 2);
    for (int round = 0; round < 5; ++round) {
        app.answer_next(2, Reply::status(502));
        app.answer_next(1, Reply::ok());
        for (int i = 0; i < 3; ++i)
            EXPECT_EQ(clients.get("/app/x").backend(), "app");
    }
    EXPECT_EQ(state_of(httpd, app), "closed");
    app.answer(Reply::status(502));
    for (int i = 0; i < 6; ++i)
        (void)clients.get("/app/x");
    EXPECT_EQ(app.requests(), 15U + 3U);
}

TEST_P(Trip, AMemberOnAUnixSocketHasABreakerLikeAnyOther) {
    Backend app("app", OnUnixSocket{});
    Backend member("member", OnUnixSocket{});
    Httpd httpd(site(std::string(quick_policy) + long_open, "<Proxy balancer://two>\n" + member_line(member) +
                                                                "</Proxy>\nProxyPass /two balancer://two\n" +
                                                                plain_worker(app)));
    httpd.start();
    for (Backend* backend : {&app, &member}) {
        const std::string url = httpd.url(backend == &app ? "/app/x" : "/two/x");
        EXPECT_EQ(answerers(1, url), backend->name());
        backend->answer(Reply::status(502));
        EXPECT_EQ(answerers(4, url), backend->name() + " " + backend->name() + " " + backend->name() + " httpd");
        EXPECT_EQ(state_of(httpd, *backend), "open");
        EXPECT_EQ(BreakerPage(httpd).member(*backend).number("Calls"), 4U);
    }
}

TEST_P(Trip, OffDoesNothing) {
    Backend app("app");
    Backend watched("watched");
    Httpd httpd(site(std::string(quick_policy) + long_open, "<Proxy \"" + app.member() +
                                                                "\">\n    CircuitBreaker Off\n</Proxy>\nProxyPass /w " +
                                                                watched.member() + "\n" + plain_worker(app)));
    httpd.start();
    app.answer(Reply::status(502));
    watched.answer(Reply::status(502));
    EXPECT_EQ(answerers(10, httpd.url("/app/x")), "app app app app app app app app app app");
    EXPECT_EQ(answerers(4, httpd.url("/w/x")), "watched watched watched httpd") << "the other one's breaker acts";
    EXPECT_TRUE(BreakerPage(httpd).member(app).empty());
    EXPECT_EQ(transition_lines(httpd).size(), 1U);
    EXPECT_TRUE(httpd.wait_for_access_line("path=/app/x member=- state=- verdict=- probe=- rejected=- ", 10));
}

}  // namespace
}  // namespace cb::test
