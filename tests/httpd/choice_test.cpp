// What mod_proxy's own settings and checks may do to a member whose breaker is open: nothing; and balancers none of
// whose members may be asked.
#include "traffic.hpp"

namespace cb::test {
namespace {

/// As "httpd httpd httpd ...".
std::string refusals(unsigned count) {
    std::string text = "httpd";
    for (unsigned i = 1; i < count; ++i)
        text += " httpd";
    return text;
}

class Choice : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, Choice, any_mpm, mpm_name);

TEST_P(Choice, TheBreakersTimesHoldWhateverModProxyIsToldAboutErrors) {
    struct Site {
        const char* of_member;
        const char* of_balancer;
        Backend soon{"soon"};  // may be probed again in this test
        Backend late{"late"};
        Backend other{"other"};
    };
    Site sites[4] = {{"retry=0", "forcerecovery=On"},
                     {"retry=600", "forcerecovery=Off failontimeout=On"},
                     {"status=+I", "failonstatus=502"},
                     {"retry=600 status=-I", "forcerecovery=On"}};
    std::string config;
    unsigned balancers = 0;
    for (Site& site : sites) {
        config +=
            "<Proxy \"" + site.soon.member() + "\">\n    CircuitBreakerOpenTime 300ms factor=1 jitter=0\n</Proxy>\n";
        for (const Backend* app : {&site.late, &site.soon}) {
            const std::string name = "app" + std::to_string(balancers++);
            config += "<Proxy balancer://" + name + ">\n" + member_line(*app, site.of_member) +
                      member_line(site.other, site.of_member) + "    ProxySet " + site.of_balancer +
                      "\n</Proxy>\nProxyPass /" + name + " balancer://" + name + "\n";
        }
    }
    Httpd httpd(site(std::string(quick_policy) + long_open, config));
    httpd.start();
    balancers = 0;
    for (Site& site : sites) {
        SCOPED_TRACE(site.of_member);
        const std::string of_late = httpd.url("/app" + std::to_string(balancers++) + "/x");
        const std::string of_soon = httpd.url("/app" + std::to_string(balancers++) + "/x");
        for (Backend* app : {&site.late, &site.soon}) {
            app->refuse();
            site.other.answer_as_usual();
            const std::string& url = app == &site.late ? of_late : of_soon;
            EXPECT_EQ(answerers(8, url), "other other other other other other other other");
            EXPECT_EQ(state_of(httpd, *app), "open");
            site.other.answer(Reply::status(502));
            EXPECT_EQ(statuses(3, url), "502 502 502");
        }
        site.late.accept_again();
        EXPECT_EQ(answerers(20, of_late), refusals(20));
        EXPECT_EQ(site.late.connections(), 0U) << "not before the open time is over";

        site.soon.accept_again();
        ASSERT_TRUE(wait_for_end_of_open_time(httpd, site.soon));
        EXPECT_EQ(answerers(1, of_soon), "soon") << "and at once when it is";
        EXPECT_EQ(state_of(httpd, site.soon), "closed");
    }
}

TEST_P(Choice, WithAllMembersOpenARefusalComesAtOnceAndTheLogStaysQuiet) {
    Backend one("one");
    Backend two("two");
    // With timeout= mod_proxy would let each request wait so long for a member. (With fewer processes httpd itself
    // might say that they are all busy.)
    Httpd httpd(
        crowded(std::string(quick_policy) + long_open,
                balancer_of(member_line(one) + member_line(two) + "    ProxySet timeout=300 forcerecovery=On\n")));
    httpd.start();
    one.answer(Reply::status(502));
    two.answer(Reply::status(502));
    EXPECT_EQ(statuses(6, httpd.url("/app/x")), "502 502 502 502 502 502");
    const std::size_t lines = httpd.error_lines_with("").size();
    const LoadResult result = load(httpd.url("/app/x"), {.threads = 6, .requests_per_thread = 50});
    EXPECT_TRUE(result.all(503)) << result.describe();
    EXPECT_EQ(result.from(""), 300U);
    EXPECT_TRUE(get(httpd.url("/app/x")).headers.has("Retry-After"));
    EXPECT_EQ(one.requests() + two.requests(), 6U);
    EXPECT_EQ(httpd.error_lines_with("").size(), lines) << httpd.describe();
    EXPECT_TRUE(httpd.wait_for_access_line("rejected=open ", 301));
}

TEST_P(Choice, RetryAfterIsThatOfTheMemberThatMayBeAskedFirst) {
    Backend late("late");
    Backend soon("soon");
    Backend latest("latest");
    Httpd httpd(site(std::string(quick_policy) + long_open,
                     "<Proxy \"" + soon.member() + "\">\n    CircuitBreakerOpenTime 60s jitter=0 min=60s\n</Proxy>\n" +
                         balancer_of(member_line(late) + member_line(soon) + member_line(latest))));
    httpd.start();
    for (Backend* backend : {&late, &soon, &latest})
        backend->answer(Reply::status(502));
    (void)statuses(9, httpd.url("/app/x"));
    const unsigned long seconds = std::stoul(get(httpd.url("/app/x")).header("Retry-After"));
    EXPECT_LE(seconds, 60U);
    EXPECT_GE(seconds, 50U);
}

TEST_P(Choice, AMemberThatDrainsOrIsDisabledIsNoWayOutAndNoReasonToLog) {
    for (const std::string status : {"+N", "+D", "+S"}) {
        Backend app("app");
        Backend out("out");
        Httpd httpd(
            site(std::string(quick_policy) + long_open,
                 balancer_of(member_line(app) + member_line(out, "status=" + status) + "    ProxySet timeout=300\n")));
        httpd.start();
        app.answer(Reply::status(502));
        EXPECT_EQ(statuses(3, httpd.url("/app/x")), "502 502 502");
        const Response refused = get(httpd.url("/app/x"));
        EXPECT_EQ(refused.status, 503) << status << " " << refused.error;
        EXPECT_TRUE(refused.headers.has("Retry-After")) << status;
        EXPECT_EQ(httpd.error_lines_with("All workers are in error state").size(), 0U) << status;
        EXPECT_EQ(out.requests(), 0U);
    }
}

TEST_P(Choice, PassingHealthChecksNeverCloseABreakerNorSkipItsRamp) {
    Backend open("open");
    Backend back("back");
    const std::string checked = "hcmethod=TCP hcinterval=100ms hcpasses=1 hcfails=1";
    HttpdOptions options = site(std::string(quick_policy) + long_open + "CircuitBreakerRampUp 24h from=1\n<Proxy \"" +
                                    back.member() + "\">\n    CircuitBreakerOpenTime 100ms jitter=0\n</Proxy>\n",
                                balancer_of(member_line(open, checked)) + "<Proxy balancer://back>\n" +
                                    member_line(back, checked) + "</Proxy>\nProxyPass /back balancer://back\n");
    options.add_modules = {"proxy_hcheck"};
    Httpd httpd(options);
    httpd.start();
    open.answer(Reply::status(502));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "502 502 502");
    const auto wait_for_checks = [](const Backend& of) {
        const unsigned before = of.connections();
        return wait_until([&] { return of.connections() >= before + 4; }, patience, "health checks that pass");
    };
    ASSERT_TRUE(wait_for_checks(open));
    EXPECT_EQ(answerers(10, httpd.url("/app/x")), refusals(10));
    EXPECT_EQ(state_of(httpd, open), "open");
    EXPECT_EQ(open.requests(), 3U);

