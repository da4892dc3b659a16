// `CircuitBreakerControl On host=NAME...`: the names under which the status page acts. A browser that is led to it
// under somebody else's name (DNS rebinding) sends an Origin that is the same as its Host, and has read the token.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config_check.hpp"
#include "pages.hpp"
#include "support/net.hpp"

namespace cb::test {
namespace {

class ControlHosts : public testing::Test {
  protected:
    /// The page at /breakers with that directive, balancer-manager, and what else is wanted, after these.
    void start(const std::string& control, const std::string& more = "") {
        httpd_.set_config(std::string(quick_policy) +
                          "ProxyPass /breakers !\n<Location /breakers>\n    SetHandler circuitbreaker-status\n    " +
                          control + "\n</Location>\nProxyPass /other !\n" + manager_location + more +
                          balancer_of(member_line(app_)));
        httpd_.start();
        id_ = id_of(httpd_, app_);
    }
    [[nodiscard]] std::string page_as(const std::string& host, const std::string& path = "/breakers") const {
        return get(httpd_.url(path), {.headers = {{"Host", host}}}).body;
    }
    [[nodiscard]] std::string fields(const std::string& token, const std::string& action = "force-open") const {
        return "action=" + action + "&member=" + id_ + "&token=" + token;
    }
    /// What a browser sends from a page of that host.
    [[nodiscard]] int post_as(const std::string& host, const std::string& token,
                              const std::string& action = "force-open") const {
        return post(httpd_, fields(token, action), {{"Host", host}, {"Origin", "http://" + host}}).status;
    }
    [[nodiscard]] std::string state() const { return state_of(httpd_, app_); }
    [[nodiscard]] std::vector<std::string> refusals() const {
        return httpd_.error_lines_with("an action on the status page was refused: ");
    }
    /// 303, and it has been done; then it is taken back.
    void expect_done_as(const std::string& host, const std::string& token) {
        EXPECT_EQ(post_as(host, token), 303) << host << httpd_.describe();
        EXPECT_EQ(state(), "forced-open") << host;
        EXPECT_EQ(post_as(host, token, "automatic"), 303) << host;
        EXPECT_EQ(state(), "closed") << host;
    }
    /// 403, one line, nothing done.
    void expect_refused_as(const std::string& host, const std::string& token) {
        const std::size_t before = refusals().size();
        EXPECT_EQ(post_as(host, token), 403) << host;
        const std::vector<std::string> lines = refusals();
        ASSERT_EQ(lines.size(), before + 1) << host << httpd_.describe();
        EXPECT_TRUE(has(lines.back(), "CircuitBreakerControl names no host=")) << lines.back();
        EXPECT_EQ(state(), "closed") << host;
    }

