// CircuitBreakerMaxOpen: how many members of a balancer may be out at once. An opening beyond that is not carried out,
// and is reported once as suppressed.
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "restarts.hpp"
#include "traffic.hpp"

namespace cb::test {
namespace {

class MaxOpen : public TrafficTest {
  protected:
    static std::string policy(const std::string& percent) {
        return quick_policy + std::string(long_open) + "CircuitBreakerMaxOpen " + percent + "\n";
    }
    /// A member with its number as its route, so that a test can choose it.
    static std::string member(const Backend& backend, const std::string& parameters = "") {
        return member_line(backend, "route=" + backend.name() + " " + parameters);
    }
    /// With nofailover, a request to a refused member is refused, not taken elsewhere.
    static std::string sticky(const std::string& members) {
        return balancer_of(members + "    ProxySet stickysession=S nofailover=On\n");
    }
    static Response request(const Httpd& httpd, const Backend& to) {
        return get(httpd.url("/app/"), {.cookie = "S=1." + to.name()});
    }
    static void fail(const Httpd& httpd, Backend& backend, unsigned times) {
        backend.answer_next(times, Reply::status(503));
        for (unsigned i = 0; i < times; ++i)
            EXPECT_EQ(request(httpd, backend).status, 503);
    }
    [[nodiscard]] std::string states(const Httpd& httpd) const {
        const BreakerPage page(httpd);
        std::string text;
        for (const Backend* backend : {&one_, &two_, &three_}) {
            const std::string state = page.member(*backend).at("State");
            if (!state.empty()) text += (text.empty() ? "" : " ") + state;
        }
        return text;
    }
    static std::size_t suppressed_lines(const Httpd& httpd) { return httpd.error_lines_with("suppressed").size(); }

