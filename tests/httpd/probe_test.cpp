// Half-open: how many requests may try a member again, and what becomes of it then.
#include "trip.hpp"

namespace cb::test {
namespace {

std::string probes(const std::string& line) {
    return quick_policy + ("CircuitBreakerProbes " + line + "\n");
}

class Probe : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, Probe, each_mpm, mpm_name);

TEST_P(Probe, FiftyClientsAtTheEndOfTheOpenTimeGetNoMoreThanTheRoundLetsIn) {
    Backend app("app");
    Httpd httpd(crowded(probes("3 concurrent=2"), plain_worker(app)));
    httpd.start();
    trip(httpd, app);
    app.hold();
    // They are at it before the open time ends, so that its end finds all of them there.
    BackgroundLoad clients(httpd.url("/app/x"), {.threads = 50, .keep_connections = false});
    ASSERT_TRUE(app.wait_for_concurrent(2)) << httpd.describe();
    ASSERT_TRUE(clients.wait_for_answers(300));
    EXPECT_EQ(app.requests(), 2U) << "two at once, and no third while they are under way";

    app.release_some(1);
    ASSERT_TRUE(app.wait_for_requests(3));
    ASSERT_TRUE(clients.wait_for_answers(300));
    EXPECT_EQ(app.requests(), 3U) << "three in the round";
    EXPECT_EQ(app.peak(), 2U);
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Probes"), 3U);

    app.release_some(1);
    ASSERT_TRUE(clients.wait_for_answers(300));
    EXPECT_EQ(app.requests(), 3U) << "two successes of three: nobody else yet";
    EXPECT_EQ(state_of(httpd, app), "half-open");
    app.release();
    ASSERT_TRUE(wait_for_state(httpd, app, "closed"));
    ASSERT_TRUE(app.wait_for_requests(100));
    const LoadResult result = clients.finish();
    EXPECT_EQ(result.with_status(200) + result.with_status(503), result.total()) << result.describe();
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Probes"), 3U);
    EXPECT_EQ(transition_lines(httpd).size(), 3U) << httpd.describe();
    EXPECT_TRUE(wait_for_no_permits(httpd, app));
}

TEST_P(Probe, FiftyClientsOfABalancerGetTheHealthyMemberButForThoseInTheRound) {
    Backend ill("ill");
    Backend good("good");
    Httpd httpd(crowded(probes("2"), balancer_of(member_line(ill) + member_line(good))));
    httpd.start();
    ill.refuse();
    EXPECT_EQ(answerers(8, httpd.url("/app/x")), "good good good good good good good good");
    ASSERT_EQ(state_of(httpd, ill), "open");
    const std::uint64_t probes_in_vain = BreakerPage(httpd).member(ill).number("Probes");  // on a slow machine
    ill.hold();
    ill.accept_again();
    BackgroundLoad clients(httpd.url("/app/x"), {.threads = 50, .keep_connections = false});
    ASSERT_TRUE(ill.wait_for_concurrent(2)) << httpd.describe();
    ASSERT_TRUE(clients.wait_for_answers(300));
    EXPECT_EQ(ill.requests(), 2U);
    ill.release();
    ASSERT_TRUE(wait_for_state(httpd, ill, "closed"));
    ASSERT_TRUE(ill.wait_for_requests(50));
    const LoadResult result = clients.finish();
    EXPECT_TRUE(result.all(200)) << result.describe() << httpd.describe();
    EXPECT_EQ(BreakerPage(httpd).member(ill).number("Probes"), probes_in_vain + 2);
    EXPECT_TRUE(wait_for_no_permits(httpd, ill));
    EXPECT_TRUE(wait_for_no_permits(httpd, good));
}

TEST_P(Probe, RoundsThatFailUnderFiftyClientsStayWithinTheirCaps) {
    Backend app("app");
    Httpd httpd(
        crowded(probes("3 concurrent=2") + "CircuitBreakerOpenTime 200ms jitter=0 factor=1\n", plain_worker(app)));
    httpd.start();
    trip(httpd, app);
    app.answer(Reply::status(502).after(20ms));
    BackgroundLoad clients(httpd.url("/app/x"), {.threads = 50, .keep_connections = false});
    ASSERT_TRUE(httpd.wait_for_error_line("half-open -> open: probe failed", 5)) << httpd.describe();
    const LoadResult result = clients.finish();
    EXPECT_EQ(result.total(), result.with_status(502) + result.with_status(503)) << result.describe();
    EXPECT_TRUE(app.wait_until_quiet());
    EXPECT_LE(app.peak(), 2U);
    const std::size_t rounds = transitions(httpd, "open", "half-open");
    // The first failure ends a round, so one that came with it is all that a round can have more.
    EXPECT_LE(app.requests(), 2 * rounds);
    EXPECT_GE(app.requests(), rounds);
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Probes"), app.requests()) << "whoever was let in was a probe";
    EXPECT_TRUE(wait_for_no_permits(httpd, app));

    app.answer_as_usual();
    EXPECT_TRUE(
        wait_until([&] { return get(httpd.url("/app/x")).status == 200; }, patience, "a well member to be used"));
}

TEST_P(Probe, FailuresAreToleratedAsOftenAsConfiguredAndReplaced) {
    Backend app("app");
    Httpd httpd(site(probes("4 concurrent=1 tolerate=2 successes=3"), plain_worker(app)));
    httpd.start();
    trip(httpd, app);
    for (const int status : {502, 200, 504, 200, 200})
        app.answer_next(1, Reply::status(status));
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    EXPECT_EQ(statuses(4, httpd.url("/app/x")), "502 200 504 200");
    EXPECT_EQ(state_of(httpd, app), "half-open");
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "200");
    EXPECT_EQ(state_of(httpd, app), "closed") << "three successes";
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "200 200 200");
    EXPECT_TRUE(httpd.wait_for_error_line("half-open -> closed: probes succeeded, 3 succeeded, 2 failed"));
}