    back.answer_next(3, Reply::status(502));
    EXPECT_EQ(statuses(3, httpd.url("/back/x")), "502 502 502");
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, back));
    EXPECT_EQ(statuses(1, httpd.url("/back/x")), "200");
    ASSERT_TRUE(wait_for_checks(back));
    EXPECT_EQ(state_of(httpd, back), "recovering");
    EXPECT_EQ(back.requests(), 4U);
}

TEST_P(Choice, AMemberThatFailsItsHealthChecksIsNoWayOutAndTheLogStaysQuiet) {
    Backend app("app");
    Backend unwell("unwell");
    HttpdOptions options =
        site(std::string(quick_policy) + long_open,
             balancer_of(member_line(app) + member_line(unwell, "hcmethod=TCP hcinterval=100ms hcpasses=1 hcfails=1") +
                         "    ProxySet timeout=300\n"));
    options.add_modules = {"proxy_hcheck"};
    options.log_level = "notice proxy_hcheck:info";
    Httpd httpd(options);
    httpd.start();
    unwell.refuse();
    ASSERT_TRUE(httpd.wait_for_error_line("Health check DISABLING")) << httpd.describe();
    app.answer(Reply::status(502));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "502 502 502");
    EXPECT_TRUE(get(httpd.url("/app/x")).headers.has("Retry-After"));
    EXPECT_EQ(httpd.error_lines_with("All workers are in error state").size(), 0U) << httpd.describe();
    unwell.accept_again();
    EXPECT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).backend() == "unwell"; }, patience,
                           "the checks' verdict to hold"));
    EXPECT_EQ(state_of(httpd, unwell), "closed");
}

