// Attacks on the last resort: what else a balancer may have in it, and what is told meanwhile.
#include <map>

#include "events.hpp"
#include "last_resort.hpp"
#include "metrics_page.hpp"
#include "pages.hpp"
#include "restarts.hpp"

namespace cb::test {
namespace {

class AttackLastResort : public LastResortTest {
  protected:
    [[nodiscard]] std::string both(const std::string& more = "") const {
        return balancer_of(member_line(one_, "route=a") + member_line(two_, "route=b") + more);
    }
    /// Makes the minimum that of last_resort_policy, by a graceful restart. What happens before the minimum is over is
    /// tested under a long one: a short one may be over before a slow machine gets there.
    [[nodiscard]] static bool shorten_minimum(Httpd& httpd) {
        std::string config = httpd.options().config;
        const std::size_t at = config.find(long_minimum);
        EXPECT_NE(at, std::string::npos);
        config.erase(at, long_minimum.size());
        return graceful_to_the_end(httpd, config);
    }
    static inline const std::string long_minimum = "CircuitBreakerOpenTime 10min factor=1 jitter=0 min=100s\n";

    [[nodiscard]] static std::string without_breaker(const Backend& member) {
        return "<Proxy \"" + member.member() + "\">\n    CircuitBreaker Off\n</Proxy>\n";
    }
};
INSTANTIATE_TEST_SUITE_P(Mpms, AttackLastResort, any_mpm, mpm_name);

TEST_P(AttackLastResort, SecondsInEachStateNeverFall) {
    Httpd httpd(site(last_resort_policy + metrics_location, both()));
    httpd.start();
    trip(httpd, {&one_, &two_});
    one_.hold();
    two_.hold();
    std::future<Response> probe = get_later(httpd.url("/app/x"));
    ASSERT_TRUE(wait_until([&] { return one_.concurrent() + two_.concurrent() > 0; }, patience, "a probe"));
    Backend& probed = one_.concurrent() > 0 ? one_ : two_;
    const MetricsPage during(httpd);
    EXPECT_EQ(during.value("state", probed, {"state=\"half-open\""}), 1);
    EXPECT_LT(during.value("state_seconds_total", probed, {"state=\"half-open\""}), 0.001);
    EXPECT_GE(during.value("state_seconds_total", probed, {"state=\"open\""}), 0.3);
    probed.answer(Reply::status(503));
    one_.release();
    two_.release();
    (void)probe.get();
    ASSERT_TRUE(wait_for_state(httpd, probed, "open"));
    const MetricsPage after(httpd);
    for (const std::string state : {"state=\"half-open\"", "state=\"open\""})
        EXPECT_GE(after.value("state_seconds_total", probed, {state}),
                  during.value("state_seconds_total", probed, {state}));
}

TEST_P(AttackLastResort, ThatRecoversIsAChangeInTheMetrics) {
    Httpd httpd(site(last_resort_policy + metrics_location + "CircuitBreakerRampUp 10min\n", both()));
    httpd.start();
    trip(httpd, {&one_, &two_});
    const std::string answerer = answerers(1, httpd.url("/app/x"));
    Backend& back = answerer == "one" ? one_ : two_;
    ASSERT_TRUE(wait_for_state(httpd, back, "recovering"));
    const MetricsPage page(httpd);
    EXPECT_EQ(page.value("transitions_total", back, {"from=\"open\"", "to=\"recovering\""}), 1) << page.text();
}

TEST_P(AttackLastResort, IsWhatRetryAfterWaitsFor) {
    Httpd httpd(site(last_resort_policy + "CircuitBreakerOpenTime 10min factor=1 jitter=0 min=70s\n", both()));
    httpd.start();
    one_.answer(Reply::status(503));
    two_.answer(Reply::status(503));
    (void)statuses(6, httpd.url("/app/x"));
    const Response refused = get(httpd.url("/app/x"));
    EXPECT_EQ(refused.status, 503);
    EXPECT_LE(std::stoul(refused.header("Retry-After")), 70U);
}

TEST_P(AttackLastResort, IsAskedBesideAMemberWithoutABreakerThatIsInError) {
    for (const std::string mode : {"Off", "Observe"}) {
        Backend open("open");
        Backend bare("bare");
        Httpd httpd(
            site(last_resort_policy, "<Proxy \"" + bare.member() + "\">\n    CircuitBreaker " + mode + "\n</Proxy>\n" +
                                         balancer_of(member_line(open) + member_line(bare, "loadfactor=1 retry=600"))));
        httpd.start();
        open.answer(Reply::status(503));
        for (int i = 0; i < 20 && !is_open(httpd, open); ++i)
            (void)get(httpd.url("/app/x"));
        ASSERT_TRUE(is_open(httpd, open));
        bare.refuse();
        ASSERT_TRUE(wait_for_minimum(httpd, open));
        open.answer_as_usual();
        EXPECT_EQ(answerers(3, httpd.url("/app/x")), "open open open") << mode << httpd.describe();
    }
}

TEST_P(AttackLastResort, IsAskedBesideAMemberThatDrainsForItsSessions) {
    Backend out("out");
    Httpd httpd(site(last_resort_policy, balancer_of(member_line(one_, "route=a") + member_line(two_, "route=b") +
                                                     member_line(out, "route=c status=+N") +
                                                     "    ProxySet stickysession=SID timeout=60\n")));
    httpd.start();
    trip(httpd, {&one_, &two_});
    const Response response = get(httpd.url("/app/x"));
    EXPECT_TRUE(response.backend() == "one" || response.backend() == "two") << response.status << httpd.describe();
    EXPECT_EQ(get(httpd.url("/app/x"), {.cookie = "SID=1234.c"}).backend(), "out");
}

TEST_P(AttackLastResort, ThatDrainsIsNoneForRequestsOfOtherSessions) {
    Backend out("out");
    Httpd httpd(
        site(last_resort_policy, balancer_of(member_line(one_, "route=a") + member_line(out, "route=c status=+N") +
                                             "    ProxySet stickysession=SID timeout=60\n")));
    httpd.start();
    out.answer(Reply::status(503));
    for (int i = 0; i < 5; ++i)
        (void)get(httpd.url("/app/x"), {.cookie = "SID=1234.c"});
    ASSERT_TRUE(is_open(httpd, out));
    trip(httpd, {&one_});
    one_.answer(Reply::status(503));
    for (int i = 0; i < 5; ++i) {
        const Response refused = get(httpd.url("/app/x"));
        EXPECT_EQ(refused.status, 503);
    }
    EXPECT_EQ(httpd.error_lines_with("All workers are in error state").size(), 0U) << httpd.describe();
    out.answer_as_usual();
    EXPECT_EQ(get(httpd.url("/app/x"), {.cookie = "SID=1234.c"}).backend(), "out");
}

TEST_P(AttackLastResort, ComesAfterAFallbackThatHasNobodyToAsk) {
    for (const std::string status : {"status=+D", "status=+S", "status=+N"}) {
        Backend spare("spare");
        Backend one("one");
        Backend two("two");
        Httpd httpd(site(last_resort_policy + "CircuitBreakerFallback balancer://spare\n",
                         "ProxyPassReverse /app balancer://app\n" + balancer_of(member_line(one) + member_line(two)) +
                             "<Proxy balancer://spare>\n" + member_line(spare, status) + "</Proxy>\n"));
        httpd.start();
        trip(httpd, {&one, &two});
        const std::string elsewhere = spare.member() + "/x";
        for (Backend* backend : {&one, &two})
            backend->answer(Reply::status(302).header("Location", elsewhere));
        const Response response = get(httpd.url("/app/x"));
        EXPECT_TRUE(response.backend() == "one" || response.backend() == "two") << status << ' ' << response.status;
        EXPECT_EQ(response.header("Location"), elsewhere) << "mapped only in answers of the fallback";
        EXPECT_EQ(spare.connections(), 0U);
    }
}

TEST_P(AttackLastResort, OfABoundSessionIsItsOwnMemberWhateverTheOthersAreAndTheLogStaysQuiet) {
    for (const bool is_other_open : {true, false}) {
        Backend one("one");
        Backend two("two");
        Backend spare("spare");
        Httpd httpd(site(last_resort_policy + long_minimum + "CircuitBreakerFallback balancer://spare\n",
                         balancer_of(member_line(one, "route=a") + member_line(two, "route=b") +
                                     "    ProxySet stickysession=SID nofailover=On\n") +
                             "<Proxy balancer://spare>\n" + member_line(spare) + "</Proxy>\n"));
        httpd.start();
        const RequestOptions bound{.cookie = "SID=1234.b"};
        two.answer(Reply::status(503));
        for (int i = 0; i < 3; ++i)
            EXPECT_EQ(get(httpd.url("/app/x"), bound).backend(), "two");
        ASSERT_TRUE(is_open(httpd, two));
        const Response refused = get(httpd.url("/app/x"), bound);
        EXPECT_EQ(refused.backend(), "") << "neither another member nor the fallback";
        EXPECT_LE(std::stoul(refused.header("Retry-After")), 100U) << "its early probe";
        ASSERT_TRUE(shorten_minimum(httpd));
        if (is_other_open) trip(httpd, {&one});
        ASSERT_TRUE(wait_for_minimum(httpd, two));
        two.answer_as_usual();
        EXPECT_EQ(get(httpd.url("/app/x"), bound).backend(), "two");
        EXPECT_EQ(BreakerPage(httpd).member(one).number("Probed-early"), 0U);
        EXPECT_EQ(httpd.error_lines_with("All workers are in error state").size(), 0U) << httpd.describe();
    }
}

TEST_P(AttackLastResort, RetryAfterIsThatOfTheMemberOrTheFallbacksWhicheverMayBeAskedFirst) {
    Backend plain("plain");
    Backend spare("spare");
    const std::string fallback = "<Proxy balancer://spare>\n" + member_line(spare) + "</Proxy>\n<Proxy \"" +
                                 spare.member() +
                                 "\">\n    CircuitBreakerOpenTime 500s "
                                 "factor=1 jitter=0\n</Proxy>\n";
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerOpenTime 200s factor=1 jitter=0 min=100s\n" +
                         "CircuitBreakerFallback balancer://spare\n",
                     both() + fallback + "ProxyPass /plain " + plain.member() + "\n"));
    httpd.start();
    for (Backend* member : {&one_, &two_, &plain, &spare})
        member->answer(Reply::status(503));
    (void)statuses(9, httpd.url("/app/x"));
    (void)statuses(3, httpd.url("/plain/x"));
    const auto retry_after = [&](const char* path) { return std::stoul(get(httpd.url(path)).header("Retry-After")); };
    EXPECT_LE(retry_after("/app/x"), 100U) << "early";
    EXPECT_GT(retry_after("/plain/x"), 100U) << "not early";
    EXPECT_LE(retry_after("/plain/x"), 200U);
}