TEST_P(Probe, AToleratedFailureNeedsNoFurtherProbeWhereSuccessesIsNotWritten) {
    for (const std::string tolerate : {"2", "50%"}) {
        Backend app("app");
        Httpd httpd(site(probes("4 concurrent=1 tolerate=" + tolerate), plain_worker(app)));
        httpd.start();
        trip(httpd, app);
        for (const int status : {502, 200, 504, 200})
            app.answer_next(1, Reply::status(status));
        ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
        EXPECT_EQ(statuses(4, httpd.url("/app/x")), "502 200 504 200");
        EXPECT_EQ(state_of(httpd, app), "closed");
        EXPECT_EQ(BreakerPage(httpd).member(app).number("Probes"), 4U);
        EXPECT_TRUE(httpd.wait_for_error_line("half-open -> closed: probes succeeded, 2 succeeded, 2 failed"));
    }
}

TEST_P(Probe, AToleratedFailureIsNotReplacedWhileTheOthersMayBeEnough) {
    Backend app("app");
    Httpd httpd(crowded(probes("4 tolerate=25%"), plain_worker(app)));
    httpd.start();
    trip(httpd, app);
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    app.forget();
    app.hold();
    std::vector<std::future<Response>> responses;
    for (int i = 0; i < 4; ++i)
        responses.push_back(get_later(httpd.url("/app/x")));
    ASSERT_TRUE(app.wait_for_concurrent(4)) << httpd.describe();
    app.answer_next(1, Reply::status(502));
    app.release_some(1);
    ASSERT_TRUE(
        wait_until([&] { return app.concurrent() == 3 && BreakerPage(httpd).member(app).number("Probes-failed") == 1; },
                   patience, "the failure"));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "503 503 503");
    EXPECT_EQ(app.requests(), 4U);
    app.release();
    EXPECT_TRUE(wait_for_state(httpd, app, "closed")) << "three of four";
    for (auto& response : responses)
        EXPECT_EQ(response.get().backend(), "app");
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Probes"), 4U);
}

TEST_P(Probe, OneFailureTooManyOpensAgainOneLevelUp) {
    Backend app("app");
    Httpd httpd(site(
        probes("4 concurrent=1 tolerate=2 successes=75%") + "CircuitBreakerOpenTime 500ms max=1h factor=100 jitter=0\n",
        plain_worker(app)));
    httpd.start();
    trip(httpd, app);
    for (const int status : {200, 502, 200, 504, 503})
        app.answer_next(1, Reply::status(status));
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    EXPECT_EQ(answerers(6, httpd.url("/app/x")), "app app app app app httpd");
    const BreakerBlock block = BreakerPage(httpd).member(app);
    EXPECT_EQ(block.at("State"), "open");
    EXPECT_EQ(block.number("Level"), 1U);
    EXPECT_EQ(block.number("Probes"), 5U);
}

TEST_P(Probe, TheOpenTimeGrowsByItsFactorUpToItsMaximumAndIsShortAgainAfterEnoughSuccesses) {
    Backend app("app");
    Httpd httpd(site(std::string(quick_policy) +
                         "CircuitBreakerOpenTime 200ms max=800ms factor=2 jitter=0\nCircuitBreakerMinimumCalls 4\n",
                     plain_worker(app)));
    httpd.start();
    trip(httpd, app);
    const auto fail_a_probe = [&] {
        ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
        app.answer_next(1, Reply::status(502));
        EXPECT_EQ(statuses(1, httpd.url("/app/x")), "502");
    };
    const auto pass_a_probe = [&] {
        ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
        EXPECT_EQ(statuses(1, httpd.url("/app/x")), "200");
    };
    fail_a_probe();
    fail_a_probe();
    fail_a_probe();
    pass_a_probe();
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "200 200 200") << "closed, but not yet proven well";
    trip(httpd, app);
    pass_a_probe();
    EXPECT_EQ(statuses(4, httpd.url("/app/x")), "200 200 200 200") << "proven well";
    trip(httpd, app);

    std::string times;
    for (const std::string& line : transition_lines(httpd)) {
        const auto at = line.find("next probe in ");
        if (at != std::string::npos) times += line.substr(at + 14) + ", ";
    }
    EXPECT_EQ(times,
              "0.2 s (level 0), 0.4 s (level 1), 0.8 s (level 2), 0.8 s (level 3), 0.8 s (level 4), 0.2 s (level 0), ");
}