TEST_P(Choice, YesterdaysFailuresCountForNothing) {
    Backend app("app");
    Httpd httpd(
        site("CircuitBreaker On\nCircuitBreakerConsecutiveFailures Off\nCircuitBreakerFailureRate 50\n"
             "CircuitBreakerMinimumCalls 5\nCircuitBreakerWindow 1s\n" +
                 std::string(long_open),
             plain_worker(app)));
    httpd.start();
    app.answer(Reply::status(502));
    // On a busy machine it may take several days to have four failures on one.
    ASSERT_TRUE(wait_until(
        [&] {
            for (const Response& failed : get_at_once(4, httpd.url("/app/x")))
                EXPECT_EQ(failed.status, 502);
            const bool are_many = BreakerPage(httpd).member(app).number("Window-failures") == 4;
            EXPECT_TRUE(wait_until([&] { return BreakerPage(httpd).member(app).number("Window-calls") == 0; }, patience,
                                   "the night to pass"));
            return are_many;
        },
        patience, "four failures in a window"));
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "502");
    EXPECT_EQ(state_of(httpd, app), "closed");
    EXPECT_LE(BreakerPage(httpd).member(app).number("Window-failures"), 1U);
}

TEST_P(Choice, MaxOpenKeepsEnoughMembersAndSaysSoOnce) {
    Backend one("one");
    Backend two("two");
    Backend bare("bare");
    Backend disabled("disabled");
    // A third of three that mod_proxy could use; the one without a breaker is one of them.
    Httpd httpd(site(
        std::string(quick_policy) + long_open + "CircuitBreakerMaxOpen 34\n",
        "<Proxy \"" + bare.member() + "\">\n    CircuitBreaker Off\n</Proxy>\n" +
            balancer_of(member_line(one) + member_line(two) + member_line(bare) + member_line(disabled, "status=+D"))));
    httpd.start();
    for (Backend* backend : {&one, &two})
        backend->answer(Reply::status(502));
    (void)statuses(40, httpd.url("/app/x"));
    const BreakerPage page(httpd);
    const std::string states = page.member(one).at("State") + " " + page.member(two).at("State");
    EXPECT_TRUE(states == "open closed" || states == "closed open") << states;
    Backend& stays = states == "open closed" ? two : one;
    EXPECT_GT(stays.requests(), 10U);
    EXPECT_GE(page.member(stays).number("Suppressed"), 1U);
    EXPECT_EQ(httpd.error_lines_with("suppressed").size(), 1U) << httpd.describe();
    EXPECT_EQ(transition_lines(httpd).size(), 1U);
}

TEST_P(Choice, OfAMemberThatWasAddedMeanwhileAndRefusesEnds) {
    Backend own("own");
    Backend added("added");
    Httpd httpd(site(std::string(quick_policy) + long_open,
                     load_test_module("stray_choice") + balancer_of(member_line(own)) + "<Proxy balancer://more>\n" +
                         member_line(added) + "</Proxy>\nProxyPass /more balancer://more\n"));
    httpd.start();
    const RequestOptions choose_added{.headers = {{"X-Choose", "balancer://more " + added.member()}}};
    EXPECT_EQ(get(httpd.url("/app/x"), choose_added).backend(), "added");
    added.answer(Reply::status(502));
    EXPECT_EQ(statuses(4, httpd.url("/more/x")), "502 502 502 503");
    const Response refused = get(httpd.url("/app/x"), choose_added);
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(added.requests(), 4U);
    EXPECT_EQ(own.requests(), 0U);
    EXPECT_EQ(get(httpd.url("/app/x")).backend(), "own");
}

}  // namespace
}  // namespace cb::test
