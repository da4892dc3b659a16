// Which breaker applies to a request: a member is known by virtual host, balancer, name and socket path, however the
// request came to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "restarts.hpp"
#include "traffic.hpp"

namespace cb::test {
namespace {

class Keys : public TrafficTest {
  protected:
    static std::string policy() { return quick_policy + std::string(long_open); }

    /// Requests to `url` until three of them have failed on `backend`, and then one more: true if that was kept from
    /// it.
    [[nodiscard]] static bool breaks(const std::string& url, Backend& backend, const RequestOptions& options = {}) {
        backend.answer(Reply::status(503));
        for (int i = 0; i < 3; ++i)
            EXPECT_EQ(get(url, options).status, 503) << url;
        backend.forget();
        (void)get(url, options);
        backend.answer_as_usual();
        return backend.requests() == 0;
    }
    [[nodiscard]] static std::string state(const Httpd& httpd, const Backend& backend,
                                           const std::string& balancer = "") {
        return BreakerPage(httpd).member(backend.member(), balancer).at("State");
    }
    [[nodiscard]] static RequestOptions to_host(const std::string& host) { return {.headers = {{"Host", host}}}; }
    [[nodiscard]] static std::string vhost(const std::string& name, const std::string& lines) {
        return "<VirtualHost *>\nServerName " + name + "\n" + lines + "</VirtualHost>\n";
    }