TEST_P(Probe, ASlowProbeIsAFailedOne) {
    Backend app("app");
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerSlowCall 600ms\n", plain_worker(app)));
    httpd.start();
    trip(httpd, app);
    app.answer_next(1, Reply::ok().after(800ms));
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "200");
    const BreakerBlock block = BreakerPage(httpd).member(app);
    EXPECT_EQ(block.at("State"), "open");
    EXPECT_EQ(block.number("Level"), 1U);
}

TEST_P(Probe, ARecoveredMemberGetsItsShareOfTheTrafficAgain) {
    Backend ill("ill");
    Backend good("good");
    Httpd httpd(site(probes("3"), balancer_of(member_line(ill) + member_line(good))));
    httpd.start();
    ill.refuse();
    EXPECT_EQ(answerers(8, httpd.url("/app/x")), "good good good good good good good good");
    ASSERT_EQ(state_of(httpd, ill), "open");
    ill.accept_again();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, ill));
    EXPECT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).status != 200 || ill.requests() >= 3; }, patience,
                           "three probes"));
    EXPECT_EQ(state_of(httpd, ill), "closed");
    ill.forget();
    good.forget();
    const LoadResult result = load(httpd.url("/app/x"), {.threads = 4, .requests_per_thread = 25});
    EXPECT_TRUE(result.all(200)) << result.describe();
    EXPECT_GE(ill.requests(), 30U);
    EXPECT_GE(good.requests(), 30U);
}

TEST_P(Probe, ResultsFromBeforeTheTripDecideNothingInHalfOpen) {
    Gate old_calls;
    Gate new_probe;
    Backend app("app");
    HttpdOptions options = site(probes("1"), plain_worker(app));
    options.children = GetParam() == Mpm::prefork ? 8 : 2;
    Httpd httpd(options);
    httpd.start();
    app.answer([&](const Request& request) {
        if (request.path == "/old-failure" || request.path == "/old-success") old_calls.pass();
        if (request.path == "/probe") new_probe.pass();
        return Reply::status(request.path == "/old-failure" || request.path == "/trip" ? 502 : 200);
    });
    std::vector<std::future<Response>> old;
    for (int i = 0; i < 2; ++i)
        old.push_back(get_later(httpd.url("/app/old-failure")));
    for (int i = 0; i < 2; ++i)
        old.push_back(get_later(httpd.url("/app/old-success")));
    ASSERT_TRUE(old_calls.wait_for(4));
    EXPECT_EQ(statuses(3, httpd.url("/app/trip")), "502 502 502");
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    std::future<Response> probe = get_later(httpd.url("/app/probe"));
    ASSERT_TRUE(new_probe.wait_for(1));

    old_calls.open();
    for (auto& response : old)
        EXPECT_EQ(response.get().backend(), "app");
    ASSERT_TRUE(wait_for_counter(httpd, app, "Late", 4));
    BreakerBlock block = BreakerPage(httpd).member(app);
    EXPECT_EQ(block.at("State"), "half-open");
    EXPECT_EQ(block.number("Probes-in-flight"), 1U);
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "503") << "the only slot is still taken";

    new_probe.open();
    EXPECT_EQ(probe.get().status, 200);
    EXPECT_TRUE(wait_for_state(httpd, app, "closed"));
    EXPECT_EQ(transition_lines(httpd).size(), 3U) << httpd.describe();
}

TEST_P(Probe, TwoThatComeInTheSameInstantAreOneTransition) {
    Backend app("app");
    Httpd httpd(crowded(probes("1") + "CircuitBreakerOpenTime 150ms jitter=0 factor=1\n", plain_worker(app)));
    httpd.start();
    trip(httpd, app);
    for (int round = 0; round < 8; ++round) {
        app.answer(Reply::status(502));
        app.hold();
        ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
        std::future<std::vector<Response>> clients =
            std::async(std::launch::async, [&] { return get_at_once(6, httpd.url("/app/x")); });
        ASSERT_TRUE(app.wait_for_concurrent(1)) << httpd.describe();
        ASSERT_TRUE(
            httpd.wait_for_access_line("status=503 method=GET path=/app/x", static_cast<std::size_t>(5 * (round + 1))));
        app.release();
        unsigned answered = 0;
        for (const Response& response : clients.get())
            answered += response.backend() == "app" ? 1U : 0U;
        EXPECT_EQ(answered, 1U);
    }
    EXPECT_EQ(app.requests(), 8U);
    EXPECT_EQ(app.peak(), 1U);
    EXPECT_EQ(transitions(httpd, "open", "half-open"), 8U);
    EXPECT_EQ(transitions(httpd, "half-open", "open"), 8U);
    EXPECT_EQ(transition_lines(httpd).size(), 17U) << httpd.describe();
}

}  // namespace
}  // namespace cb::test
