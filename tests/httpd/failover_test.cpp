// A request that never reached a member goes on to another one, as in stock httpd; each attempt is charged to its own.
#include "outcomes.hpp"

namespace cb::test {
namespace {

class FailedConnect : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, FailedConnect, any_mpm, mpm_name);

/// What several children do at once.
class FailedConnectOfAllChildren : public FailedConnect {};
INSTANTIATE_TEST_SUITE_P(Mpms, FailedConnectOfAllChildren, each_mpm, mpm_name);

TEST_P(FailedConnect, IsChargedToItsOwnMemberThoughTheClientSees200) {
    Backend first("first");
    Backend second("second");
    Backend third("third");
    Httpd httpd(site(counting_policy, balancer_of(member_line(first, "loadfactor=100") +
                                                  member_line(second, "loadfactor=50") + member_line(third))));
    httpd.start();
    first.refuse();
    second.refuse();
    EXPECT_EQ(answerers(4, httpd.url("/app/x")), "third third third third");
    for (const Backend* dead : {&first, &second}) {
        const BreakerBlock block = BreakerPage(httpd).member(*dead);
        EXPECT_EQ(block.number("Outcome-connect"), 4U);
        EXPECT_EQ(block.number("Verdict-failure"), 4U);
        EXPECT_EQ(block.number("Calls"), 4U) << "at most once for each request";
        EXPECT_EQ(block.number("Failovers"), 4U);
    }
    const BreakerBlock block = BreakerPage(httpd).member(third);
    EXPECT_EQ(block.number("Verdict-success"), 4U);
    EXPECT_EQ(block.number("Calls"), 4U);
    EXPECT_EQ(block.number("Failovers"), 0U);
    EXPECT_TRUE(wait_for_no_permits(httpd, first));
}

TEST_P(FailedConnect, GoesOnAsOftenAsMaxattemptsSays) {
    Backend first("first");
    Backend second("second");
    Backend third("third");
    Httpd httpd(
        site(counting_policy, balancer_of(member_line(first, "loadfactor=100") + member_line(second, "loadfactor=50") +
                                          member_line(third) + "    ProxySet maxattempts=1\n")));
    httpd.start();
    first.refuse();
    second.refuse();
    const Response response = get(httpd.url("/app/x"));
    EXPECT_EQ(response.status, 503);
    EXPECT_FALSE(response.headers.has("Retry-After")) << "this is no refusal";
    EXPECT_EQ(third.requests(), 0U);
    EXPECT_EQ(BreakerPage(httpd).member(first).number("Calls"), 1U);
    EXPECT_EQ(BreakerPage(httpd).member(second).number("Calls"), 1U);
}

TEST_P(FailedConnect, OfEveryMemberEndsWithA503) {
    Backend first("first");
    Backend second("second");
    Httpd httpd(site(counting_policy, balancer_of(member_line(first) + member_line(second))));
    httpd.start();
    first.refuse();
    second.refuse();
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "503 503 503");
    EXPECT_EQ(BreakerPage(httpd).member(first).number("Outcome-connect"), 3U);
    EXPECT_EQ(BreakerPage(httpd).member(second).number("Outcome-connect"), 3U);
    EXPECT_EQ(httpd.error_lines_with("All workers are in error state").size(), 0U) << httpd.describe();
    EXPECT_TRUE(httpd.wait_for_access_line("status=503 method=GET path=/app/x", 3));
    EXPECT_EQ(httpd.access_lines_with("verdict=failure:connect probe=- rejected=- ").size(), 3U) << httpd.access_log();
}