TEST_P(AttackLastResort, ComesAfterEveryMemberWithoutABreakerHasFailed) {
    Backend open("open");
    Backend bare[2] = {Backend("bare_one"), Backend("bare_two")};
    Httpd httpd(site(
        last_resort_policy + long_minimum,
        without_breaker(bare[0]) + without_breaker(bare[1]) +
            balancer_of(member_line(open) + member_line(bare[0], "retry=600") + member_line(bare[1], "retry=600"))));
    httpd.start();
    open.answer(Reply::status(503));
    for (int i = 0; i < 20 && !is_open(httpd, open); ++i)
        (void)get(httpd.url("/app/x"));
    ASSERT_TRUE(is_open(httpd, open));
    for (Backend& member : bare)
        member.refuse();
    EXPECT_EQ(answerers(1, httpd.url("/app/x")), "httpd") << "too soon";
    ASSERT_TRUE(shorten_minimum(httpd));
    ASSERT_TRUE(wait_for_minimum(httpd, open));
    EXPECT_EQ(answerers(1, httpd.url("/app/x")), "open")
        << "mod_proxy forgets errors at a restart; they fail once more";
    ASSERT_TRUE(wait_for_state(httpd, open, "open"));
    ASSERT_TRUE(wait_for_minimum(httpd, open));
    open.answer_as_usual();
    EXPECT_EQ(answerers(3, httpd.url("/app/x")), "open open open") << httpd.describe();
}

}  // namespace
}  // namespace cb::test
