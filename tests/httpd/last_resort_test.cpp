// Where no other member is left, the open one that is due first is probed before its open time is over.
#include "last_resort.hpp"
#include "events.hpp"

namespace cb::test {
namespace {

class LastResort : public LastResortTest {
  protected:
    [[nodiscard]] std::string both(const std::string& more = "") const {
        return balancer_of(member_line(one_) + member_line(two_) + more);
    }
    /// `one` is due first.
    [[nodiscard]] std::string one_first() const {
        return "<Proxy \"" + one_.member() +
               "\">\n    CircuitBreakerOpenTime 1min factor=1 jitter=0 min=300ms\n</Proxy>\n";
    }
};
INSTANTIATE_TEST_SUITE_P(Mpms, LastResort, any_mpm, mpm_name);

/// What several children do at once.
class LastResortOfAllChildren : public LastResort {};
INSTANTIATE_TEST_SUITE_P(Mpms, LastResortOfAllChildren, each_mpm, mpm_name);

TEST_P(LastResort, IsTheMemberThatIsDueFirstAndComesBackAsAfterAnyProbe) {
    HttpdOptions options =
        site(last_resort_policy + "CircuitBreakerEventLog events.json probes=Off\n", one_first() + both());
    Httpd httpd(options);
    httpd.start();
    trip(httpd, {&one_, &two_});
    EXPECT_EQ(answerers(1, httpd.url("/app/x")), "one");
    EXPECT_EQ(two_.requests(), 0U);
    EXPECT_EQ(state_of(httpd, one_), "closed");
    EXPECT_EQ(BreakerPage(httpd).member(one_).number("Probed-early"), 1U);
    EXPECT_EQ(httpd.error_lines_with("probed early: no other member").size(), 1U) << httpd.describe();
    EXPECT_EQ(answerers(4, httpd.url("/app/x")), "one one one one") << "now there is another member";
    ASSERT_TRUE(wait_for_events(httpd.root() / "events.json", 3));
    const std::vector<Event> events = read_events(httpd.root() / "events.json");
    EXPECT_EQ(summary(events).back(), "open -> closed");
    EXPECT_EQ(events.back().text("reason"), "probes succeeded");
}

TEST_P(LastResort, ThatFailsStaysOpenAsItWasAndTheNextOneIsAsked) {
    Httpd httpd(
        site(last_resort_policy + "CircuitBreakerEventLog events.json probes=Off\nLogLevel circuitbreaker:info\n",
             one_first() + both()));
    httpd.start();
    open(httpd, {&one_, &two_});
    ASSERT_TRUE(wait_for_minimum(httpd, two_));
    two_.answer_as_usual();
    one_.forget();
    const std::uint64_t left = BreakerPage(httpd).member(one_).number("Next-probe-ms");
    EXPECT_EQ(answerers(1, httpd.url("/app/x")), "two") << "withheld, as any probe's failing answer";
    EXPECT_EQ(one_.requests(), 1U);
    const BreakerBlock block = BreakerPage(httpd).member(one_);
    EXPECT_EQ(block.at("State"), "open");
    EXPECT_EQ(block.number("Level"), 0U);
    EXPECT_EQ(block.number("Generation"), 1U) << "no change of state";
    EXPECT_LE(block.number("Next-probe-ms"), left);
    EXPECT_GT(block.number("Next-probe-ms"), left / 2);
    EXPECT_EQ(httpd
                  .error_lines_with(
                      "stays open: its early probes failed: probe failed, 0 succeeded, 1 failed, 0 proved nothing; ")
                  .size(),
              1U)
        << httpd.describe();
    ASSERT_TRUE(wait_for_events(httpd.root() / "events.json", 3));
    EXPECT_EQ(read_events(httpd.root() / "events.json").size(), 3U) << "two trips and the recovery of `two`";
}

TEST_P(LastResort, IsAskedNoMoreOftenThanTheMinimumSaysAndLoggedOnce) {
    Httpd httpd(site(last_resort_policy, both()));
    httpd.start();
    open(httpd, {&one_, &two_});
    one_.forget();
    two_.forget();
    for (unsigned round = 1; round <= 3; ++round) {
        ASSERT_TRUE(wait_until(
            [&] {
                EXPECT_EQ(get(httpd.url("/app/x")).status, 503);
                return one_.requests() >= round && two_.requests() >= round;
            },
            patience, "probes that fail"));
    }
    const std::uint64_t open_for = BreakerPage(httpd).member(one_).number("Since-ms");
    EXPECT_LE(one_.requests(), open_for / 300);
    EXPECT_EQ(httpd.error_lines_with("probed early").size(), 2U) << httpd.describe();
    EXPECT_EQ(transition_lines(httpd).size(), 2U) << httpd.describe();
    EXPECT_TRUE(httpd.error_lines_with("flapping").empty());
}

TEST_P(LastResort, IsNoneWithoutForcerecoveryNorForABalancerOfOneOrAPlainWorker) {
    // The members of /app are the clock: when both have been asked early, the others could have been, too.
    Backend strict_one("strict_one");
    Backend strict_two("strict_two");
    Backend alone("alone");
    Backend plain("plain");
    const std::string others = "<Proxy balancer://strict>\n" + member_line(strict_one) + member_line(strict_two) +
                               "    ProxySet forcerecovery=Off\n</Proxy>\nProxyPass /strict balancer://strict\n" +
                               "<Proxy balancer://alone>\n" + member_line(alone) +
                               "</Proxy>\nProxyPass /alone balancer://alone\nProxyPass /plain " + plain.member() + "\n";
    Httpd httpd(site(last_resort_policy, others + both()));
    httpd.start();
    for (Backend* member : {&strict_one, &strict_two, &alone, &plain})
        member->answer(Reply::status(503));
    EXPECT_EQ(statuses(6, httpd.url("/strict/x")), "503 503 503 503 503 503");
    EXPECT_EQ(statuses(3, httpd.url("/alone/x")), "503 503 503");
    EXPECT_EQ(statuses(3, httpd.url("/plain/x")), "503 503 503");
    for (Backend* member : {&strict_one, &strict_two, &alone, &plain}) {
        ASSERT_TRUE(is_open(httpd, *member));
        member->answer_as_usual();
        member->forget();
    }
    open(httpd, {&one_, &two_});
    one_.answer_as_usual();
    ASSERT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).status == 200; }, patience, "an early probe"));
    for (const char* path : {"/strict/x", "/alone/x", "/plain/x"}) {
        const Response refused = get(httpd.url(path));
        EXPECT_EQ(refused.status, 503) << path;
        EXPECT_TRUE(refused.headers.has("Retry-After")) << path;
    }
    for (Backend* member : {&strict_one, &strict_two, &alone, &plain})
        EXPECT_EQ(member->requests(), 0U) << member->name();
}