TEST_P(FailedConnect, TakesTheBodyAlongUnharmed) {
    Backend dead("dead");
    Backend good("good");
    Httpd httpd(site(counting_policy, balancer_of(member_line(dead, "loadfactor=100") + member_line(good))));
    httpd.start();
    dead.refuse();
    for (const std::size_t size : {std::size_t{5}, std::size_t{10'000}, std::size_t{3'000'000}}) {
        std::string body;
        while (body.size() < size)
            body += std::to_string(body.size()) + " ";
        for (const bool is_chunked : {false, true}) {
            RequestOptions options{.method = "POST", .body = body};
            if (is_chunked) options.headers.add("Transfer-Encoding", "chunked");
            EXPECT_EQ(get(httpd.url("/app/x"), options).backend(), "good");
            const Request request = *good.last_request();
            EXPECT_EQ(request.body_size, body.size());
            EXPECT_EQ(request.body, body.substr(0, Request::most_kept_body));
        }
    }
    EXPECT_EQ(BreakerPage(httpd).member(dead).number("Outcome-connect"), 6U);
}

TEST_P(FailedConnect, TakesThePathOfTheNextMember) {
    Backend first("first");
    Backend second("second");
    Httpd httpd(site(std::string(quick_policy) + long_open,
                     "<Proxy balancer://app>\n    BalancerMember " + first.member() +
                         "/app1 loadfactor=100\n"
                         "    BalancerMember " +
                         second.member() +
                         "/deep/app2\n</Proxy>\n"
                         "ProxyPass /app balancer://app\nProxyPass /shop balancer://app/base\n"));
    httpd.start();
    EXPECT_EQ(get(httpd.url("/app/x%20y?q=1&r=%2F")).backend(), "first");
    EXPECT_EQ(first.last_request()->target, "/app1/x%20y?q=1&r=%2F");
    first.refuse();
    // By failover, and once it is open by choice.
    for (int i = 0; i < 6; ++i) {
        EXPECT_EQ(get(httpd.url("/app/x%20y?q=1&r=%2F")).backend(), "second");
        EXPECT_EQ(second.last_request()->target, "/deep/app2/x%20y?q=1&r=%2F");
        EXPECT_EQ(get(httpd.url("/shop/z?t=2")).backend(), "second");
        EXPECT_EQ(second.last_request()->target, "/deep/app2/base/z?t=2");
    }
    EXPECT_EQ(BreakerPage(httpd).member(first.member() + "/app1").at("State"), "open");
    EXPECT_EQ(BreakerPage(httpd).member(first.member() + "/app1").number("Outcome-connect"), 3U);
}

TEST_P(FailedConnect, GoesOnToAMemberWithoutABreakerToo) {
    Backend dead("dead");
    Backend bare("bare");
    Httpd httpd(site(std::string(quick_policy) + long_open,
                     "<Proxy \"" + bare.member() + "\">\n    CircuitBreaker Off\n</Proxy>\n" +
                         balancer_of(member_line(dead, "loadfactor=100") + member_line(bare))));
    httpd.start();
    dead.refuse();
    EXPECT_EQ(answerers(6, httpd.url("/app/x")), "bare bare bare bare bare bare");
    EXPECT_EQ(BreakerPage(httpd).member(dead).number("Outcome-connect"), 3U);
    EXPECT_TRUE(BreakerPage(httpd).member(bare).empty());
    EXPECT_TRUE(wait_for_no_permits(httpd, dead));
}

TEST_P(FailedConnect, OfAMemberWithoutABreakerIsModProxysAffair) {
    for (const std::string recovery : {"retry=600", "retry=1"}) {
        Backend bare("bare");
        Backend open("open");
        Httpd httpd(site(std::string(quick_policy) + long_open,
                         "<Proxy \"" + bare.member() + "\">\n    CircuitBreaker Off\n</Proxy>\n" +
                             balancer_of(member_line(bare, "loadfactor=100 " + recovery) + member_line(open) +
                                         (recovery == "retry=1" ? "    ProxySet forcerecovery=Off\n" : ""))));
        httpd.start();
        bare.refuse();
        EXPECT_EQ(answerers(3, httpd.url("/app/x")), "open open open") << "its own failover";
        open.answer(Reply::status(502));
        EXPECT_EQ(statuses(3, httpd.url("/app/x")), "502 502 502");
        EXPECT_EQ(state_of(httpd, open), "open");
        bare.accept_again();
        // By forcerecovery at once, else after retry= seconds: whatever the breaker of the other one says.
        if (recovery == "retry=600") {
            EXPECT_EQ(answerers(1, httpd.url("/app/x")), "bare");
        }
        EXPECT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).backend() == "bare"; }, patience, "a retry"));
        EXPECT_EQ(answerers(3, httpd.url("/app/x")), "bare bare bare");
        EXPECT_EQ(open.requests(), 6U);
    }
}

TEST_P(FailedConnectOfAllChildren, UnderLoadLosesNoRequestAndNoPermit) {
    Backend one("one");
    Backend two("two");
    Backend three("three");
    Httpd httpd(
        site(std::string(quick_policy) + "CircuitBreakerOpenTime 100ms jitter=0 factor=1\nCircuitBreakerFailover Off\n",
             balancer_of(member_line(one) + member_line(two) + member_line(three))));
    httpd.start();
    BackgroundLoad clients(httpd.url("/app/x"), {.threads = 8, .keep_connections = false});
    // One is down at any time, each a few times.
    for (int i = 0; i < 6; ++i) {
        Backend& down = i % 2 == 0 ? one : two;
        down.refuse();
        EXPECT_TRUE(clients.wait_for_answers(80));
        down.accept_again();
        EXPECT_TRUE(clients.wait_for_answers(80));
    }
    const LoadResult result = clients.finish();
    // Those that were connected already when the server went down have reached it, at least in part: they are its to
    // lose, whether the connection broke while the request was written or while the answer was awaited.
    std::uint64_t lost = 0;
    for (const Backend* backend : {&one, &two, &three}) {
        EXPECT_TRUE(wait_for_no_permits(httpd, *backend));
        const BreakerBlock block = BreakerPage(httpd).member(*backend);
        lost += block.number("Outcome-reset") + block.number("Outcome-stale");
    }
    EXPECT_EQ(result.total() - result.with_status(200), lost) << result.describe() << httpd.describe();
    EXPECT_GE(lost, httpd.error_lines_with("error reading status line").size());
    EXPECT_EQ(result.with_status(503), 0U) << result.describe();
    EXPECT_GT(BreakerPage(httpd).member(one).number("Outcome-connect") +
                  BreakerPage(httpd).member(two).number("Outcome-connect"),
              0U);
}

}  // namespace
}  // namespace cb::test