    Backend one_{"one"};
    Backend two_{"two"};
    Backend three_{"three"};
};

INSTANTIATE_TEST_SUITE_P(Httpd, MaxOpen, each_mpm, mpm_name);

TEST_P(MaxOpen, OfFiftyPercentLetsOneOfTwoOpenAndReportsTheOtherOnce) {
    Httpd httpd(site(policy("50"), sticky(member(one_) + member(two_))));
    httpd.start();
    fail(httpd, one_, 3);
    EXPECT_EQ(states(httpd), "open closed");
    EXPECT_EQ(suppressed_lines(httpd), 0U);
    fail(httpd, two_, 10);
    EXPECT_EQ(states(httpd), "open closed") << "it would be all of them";
    EXPECT_EQ(suppressed_lines(httpd), 1U) << httpd.describe();
    EXPECT_NE(httpd.error_lines_with("suppressed").at(0).find(two_.member()), std::string::npos);
    EXPECT_GE(BreakerPage(httpd).member(two_).number("Suppressed"), 1U);
    EXPECT_EQ(BreakerPage(httpd).member(one_).number("Suppressed"), 0U);
    EXPECT_EQ(request(httpd, two_).status, 200) << "and it goes on serving";
    EXPECT_EQ(transition_lines(httpd).size(), 1U);
}

TEST_P(MaxOpen, OfFiftyPercentLetsTheSecondOpenOnceTheFirstIsWell) {
    Httpd httpd(site(policy("50") + "CircuitBreakerOpenTime 100ms jitter=0\n", sticky(member(one_) + member(two_))));
    httpd.start();
    fail(httpd, one_, 3);
    fail(httpd, two_, 5);
    EXPECT_TRUE(wait_for_end_of_open_time(httpd, one_));
    fail(httpd, two_, 1);
    EXPECT_EQ(states(httpd), "open closed") << "over or not, it is not back yet";
    one_.hold();
    auto probe = get_later(httpd.url("/app/"), {.cookie = "S=1.one"});
    EXPECT_TRUE(one_.wait_for_concurrent(1));
    fail(httpd, two_, 1);
    EXPECT_EQ(states(httpd), "half-open closed") << "half-open counts as out";
    one_.release();
    EXPECT_EQ(probe.get().status, 200);
    EXPECT_EQ(states(httpd), "closed closed");
    fail(httpd, two_, 1);
    EXPECT_EQ(states(httpd), "closed open") << "it had failed all the time\n" << httpd.describe();
    EXPECT_EQ(suppressed_lines(httpd), 1U);
}

TEST_P(MaxOpen, IsAShareOfThreeMembersThatTheOpenOnesMayReachAndNotExceed) {
    struct Share {
        const char* percent;
        const char* states;
        std::size_t suppressed;
    };
    for (const Share& share : {Share{"33", "closed closed closed", 3}, Share{"34%", "open closed closed", 2},
                               Share{"66", "open closed closed", 2}, Share{"67%", "open open closed", 1},
                               Share{"99", "open open closed", 1}, Share{"100", "open open open", 0}}) {
        Httpd httpd(site(policy(share.percent), sticky(member(one_) + member(two_) + member(three_))));
        httpd.start();
        for (Backend* backend : {&one_, &two_, &three_})
            fail(httpd, *backend, 3);
        EXPECT_EQ(states(httpd), share.states) << share.percent << httpd.describe();
        EXPECT_EQ(suppressed_lines(httpd), share.suppressed) << share.percent << httpd.describe();
    }
}

TEST_P(MaxOpen, CountsOnlyMembersThatModProxyCouldUse) {
    // Of five, three are disabled, stopped and draining, so one of two is 50 %.
    Backend four("four");
    Backend five("five");
    Httpd httpd(site(policy("49"), sticky(member(one_) + member(two_) + member(three_, "status=+D") +
                                          member(four, "status=+S") + member(five, "status=+N"))));
    httpd.start();
    fail(httpd, one_, 5);
    EXPECT_EQ(states(httpd), "closed closed closed") << httpd.describe();
    ASSERT_TRUE(graceful_to_the_end(
        httpd, policy("49") + status_location + sticky(member(one_) + member(two_) + member(three_))));
    fail(httpd, one_, 1);
    EXPECT_EQ(states(httpd), "open closed closed") << "now it is one of three\n" << httpd.describe();
}

TEST_P(MaxOpen, CountsMembersWithoutABreakerOfTheirOwnAmongAll) {
    // The third has none, but serves: one of three may go.
    Httpd httpd(site(policy("34") + "<Proxy \"" + three_.member() + "\">\n    CircuitBreaker Off\n</Proxy>\n",
                     sticky(member(one_) + member(two_) + member(three_))));
    httpd.start();
    fail(httpd, one_, 3);
    fail(httpd, two_, 5);
    EXPECT_EQ(states(httpd), "open closed") << httpd.describe();
    EXPECT_EQ(suppressed_lines(httpd), 1U);
}

TEST_P(MaxOpen, BelowOneHundredAlwaysLeavesOneWhenAllFailAtTheSameInstant) {
    for (int round = 0; round < 4; ++round) {
        HttpdOptions options = site(
            policy("99"), balancer_of(member(one_) + member(two_) + member(three_) + "    ProxySet stickysession=S\n"));
        options.children = GetParam() == Mpm::prefork ? 12 : 4;
        Httpd httpd(options);
        httpd.start();
        for (Backend* backend : {&one_, &two_, &three_}) {
            backend->answer(Reply::status(503));
            backend->hold();
        }
        // All answers are let go at once, in several children. (By their routes: requests that come at once are not
        // always shared out evenly.)
        std::vector<std::future<Response>> responses;
        for (const Backend* backend : {&one_, &two_, &three_}) {
            for (int i = 0; i < 4; ++i)
                responses.push_back(get_later(httpd.url("/app/"), {.cookie = "S=1." + backend->name()}));
        }
        for (Backend* backend : {&one_, &two_, &three_})
            EXPECT_TRUE(backend->wait_for_concurrent(4));
        for (Backend* backend : {&one_, &two_, &three_})
            backend->release();
        for (auto& response : responses)
            EXPECT_EQ(response.get().status, 503);
        const LoadResult result =
            load(httpd.url("/app/"), {.threads = 8, .requests_per_thread = 25, .keep_connections = false});
        EXPECT_TRUE(result.all(503)) << result.describe();
        const std::string after = states(httpd);
        EXPECT_NE(after.find("closed"), std::string::npos) << after << httpd.describe();
        EXPECT_EQ(transitions(httpd, "closed", "open"), 2U) << after << httpd.describe();
        EXPECT_EQ(result.from(""), 0U) << "the last one serves, however badly; httpd itself never refuses";
        EXPECT_GE(suppressed_lines(httpd), 1U);
        EXPECT_LE(suppressed_lines(httpd), 3U) << "once a member";
    }
}

TEST_P(MaxOpen, SpeaksOfASuppressedTripAgainInTheNextLife) {
    Httpd httpd(site(policy("50") + "CircuitBreakerOpenTime 100ms jitter=0\n", sticky(member(one_) + member(two_))));
    httpd.start();
    fail(httpd, one_, 3);
    fail(httpd, two_, 5);
    EXPECT_EQ(suppressed_lines(httpd), 1U);
    EXPECT_TRUE(wait_for_end_of_open_time(httpd, one_));
    EXPECT_EQ(request(httpd, one_).status, 200);
    fail(httpd, two_, 1);
    EXPECT_EQ(states(httpd), "closed open");
    EXPECT_TRUE(wait_for_end_of_open_time(httpd, two_));
    EXPECT_EQ(request(httpd, two_).status, 200);
    fail(httpd, one_, 3);
    fail(httpd, two_, 5);
    EXPECT_EQ(states(httpd), "open closed");
    EXPECT_EQ(suppressed_lines(httpd), 2U) << "another generation\n" << httpd.describe();
}

TEST_P(MaxOpen, DoesNotKeepAWorkerWithoutABalancer) {
    Httpd httpd(site(policy("1"), plain_worker(one_)));
    httpd.start();
    one_.answer(Reply::status(503));
    EXPECT_EQ(statuses(4, httpd.url("/app/")), "503 503 503 503");
    EXPECT_EQ(one_.requests(), 3U);
    EXPECT_EQ(suppressed_lines(httpd), 0U);
}

}  // namespace
}  // namespace cb::test