    Backend app_{"app"};
    Httpd httpd_;
    std::string id_;
};

TEST_F(ControlHosts, RefuseAnyOtherNameThoughItsOriginIsTheSameAndItsTokenRight) {
    start("CircuitBreakerControl On host=breakers.example");
    const std::string token = token_on(page_as("breakers.example"));
    ASSERT_EQ(token.size(), 32U) << httpd_.describe();
    expect_done_as("breakers.example", token);
    for (const std::string host :
         {"evil.example", "breakers.example.evil.example", "xbreakers.example", "breakers", "example", "127.0.0.1",
          "127.0.0.1:80", "[::1]", "localhost", "breakers.example.evil.example:80"}) {
        expect_refused_as(host, token);
    }
    ASSERT_FALSE(HasFailure());
    EXPECT_TRUE(has(refusals().front(), "CircuitBreakerControl names no host=evil.example, under which it came"))
        << refusals().front();
    // The name in the request's target is the one that counts where there is one.
    RawClient absolute(httpd_.port());
    ASSERT_TRUE(
        absolute.send("POST http://evil.example/breakers HTTP/1.1\r\nHost: breakers.example\r\nOrigin: "
                      "http://breakers.example\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                      "Connection: close\r\nContent-Length: " +
                      std::to_string(fields(token).size()) + "\r\n\r\n" + fields(token)));
    EXPECT_TRUE(has(absolute.read_until("\r\n"), " 403 "));
    RawClient without(httpd_.port());
    ASSERT_TRUE(
        without.send("POST /breakers HTTP/1.0\r\nOrigin: http://breakers.example\r\nContent-Type: "
                     "application/x-www-form-urlencoded\r\nContent-Length: " +
                     std::to_string(fields(token).size()) + "\r\n\r\n" + fields(token)));
    EXPECT_TRUE(has(without.read_until("\r\n"), " 403 ")) << "no name at all";
    EXPECT_EQ(state(), "closed");
}

TEST_F(ControlHosts, AreComparedWithoutCasePortAndTrailingDot) {
    start("CircuitBreakerControl On host=Breakers.Example. host=10.0.0.7 host=[2001:DB8:0::7] host=ops_1");
    const std::string token = token_on(page_as("breakers.example"));
    for (const std::string host :
         {"breakers.example", "BREAKERS.example", "breakers.example.", "breakers.example:8080", "Breakers.Example.:81",
          "10.0.0.7", "10.0.0.7:8443", "[2001:db8::7]", "[2001:DB8:0:0:0:0:0:7]:8080", "ops_1:1"}) {
        expect_done_as(host, token);
    }
    for (const std::string host : {"10.0.0.70", "[2001:db8::8]", "[2001:db8::]:7", "ops_2"})
        expect_refused_as(host, token);
}

TEST_F(ControlHosts, AreAnyWhereNoneIsNamed) {
    start("CircuitBreakerControl On");
    const std::string token = token_on(page_as("whatever.example"));
    for (const std::string host : {"whatever.example", "whatever.example:8080", "127.0.0.1", "[::1]:8080"})
        expect_done_as(host, token);
    EXPECT_EQ(post(httpd_, fields(token), {{"Host", "a.example"}, {"Origin", "http://b.example"}}).status, 403);
}

TEST_F(ControlHosts, DoNotTakeTheOriginsPlace) {
    start("CircuitBreakerControl On host=a.example host=b.example");
    const std::string token = token_on(page_as("a.example"));
    for (const char* origin : {"http://b.example", "http://evil.example", "null"})
        EXPECT_EQ(post(httpd_, fields(token), {{"Host", "a.example"}, {"Origin", origin}}).status, 403) << origin;
    EXPECT_EQ(post_as("a.example", std::string(32, '0')), 403);
    EXPECT_EQ(state(), "closed");
}

TEST_F(ControlHosts, HaveThePagesButtonsAndItsTokenToThemselves) {
    start("CircuitBreakerControl On host=breakers.example");
    EXPECT_TRUE(has(page_as("breakers.example:81"), "<form")) << httpd_.describe();
    const std::string json = "/breakers?format=json";
    EXPECT_EQ(first_match(page_as("breakers.example", json), "\"token\":\"([0-9a-f]+)\"").size(), 32U);
    EXPECT_FALSE(has(page_as("evil.example"), "<form"));
    EXPECT_TRUE(has(page_as("evil.example"), app_.member())) << "it can be read all the same";
    EXPECT_TRUE(has(page_as("evil.example", json), "\"token\":null"));
}

TEST_F(ControlHosts, HaveTheButtonsOfBalancerManagerToo) {
    start("CircuitBreakerControl On host=breakers.example");
    const std::string own = page_as("breakers.example", "/balancer-manager");
    EXPECT_EQ(first_match(own, "<form method=\"post\" action=\"(/breakers)\">"), "/breakers") << own;
    expect_done_as("breakers.example", token_on(own));
    EXPECT_FALSE(has(page_as("evil.example", "/balancer-manager"), "action=\"/breakers\""));
    httpd_.stop();
    // They lead to the first page that answers to the name that the reader's browser has used.
    start("CircuitBreakerControl On host=breakers.example",
          "<Location /other>\n    SetHandler circuitbreaker-status\n    CircuitBreakerControl On\n</Location>\n");
    const std::string form = "<form method=\"post\" action=\"(/breakers|/other)\">";
    EXPECT_EQ(first_match(page_as("breakers.example", "/balancer-manager"), form), "/breakers");
    EXPECT_EQ(first_match(page_as("www.example", "/balancer-manager"), form), "/other");
}

TEST_F(ControlHosts, OfAnInnerSectionTakeThePlaceOfThoseOfAnOuterOne) {
    const auto said = [&](const std::string& inner) {
        if (httpd_.running()) httpd_.stop();
        httpd_.set_config(std::string(quick_policy) +
                          "<Location />\n    CircuitBreakerControl On host=outer.example\n"
                          "</Location>\nProxyPass /breakers !\n<Location /breakers>\n    "
                          "SetHandler circuitbreaker-status\n    " +
                          inner + "\n</Location>\n" + balancer_of(member_line(app_)));
        httpd_.start();
        std::string names;
        for (const char* host : {"outer", "inner", "other"})
            names += has(page_as(host + std::string(".example")), "<form") ? host + std::string(" ") : "";
        return names;
    };
    EXPECT_EQ(said("# nothing"), "outer ");
    EXPECT_EQ(said("CircuitBreakerControl On host=inner.example"), "inner ");
    EXPECT_EQ(said("CircuitBreakerControl On"), "outer inner other ");
    EXPECT_EQ(said("CircuitBreakerControl Off"), "");
    EXPECT_EQ(said("CircuitBreakerControl On host=other.example\n    CircuitBreakerControl On host=inner.example"),
              "inner ")
        << "the last line of a section wins";
}

TEST(ControlHostsDirective, TakesNamesAndAddressesAndSaysWhatIsWrong) {
    ConfigCheck check("ProxyPass / http://127.0.0.1:9001/\nCircuitBreaker On\n");
    const auto location = [](const std::string& line) { return "<Location /x>\n" + line + "\n</Location>"; };
    std::string many = "CircuitBreakerControl On";
    for (int i = 0; i < 62; ++i)
        many += " host=h" + std::to_string(i);
    for (const std::string& line :
         {std::string("CircuitBreakerControl on HOST=www.Example.com. Host=a-b_c.example"),
          std::string("CircuitBreakerControl On host=127.0.0.1 host=[::1] host=[::ffff:10.0.0.1] host=localhost"),
          std::string("CircuitBreakerControl On \"host=xn--bcher-kva.example\" host=1.example host=a1"), many}) {
        check.expect_accepted(location(line));
    }
    for (const std::string value : {"host=",
                                    "host=.",
                                    "host=..",
                                    "host=a..b",
                                    "host=.a",
                                    "host=a..",
                                    "host=www.example.com:80",
                                    "host=http://www.example.com",
                                    "host=www.example.com/",
                                    "host=*.example.com",
                                    "host=::1",
                                    "host=[::1]:80",
                                    "host=[::1",
                                    "host=[]",
                                    "host=[1.2.3.4]",
                                    "host=[fe80::1%eth0]",
                                    "host=127.1",
                                    "host=1.2.3.4.5",
                                    "host=256.0.0.1",
                                    "host=1",
                                    "host=a.b.7",
                                    "host=a,b",
                                    "www.example.com",
                                    "hosts=a",
                                    "Off",
                                    "host"}) {
        check.expect_refused(location("CircuitBreakerControl On host=fine.example " + value),
                             {"CircuitBreakerControl: \"" + value + "\" is wrong", "host=NAME", "without a port"},
                             "CircuitBreakerControl");
    }
    for (const std::string& name : {std::string(64, 'a'), std::string("b\xC3\xBC"
                                                                      "cher.example")})
        check.expect_refused(location("CircuitBreakerControl On host=" + name), {"is wrong"}, "CircuitBreakerControl");
    check.expect_refused(location("CircuitBreakerControl Off host=a"), {"\"host=a\" is wrong", "nothing after Off"},
                         "CircuitBreakerControl");
    check.expect_refused(location("CircuitBreakerControl host=a"), {"\"host=a\" is wrong", "On or Off"},
                         "CircuitBreakerControl");
}

}  // namespace
}  // namespace cb::test