TEST_P(LastResort, ComesAfterTheFallbackAndBeforeARefusal) {
    Backend spare("spare");
    Httpd httpd(site(last_resort_policy + "CircuitBreakerFallback balancer://spare\n",
                     both() + "<Proxy balancer://spare>\n" + member_line(spare) + "</Proxy>\n"));
    httpd.start();
    trip(httpd, {&one_, &two_});
    EXPECT_EQ(answerers(3, httpd.url("/app/x")), "spare spare spare");
    spare.answer(Reply::status(503));
    EXPECT_EQ(answerers(3, httpd.url("/app/x")), "spare spare spare");
    EXPECT_EQ(one_.requests() + two_.requests(), 0U);
    const Response response = get(httpd.url("/app/some/path?query=1"));
    EXPECT_TRUE(response.backend() == "one" || response.backend() == "two") << httpd.describe();
    EXPECT_EQ((response.backend() == "one" ? one_ : two_).last_request()->target, "/some/path?query=1");
    EXPECT_EQ(spare.requests(), 6U) << "alone in its balancer, it waits";
    EXPECT_TRUE(httpd.wait_for_access_line("path=/app/some/path"));
}

TEST_P(LastResortOfAllChildren, IsProbedByNoMoreAtOnceThanConcurrentOverAllProcesses) {
    Httpd httpd(crowded(last_resort_policy + "CircuitBreakerProbes 4 concurrent=2\n", both()));
    httpd.start();
    trip(httpd, {&one_, &two_});
    one_.hold();
    two_.hold();
    BackgroundLoad clients(httpd.url("/app/x"), {.threads = 12, .keep_connections = false});
    EXPECT_TRUE(one_.wait_for_concurrent(2) && two_.wait_for_concurrent(2));
    EXPECT_TRUE(clients.wait_for_answers(40)) << "refusals";
    EXPECT_EQ(one_.peak(), 2U);
    EXPECT_EQ(two_.peak(), 2U);
    one_.release();
    two_.release();
    EXPECT_TRUE(wait_for_state(httpd, one_, "closed") && wait_for_state(httpd, two_, "closed"));
    (void)clients.finish();
    EXPECT_TRUE(wait_for_no_permits(httpd, one_) && wait_for_no_permits(httpd, two_));
}