    Backend one_{"one"};
    Backend two_{"two"};
};

INSTANTIATE_TEST_SUITE_P(Httpd, Keys, any_mpm, mpm_name);

TEST_P(Keys, ABalancerThatTwoVirtualHostsInheritHasOneBreaker) {
    const std::string pass = "ProxyPass /mine balancer://app\n";
    Httpd httpd(site(policy(), balancer_of(member_line(one_)) + vhost("a.example", pass) + vhost("b.example", pass)));
    httpd.start();
    EXPECT_EQ(BreakerPage(httpd).members().size(), 1U) << httpd.describe();
    EXPECT_TRUE(breaks(httpd.url("/mine"), one_, to_host("a.example"))) << httpd.describe();
    EXPECT_TRUE(get(httpd.url("/mine"), to_host("b.example")).headers.has("Retry-After")) << "b sees what a has met";
    EXPECT_TRUE(get(httpd.url("/app"), to_host("a.example")).headers.has("Retry-After"));
    EXPECT_EQ(one_.requests(), 0U);
    EXPECT_EQ(BreakerPage(httpd).members().size(), 1U);
    EXPECT_EQ(transition_lines(httpd).size(), 1U);
}

TEST_P(Keys, BalancersThatAVirtualHostNamesInAnotherOrderAreInheritedAllTheSame) {
    // mod_proxy puts those that the virtual host names itself at the end of its list.
    const auto balancer = [](const std::string& name, const Backend& backend) {
        return "<Proxy balancer://" + name + ">\n" + member_line(backend) + "</Proxy>\nProxyPass /" + name +
               " balancer://" + name + "\n";
    };
    Backend three("three");
    Httpd httpd(site(policy(), balancer("x", one_) + balancer("y", two_) + balancer("z", three) +
                                   vhost("a.example", "ProxyPass /my-y balancer://y\nProxyPass /my-x balancer://x\n" +
                                                          balancer("own", one_)) +
                                   vhost("b.example", balancer("own", two_) + "ProxyPass /my-z balancer://z\n")));
    httpd.start();
    EXPECT_EQ(BreakerPage(httpd).members().size(), 5U) << get(httpd.url("/breakers")).body;
    EXPECT_TRUE(breaks(httpd.url("/my-y"), two_, to_host("a.example")));
    EXPECT_TRUE(breaks(httpd.url("/my-z"), three, to_host("b.example")));
    EXPECT_TRUE(get(httpd.url("/y"), to_host("b.example")).headers.has("Retry-After"));
    EXPECT_TRUE(get(httpd.url("/z"), to_host("a.example")).headers.has("Retry-After"));
    EXPECT_EQ(get(httpd.url("/my-x"), to_host("a.example")).status, 200);
    EXPECT_EQ(get(httpd.url("/own"), to_host("b.example")).status, 200)
        << "another balancer than y, though the same backend";
    EXPECT_EQ(transition_lines(httpd).size(), 2U);
}

TEST_P(Keys, AWorkerThatTwoVirtualHostsInheritHasOneBreaker) {
    Httpd httpd(site(policy(), plain_worker(one_) + vhost("a.example", "") + vhost("b.example", "")));
    httpd.start();
    EXPECT_TRUE(breaks(httpd.url("/app"), one_, to_host("a.example")));
    EXPECT_TRUE(get(httpd.url("/app"), to_host("b.example")).headers.has("Retry-After"));
    EXPECT_EQ(BreakerPage(httpd).members().size(), 1U);
}

TEST_P(Keys, BalancersOfTheSameNameInTwoVirtualHostsHaveTheirOwnOverReorderingToo) {
    const std::string a = vhost("a.example", balancer_of(member_line(one_)));
    const std::string b = vhost("b.example", balancer_of(member_line(one_)));
    Httpd httpd(site(policy(), a + b));
    httpd.start();
    EXPECT_TRUE(breaks(httpd.url("/app"), one_, to_host("b.example")));
    EXPECT_EQ(get(httpd.url("/app"), to_host("a.example")).status, 200);
    const auto state_of = [&](const std::string& vhost) {
        const BreakerPage page(httpd);
        EXPECT_EQ(page.members().size(), 2U);
        const auto found = std::ranges::find_if(
            page.members(), [&](const BreakerBlock& block) { return block.at("Vhost").starts_with(vhost); });
        return found == page.members().end() ? "" : found->at("State");
    };
    EXPECT_EQ(state_of("a.example") + " " + state_of("b.example"), "closed open");
    ASSERT_TRUE(graceful_to_the_end(httpd, policy() + status_location + vhost("new.example", "") + b + a));
    EXPECT_EQ(state_of("a.example") + " " + state_of("b.example"), "closed open") << "the same over reordering";
    EXPECT_EQ(get(httpd.url("/app"), to_host("a.example")).status, 200);
    EXPECT_TRUE(get(httpd.url("/app"), to_host("b.example")).headers.has("Retry-After"));
}

TEST_P(Keys, BalancersWhoseNamesBeginAlikeHaveTheirOwnBreakersAndPolicies) {
    Httpd httpd(site(policy(), "<Proxy balancer://ab>\n" + member_line(two_) +
                                   "</Proxy>\nProxyPass /ab balancer://ab\n" + "<Proxy balancer://a>\n" +
                                   member_line(two_) +
                                   "    CircuitBreakerConsecutiveFailures 1\n</Proxy>\nProxyPass /a balancer://a\n"));
    httpd.start();
    two_.answer_next(1, Reply::status(503));
    EXPECT_EQ(statuses(2, httpd.url("/a")), "503 503");
    EXPECT_EQ(state(httpd, two_, "balancer://a"), "open");
    EXPECT_EQ(state(httpd, two_, "balancer://ab"), "closed");
    EXPECT_EQ(two_.requests(), 1U);
    two_.answer_next(1, Reply::status(503));
    EXPECT_EQ(statuses(2, httpd.url("/ab")), "503 200") << "the policy of a is not that of ab";
    EXPECT_EQ(state(httpd, two_, "balancer://ab"), "closed");
    EXPECT_TRUE(breaks(httpd.url("/ab"), two_));
}

TEST_P(Keys, MembersThatDifferInTheirSocketPathOnlyHaveTheirOwnBreakersAndPolicies) {
    // In two balancers: within one, mod_proxy takes a second socket under the same URL for the first member.
    TempDir folder("cb-sockets");
    Backend first("same", OnUnixSocket{folder.path() / "first"});
    Backend second("same", OnUnixSocket{folder.path() / "second"});
    const auto balancer = [](const std::string& name, const Backend& backend) {
        return "<Proxy balancer://" + name + ">\n    BalancerMember \"" + backend.member() +
               "\"\n</Proxy>\nProxyPass /" + name + " balancer://" + name + "\n";
    };
    const std::string section =
        "<Proxy \"" + second.member() + "\">\n    CircuitBreakerConsecutiveFailures 7\n</Proxy>\n";
    Httpd httpd(site(policy(), section + balancer("first", first) + balancer("second", second)));
    httpd.start();
    EXPECT_EQ(BreakerPage(httpd).members().size(), 2U);
    EXPECT_TRUE(breaks(httpd.url("/first"), first)) << httpd.describe();
    EXPECT_EQ(state(httpd, first), "open");
    EXPECT_EQ(state(httpd, second), "closed");
    EXPECT_FALSE(breaks(httpd.url("/second"), second)) << "its own policy: seven";
    EXPECT_EQ(state(httpd, second), "closed");

    ASSERT_TRUE(graceful_to_the_end(httpd, policy() + status_location + balancer("first", second)));
    EXPECT_EQ(state(httpd, second, "balancer://first"), "closed") << "another socket is another member\n"
                                                                  << httpd.describe();
    EXPECT_EQ(get(httpd.url("/first")).status, 200);
}

TEST_P(Keys, EveryWayToABalancerMeetsItsBreakerAndItsSectionsPolicy) {
    const std::string policy_of_section =
        "    CircuitBreaker On\n    CircuitBreakerConsecutiveFailures 3\n"
        "    CircuitBreakerFailureRate Off\n    CircuitBreakerOpenTime 10min jitter=0\n";
    Httpd httpd({.mpm = GetParam(),
                 .config = std::string(status_location) + "<Proxy balancer://m>\n" + member_line(one_) +
                           policy_of_section +
                           "</Proxy>\n<Location /handler/>\n    SetHandler \"proxy:balancer://m\"\n</Location>\n"
                           "RewriteEngine On\nRewriteRule ^/rewrite/(.*)$ balancer://m/$1 [P]\n"
                           "ProxyPass /pass/ balancer://m/\nProxyPassMatch ^/match/(.*)$ balancer://m/$1\n"
                           "<Location /in-location/>\n    ProxyPass balancer://m/\n</Location>\n",
                 .add_modules = {"rewrite"}});
    for (const char* path : {"/handler/x", "/rewrite/x", "/pass/x", "/match/x", "/in-location/x"}) {
        SCOPED_TRACE(path);
        httpd.start();
        EXPECT_EQ(get(httpd.url(path)).backend(), "one") << httpd.describe();
        EXPECT_TRUE(breaks(httpd.url(path), one_)) << httpd.describe();
        EXPECT_EQ(state(httpd, one_), "open");
        for (const char* other : {"/handler/x", "/rewrite/x", "/pass/x", "/match/x", "/in-location/x"}) {
            const Response refused = get(httpd.url(other));
            EXPECT_EQ(refused.status, 503);
            EXPECT_TRUE(refused.headers.has("Retry-After")) << other;
        }
        EXPECT_EQ(one_.requests(), 0U);
        EXPECT_EQ(httpd.stop(), 0);
    }
}

TEST_P(Keys, EveryWayToAWorkerMeetsItsBreaker) {
    const std::string member = one_.member();
    Httpd httpd({.mpm = GetParam(),
                 .config = policy() + status_location + "ProxyPassMatch ^/match/(.*)$ " + member + "/$1\n" +
                           "<Proxy \"" + two_.member() +
                           "\" enablereuse=on>\n    CircuitBreakerConsecutiveFailures 2\n</Proxy>\n" +
                           "<Location /handler/>\n    SetHandler \"proxy:" + two_.member() + "\"\n</Location>\n" +
                           "RewriteEngine On\nRewriteRule ^/rewrite/(.*)$ " + two_.member() + "/$1 [P]\n",
                 .add_modules = {"rewrite"}});
    httpd.start();
    // (A URL shorter than the worker's name, `/x` for `/$1`, is none of its to mod_proxy.)
    EXPECT_EQ(get(httpd.url("/match/page")).backend(), "one");
    EXPECT_EQ(one_.last_request()->path, "/page");
    EXPECT_TRUE(breaks(httpd.url("/match/page"), one_)) << httpd.describe();
    EXPECT_TRUE(get(httpd.url("/match/another/path")).headers.has("Retry-After")) << "one worker, whatever $1 is";
    EXPECT_EQ(BreakerPage(httpd).member(member + "/$1").at("State"), "open");

    two_.answer_next(2, Reply::status(503));
    EXPECT_EQ(statuses(3, httpd.url("/handler/x")), "503 503 503");
    EXPECT_EQ(two_.requests(), 2U) << "by the policy of its section\n" << httpd.describe();
    EXPECT_TRUE(get(httpd.url("/rewrite/x")).headers.has("Retry-After"));
    EXPECT_EQ(two_.requests(), 2U);
}

TEST_P(Keys, AHandlerOnASocketHasABreakerIfASectionDeclaresItAndPassesIfNot) {
    Backend declared("declared", OnUnixSocket{});
    Backend undeclared("undeclared", OnUnixSocket{});
    Httpd httpd(site(policy(),
                     "<Proxy \"" + declared.member() + "\" enablereuse=on>\n    CircuitBreakerConsecutiveFailures 2\n" +
                         "</Proxy>\n<Location /declared>\n    SetHandler \"proxy:" + declared.member() +
                         "\"\n</Location>\n<Location /undeclared>\n    SetHandler \"proxy:" + undeclared.member() +
                         "\"\n</Location>\n"));
    httpd.start();
    declared.answer_next(2, Reply::status(503));
    EXPECT_EQ(statuses(4, httpd.url("/declared")), "503 503 503 503") << httpd.describe();
    EXPECT_EQ(declared.requests(), 2U) << httpd.describe();
    EXPECT_EQ(state(httpd, declared), "open") << httpd.describe();

    undeclared.answer_next(5, Reply::status(503));
    EXPECT_EQ(statuses(6, httpd.url("/undeclared")), "503 503 503 503 503 200")
        << "one worker for all undeclared backends";
    EXPECT_EQ(undeclared.requests(), 6U);
    EXPECT_EQ(BreakerPage(httpd).members().size(), 1U);
}

TEST_P(Keys, ForwardProxyRequestsAreLeftAlone) {
    Httpd httpd(site(policy(), "ProxyRequests On\n" + plain_worker(one_) + "<Proxy balancer://two>\n" +
                                   member_line(two_) + "</Proxy>\nProxyPass /two balancer://two\n"));
    httpd.start();
    const auto forward = [&](const std::string& url) {
        RawClient client(httpd.port());
        EXPECT_TRUE(client.send("GET " + url + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"));
        return client.read_to_end();
    };
    for (Backend* backend : {&one_, &two_}) {
        backend->answer(Reply::status(503));
        for (int i = 0; i < 5; ++i)
            EXPECT_NE(forward(backend->url("/f")).find(" 503 "), std::string::npos);
        EXPECT_EQ(backend->requests(), 5U) << "no failure counts\n" << httpd.describe();
        EXPECT_EQ(state(httpd, *backend), "closed");
        EXPECT_EQ(BreakerPage(httpd).member(*backend).number("Calls"), 0U);
    }
    EXPECT_TRUE(breaks(httpd.url("/app"), one_));
    EXPECT_NE(forward(one_.url("/f")).find(" 200 "), std::string::npos)
        << "an open breaker keeps nobody from a forward proxy";
}

}  // namespace
}  // namespace cb::test
