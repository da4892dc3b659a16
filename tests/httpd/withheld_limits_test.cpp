// CircuitBreakerFailover: the limits. Who is asked for it, how often, for how long, and how many of them.
#include "protocols.hpp"
#include "withheld.hpp"

namespace cb::test {
namespace {

/// A member that answers 503 and is asked first, and others that are well.
class WithheldLimits : public WithheldTest {
  protected:
    WithheldLimits() { bad_.answer(Reply::status(503, "no")); }

    void start(const std::string& policy, const std::string& more = "", const std::string& of_bad = "") {
        WithheldTest::start(
            site(policy, balancer_of(member_line(bad_, "loadfactor=100 " + of_bad) + member_line(good_) + more) +
                             "<Location /app/none>\n    CircuitBreakerFailover Off\n</Location>\n"
                             "<Location /app/all>\n    CircuitBreakerFailover All budget=100\n</Location>\n"));
    }
};
INSTANTIATE_TEST_SUITE_P(Mpms, WithheldLimits, any_mpm, mpm_name);

TEST_P(WithheldLimits, ByDefaultOnlyProbesAre) {
    start(quick_policy);
    EXPECT_EQ(statuses(3, httpd_->url("/app/x")), "503 503 503");
    EXPECT_EQ(bad().at("State"), "open");
    ASSERT_TRUE(wait_for_end_of_open_time(*httpd_, bad_));
    bad_.forget();
    good_.forget();
    EXPECT_EQ(ask().backend(), "good");
    EXPECT_EQ(bad_.requests(), 1U) << "the probe";
    EXPECT_EQ(good_.requests(), 1U);
    EXPECT_EQ(transitions(*httpd_, "half-open", "open"), 1U) << "it has failed, though the client did not";
    EXPECT_TRUE(wait_for_no_permits(*httpd_, bad_));
    EXPECT_TRUE(httpd_->wait_for_access_line("verdict=success probe=1 rejected=- ", 1)) << httpd_->access_log();
    // Said to be asked for nothing, it is a guinea pig.
    ASSERT_TRUE(wait_for_end_of_open_time(*httpd_, bad_));
    EXPECT_EQ(ask("/app/none/x").backend(), "bad");
}

TEST_P(WithheldLimits, ASectionForRequestsHasTheLastWord) {
    start(std::string(counting_policy) + "CircuitBreakerFailover Off\n");
    EXPECT_EQ(ask().backend(), "bad");
    EXPECT_EQ(ask("/app/none/x").backend(), "bad");
    EXPECT_EQ(ask("/app/all/x").backend(), "good");
}

TEST_P(WithheldLimits, InObserveNothingIs) {
    start(std::string(counting_policy) + "CircuitBreaker Observe\nCircuitBreakerFailover All\n");
    EXPECT_EQ(ask().backend(), "bad");
    EXPECT_EQ(good_.requests(), 0U);
    EXPECT_EQ(bad().number("Verdict-failure"), 1U);
}

TEST_P(WithheldLimits, NoMoreThanSoManyTriesAndOncePerMember) {
    Backend third("third");
    Backend fourth("fourth");
    good_.answer(Reply::status(503, "no"));
    third.answer(Reply::status(503, "no"));
    start(std::string(counting_policy) + "CircuitBreakerFailover All tries=3 budget=100\n",
          member_line(third) + member_line(fourth, "lbset=1"));
    // The fourth is asked only once the others are out, by its lbset.
    Response response = ask();
    EXPECT_EQ(response.status, 503);
    EXPECT_EQ(response.body, "no") << "the third one's own answer";
    EXPECT_EQ(bad_.requests() + good_.requests() + third.requests(), 3U);
    EXPECT_EQ(fourth.requests(), 0U);
    response = ask("/app/all/x");
    EXPECT_EQ(response.status, 503) << "two, there";
    EXPECT_EQ(bad_.requests() + good_.requests() + third.requests(), 5U);
    httpd_->stop();
    // With enough of them each member is asked once.
    bad_.forget();
    good_.forget();
    third.forget();
    start(std::string(counting_policy) + "CircuitBreakerFailover All tries=9 budget=100\n", member_line(third));
    EXPECT_EQ(ask().status, 503);
    EXPECT_EQ(bad_.requests(), 1U);
    EXPECT_EQ(good_.requests(), 1U);
    EXPECT_EQ(third.requests(), 1U);
    EXPECT_EQ(bad().number("Verdict-failure"), 1U) << "each is charged with its own";
}

TEST_P(WithheldLimits, NotLaterThanTheTimeout) {
    bad_.answer(Reply::hang());
    start(std::string(counting_policy) + "CircuitBreakerFailover All budget=100\n", "", "timeout=2");
    EXPECT_EQ(ask().status, 502) << "the member's timeout= is over";
    EXPECT_EQ(good_.requests(), 0U);
    bad_.release();
    bad_.answer(Reply::status(503));
    EXPECT_EQ(ask().backend(), "good");
    httpd_->stop();
    bad_.answer(Reply::hang());
    start(std::string(counting_policy) + "CircuitBreakerFailover All budget=100 timeout=30s\n", "", "timeout=1");
    EXPECT_EQ(ask().backend(), "good");
    bad_.release();
}

TEST_P(WithheldLimits, NoMoreThanTheBudgetButThreeASecond) {
    // A window of a second: three at least.
    start(std::string(counting_policy) + "CircuitBreakerWindow 1s\nCircuitBreakerFailover All budget=1\n");
    const auto begin = std::chrono::steady_clock::now();
    (void)load(httpd_->url("/app/x"), {.threads = 4, .requests_per_thread = 25});
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin);
    EXPECT_GE(bad().number("Failovers"), 3U);
    EXPECT_LE(bad().number("Failovers"), 3U * static_cast<std::uint64_t>(seconds.count() + 2)) << "of a hundred";
    httpd_->stop();
    // In a share of a long window with many calls: as many as there are.
    start(std::string(counting_policy) + "CircuitBreakerWindow 10s\nCircuitBreakerFailover All budget=50\n");
    EXPECT_EQ(load(httpd_->url("/app/x"), {.threads = 4, .requests_per_thread = 7}).with_status(200), 28U)
        << "thirty in ten seconds at least";
    EXPECT_GE(bad().number("Failovers"), 27U) << "mod_proxy gives the other one a hundredth";
    httpd_->stop();
    // Of a longer window the share of ten seconds.
    start(std::string(counting_policy) + "CircuitBreakerWindow 100s\nCircuitBreakerFailover All budget=100\n");
    (void)load(httpd_->url("/app/x"), {.threads = 4, .requests_per_thread = 50});
    EXPECT_GE(bad().number("Failovers"), 30U);
    EXPECT_LE(bad().number("Failovers"), 50U) << "of two hundred";
}

TEST_P(WithheldLimits, ASessionThatMustStayStays) {
    const std::string sticky = "    ProxySet stickysession=ROUTE nofailover=On\n";
    httpd_ = std::make_unique<Httpd>(
        site(std::string(counting_policy) + "CircuitBreakerFailover All budget=100\n",
             balancer_of(member_line(bad_, "route=bad") + member_line(good_, "route=good") + sticky)));
    httpd_->start();
    EXPECT_EQ(ask("/app/x", {.cookie = "ROUTE=s.bad"}).backend(), "bad");
    EXPECT_EQ(good_.requests(), 0U);
    EXPECT_EQ(ask("/app/x", {.cookie = "ROUTE=s.good"}).backend(), "good");
    httpd_->stop();
    httpd_ =
        std::make_unique<Httpd>(site(std::string(counting_policy) + "CircuitBreakerFailover All budget=100\n",
                                     balancer_of(member_line(bad_, "route=bad") + member_line(good_, "route=good") +
                                                 "    ProxySet stickysession=ROUTE nofailover=Off\n")));
    httpd_->start();
    EXPECT_EQ(ask("/app/x", {.cookie = "ROUTE=s.bad"}).backend(), "good");
}

TEST_P(WithheldLimits, NothingIsWithheldForAMemberThatIsSwitchedOff) {
    httpd_ = std::make_unique<Httpd>(site(std::string(counting_policy) + "CircuitBreakerFailover All budget=100\n",
                                          balancer_of(member_line(bad_) + member_line(good_, "status=+D"))));
    httpd_->start();
    const std::string page(100'000, 'x');
    bad_.answer(Reply::status(503, page));
    EXPECT_EQ(ask().body, page);
    EXPECT_EQ(bad().number("Failovers"), 0U);
}

TEST_P(WithheldLimits, WhatWasNeverSentGoesOnWhateverTheMethod) {
    httpd_ = std::make_unique<Httpd>(
        site(std::string(counting_policy) + "CircuitBreakerFailover All budget=100\n",
             balancer_of(member_line(bad_, "loadfactor=100") + member_line(good_) + "    ProxySet maxattempts=0\n") +
                 "<Location /app/none>\n    CircuitBreakerFailover Off\n</Location>\n"));
    httpd_->start();
    bad_.refuse();
    EXPECT_EQ(ask("/app/none/x", {.method = "POST", .body = "pay"}).status, 503) << "maxattempts=0";
    EXPECT_EQ(ask("/app/x", {.method = "POST", .body = "pay"}).backend(), "good");
    EXPECT_EQ(good_.last_request()->body, "pay");
}

TEST_P(WithheldLimits, ABodyThatWasNotKeptFromTheFirstCallOnIsNotSentAgain) {
    Backend dead("dead");
    httpd_ = std::make_unique<Httpd>(
        site(std::string(quick_policy) + "CircuitBreakerFailover Probes budget=100 tries=9\n",
             balancer_of(member_line(dead, "route=dead") + member_line(bad_, "route=bad") +
                         member_line(good_, "lbset=1") + "    ProxySet stickysession=ROUTE\n")));
    httpd_->start();
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(ask("/app/x", {.cookie = "ROUTE=s.bad"}).backend(), "bad");
    ASSERT_TRUE(wait_for_end_of_open_time(*httpd_, bad_));
    // The first call is no probe, and httpd has read of the body before it finds the member dead; the second one is.
    dead.refuse();
    const std::string body(5000, 'x');
    const Response response = ask("/app/x", {.method = "PUT", .body = body, .cookie = "ROUTE=s.dead"});
    EXPECT_EQ(response.backend(), "bad");
    EXPECT_EQ(bad_.last_request()->body, body);
    EXPECT_EQ(good_.requests(), 0U);
    // Without a body it is.
    ASSERT_TRUE(wait_for_end_of_open_time(*httpd_, bad_));
    EXPECT_EQ(ask("/app/x", {.cookie = "ROUTE=s.dead"}).backend(), "good");
}

TEST_P(WithheldLimits, NobodyIsAskedThatIsOpen) {
    start(std::string(quick_policy) + long_open + "CircuitBreakerFailover All budget=100\n");
    bad_.answer_as_usual();
    good_.answer(Reply::status(503, "from the good one"));
    bad_.answer_next(2, Reply::status(503, "from the bad one"));
    EXPECT_EQ(ask().status, 503);
    EXPECT_EQ(ask().status, 503);
    bad_.answer_next(1, Reply::status(503, "the last one"));
    EXPECT_EQ(ask().status, 503) << "the third failure in a row of both";
    EXPECT_EQ(state_of(*httpd_, good_), "open");
    EXPECT_EQ(bad().at("State"), "open");
    EXPECT_EQ(ask().headers.has("Retry-After"), true) << "both refuse";
}

// --- over the other protocols ---

class WithheldOver : public testing::TestWithParam<Protocol> {};
INSTANTIATE_TEST_SUITE_P(All, WithheldOver, testing::ValuesIn(protocols()), protocol_name);

TEST_P(WithheldOver, AnAnswerLeavesNothingBehindAndABodyIsReplayed) {
    const Protocol& protocol = GetParam();
    WireBackend bad("bad", protocol.dialect(), protocol.on_unix_socket);
    WireBackend good("good", protocol.dialect());
    HttpdOptions options =
        wire_site(std::string(counting_policy) + "CircuitBreakerFailover All budget=100 timeout=20s\n",
                  "<Proxy balancer://app>\n    BalancerMember \"" + bad.member() + "\" loadfactor=100 " +
                      protocol.parameters + "\n    BalancerMember \"" + good.member() + "\" " + protocol.parameters +
                      "\n</Proxy>\nProxyPass /app balancer://app\n"
                      "<Location /app/override>\n    ProxyErrorOverride On\n</Location>\n");
    Httpd httpd(options);
    httpd.start();
    const auto failovers = [&] { return BreakerPage(httpd).member(bad.member()).number("Failovers"); };
    const OutcomeCounters before(httpd, bad.member());
    good.answer(WireReply::status(200, "fine"));
    bad.answer(WireReply::status(503, "a page of the bad one"));
    Response response = get(httpd.url("/app/x"));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "fine");
    EXPECT_EQ(response.backend(), "good");
    EXPECT_EQ(response.headers.all("X-Backend").size(), 1U);
    EXPECT_EQ(failovers(), 1U);

    const std::string body(5000, '~');
    response = get(httpd.url("/app/x"), {.method = "PUT", .body = body});
    EXPECT_EQ(response.backend(), "good");
    const std::string request = good.last_request();
    EXPECT_EQ(std::ranges::count(request, '~'), 5000);
    EXPECT_EQ(failovers(), 2U);

    bad.answer(WireReply::nothing(Ending::reset));
    response = get(httpd.url("/app/x"));
    EXPECT_EQ(response.body, "fine");
    EXPECT_EQ(failovers(), 3U);

    // Longer than what is kept: the handler is stopped.
    bad.answer(WireReply::status(503, std::string(100'000, 'x')));
    response = get(httpd.url("/app/x"));
    EXPECT_EQ(response.body, "fine");
    EXPECT_EQ(failovers(), 4U);
    EXPECT_EQ(OutcomeCounters(httpd, bad.member()) - before, "Outcome-5xxx3 Outcome-reset Verdict-failurex4");

    bad.answer(WireReply::status(503, "no"));
    response = get(httpd.url("/app/override/x"));
    if (protocol.module == "proxy_fcgi") {
        EXPECT_EQ(response.status, 503) << "it sends the error page itself";
        EXPECT_EQ(failovers(), 4U);
    } else {
        EXPECT_EQ(response.body, "fine");
        EXPECT_EQ(failovers(), 5U);
    }
    EXPECT_EQ(BreakerPage(httpd).member(bad.member()).number("Verdict-failure"), 5U);
    bad.release();
}

}  // namespace
}  // namespace cb::test