TEST_P(LastResort, IsAskedOnlyByRequestsThatMayBeProbes) {
    Httpd httpd(
        site(last_resort_policy + "CircuitBreakerProbeIf \"%{REQUEST_URI} =~ m#/may/#\"\nCircuitBreakerProbeBody 100\n",
             both()));
    httpd.start();
    trip(httpd, {&one_, &two_});
    EXPECT_EQ(get(httpd.url("/app/x")).status, 503);
    EXPECT_EQ(get(httpd.url("/app/may/x"), {.method = "POST", .body = std::string(1000, 'x')}).status, 503);
    EXPECT_EQ(one_.requests() + two_.requests(), 0U);
    EXPECT_EQ(get(httpd.url("/app/may/x"), {.method = "POST", .body = "small"}).status, 200);
}

TEST_P(LastResort, OfABoundSessionIsItsOwnMember) {
    const std::string sticky = "    ProxySet stickysession=SID nofailover=On\n";
    Httpd httpd(site(last_resort_policy,
                     one_first() + balancer_of(member_line(one_, "route=a") + member_line(two_, "route=b") + sticky)));
    httpd.start();
    trip(httpd, {&one_, &two_});
    EXPECT_EQ(get(httpd.url("/app/x"), {.cookie = "SID=1234.b"}).backend(), "two");
    EXPECT_EQ(BreakerPage(httpd).member(one_).number("Probed-early"), 0U);
}

TEST_P(LastResort, IsNoMemberThatDrainsOrIsDisabled) {
    for (const std::string status : {"+N", "+D", "+S"}) {
        Backend out("out");
        Httpd httpd(site(last_resort_policy,
                         balancer_of(member_line(one_) + member_line(two_) + member_line(out, "status=" + status))));
        httpd.start();
        trip(httpd, {&one_, &two_});
        const std::string answerer = answerers(1, httpd.url("/app/x"));
        EXPECT_TRUE(answerer == "one" || answerer == "two") << status << ' ' << answerer;
        EXPECT_EQ(out.connections(), 0U);
    }
}

TEST_P(LastResort, AfterAConnectionThatFailedIsStillAsked) {
    // One is open, the other is stopped: requests find nobody there, and go on to the first one early.
    Httpd httpd(site(last_resort_policy, both()));
    httpd.start();
    one_.answer(Reply::status(503));
    for (int i = 0; i < 8 && !is_open(httpd, one_); ++i)
        (void)get(httpd.url("/app/trip"));
    ASSERT_TRUE(wait_for_minimum(httpd, one_));
    one_.answer_as_usual();
    two_.refuse();
    EXPECT_EQ(answerers(3, httpd.url("/app/x")), "one one one");
}

TEST_P(LastResort, OfAPassingHealthCheckHasItsMinimumToo) {
    HttpdOptions options =
        site(std::string(quick_policy) + long_open + "CircuitBreakerHealthCheck Early\n",
             balancer_of(member_line(one_, "hcmethod=GET hcuri=/health hcinterval=100ms hcfails=100000")));
    options.add_modules = {"proxy_hcheck"};
    Httpd httpd(options);
    httpd.start();
    one_.answer_path("/x", Reply::status(503));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "503 503 503");
    ASSERT_TRUE(is_open(httpd, one_));
    const unsigned checks = one_.requests_for("/health");
    ASSERT_TRUE(wait_until(
        [&] {
            EXPECT_EQ(get(httpd.url("/app/x")).backend(), "");
            return one_.requests_for("/health") >= checks + 5;
        },
        patience, "checks that pass"));
    EXPECT_TRUE(httpd.error_lines_with("may be probed now").empty());
}

}  // namespace
}  // namespace cb::test
