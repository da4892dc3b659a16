// Where a member's values come from: server < virtual host < its balancer's section < its own URL's section <
// <Location>, directive by directive, seen by what the breaker does.
//
// Every directive has two values, one and other. The server says one; each level inside says the opposite of the level
// around it, so whichever level is not heeded shows.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "traffic.hpp"

namespace cb::test {
namespace {

/// A server with a virtual host `a`, `b`, ... for each level, all with a member on the same backend.
class Site {
  public:
    Backend app{"app"};
    Httpd httpd;

    [[nodiscard]] Response request(const std::string& host, const std::string& path = "/") const {
        return get(httpd.url(path), {.headers = {{"Host", host}}});
    }
    [[nodiscard]] BreakerBlock breaker(const std::string& host) const {
        const BreakerPage page(httpd);
        for (const BreakerBlock& block : page.members()) {
            if (block.at("Vhost").starts_with(host + ".example")) return block;
        }
        return {};
    }
    [[nodiscard]] std::uint64_t number(const std::string& host, const std::string& key) const {
        return breaker(host).number(key);
    }
    void fail(const std::string& host, unsigned times) {
        app.answer_next(times, Reply::status(503));
        for (unsigned i = 0; i < times; ++i)
            EXPECT_EQ(request(host).status, 503);
    }
    void succeed(const std::string& host, unsigned times) const {
        for (unsigned i = 0; i < times; ++i)
            EXPECT_EQ(request(host).status, 200);
    }
    /// Failures until the breaker opens.
    [[nodiscard]] unsigned failures_to_open(const std::string& host) {
        unsigned failures = 0;
        while (failures < 20 && breaker(host).at("State") != "open") {
            fail(host, 1);
            ++failures;
        }
        return failures;
    }
};

struct Value {
    const char* test_name;
    std::string directive;
    std::string one;
    std::string other;
    std::string around;  // what else the virtual hosts say, so that the value shows
    std::function<bool(Site& site, const std::string& host)> is_one;
    bool for_requests = false;
};

void PrintTo(const Value& value, std::ostream* out) {
    *out << value.directive;
}

bool trips_after_a_failure(Site& site, const std::string& host) {
    return site.failures_to_open(host) == 1;
}

const std::string trips_at_once = "CircuitBreakerConsecutiveFailures 1\n";
const std::string by_rate_only = "CircuitBreakerConsecutiveFailures Off\n";

const Value values[] = {
    {"Mode", "CircuitBreaker", "On", "Observe", trips_at_once,
     [](Site& site, const std::string& host) {
         EXPECT_TRUE(trips_after_a_failure(site, host));
         site.app.forget();
         (void)site.request(host);
         return site.app.requests() == 0;
     }},
    {"Window", "CircuitBreakerWindow", "10calls", "4calls", "CircuitBreakerMinimumCalls 3\n",
     [](Site& site, const std::string& host) {
         site.succeed(host, 6);
         const std::uint64_t calls = site.number(host, "Window-calls");
         EXPECT_TRUE(calls == 6 || calls == 4) << calls;
         return calls == 6;
     }},
    {"MinimumCalls", "CircuitBreakerMinimumCalls", "4", "2", by_rate_only + "CircuitBreakerFailureRate 100\n",
     [](Site& site, const std::string& host) {
         const unsigned failures = site.failures_to_open(host);
         EXPECT_TRUE(failures == 4 || failures == 2) << failures;
         return failures == 4;
     }},
    {"FailureRate", "CircuitBreakerFailureRate", "100", "50", by_rate_only + "CircuitBreakerMinimumCalls 4\n",
     [](Site& site, const std::string& host) {
         site.succeed(host, 2);
         site.fail(host, 2);
         return site.breaker(host).at("State") == "closed";
     }},
    {"ConsecutiveFailures", "CircuitBreakerConsecutiveFailures", "3", "5", "CircuitBreakerFailureRate Off\n",
     [](Site& site, const std::string& host) {
         const unsigned failures = site.failures_to_open(host);
         EXPECT_TRUE(failures == 3 || failures == 5) << failures;
         return failures == 3;
     }},
    {"SlowCall", "CircuitBreakerSlowCall", "10s", "20ms", "",
     [](Site& site, const std::string& host) {
         site.app.answer_next(1, Reply::ok().after(60ms));
         site.succeed(host, 1);
         return site.number(host, "Slow") == 0;
     }},
    {"OpenTime", "CircuitBreakerOpenTime", "10min jitter=0", "20min jitter=0", trips_at_once,
     [](Site& site, const std::string& host) {
         EXPECT_TRUE(trips_after_a_failure(site, host));
         const std::uint64_t minutes = (site.number(host, "Next-probe-ms") + 59'999) / 60'000;
         EXPECT_TRUE(minutes == 10 || minutes == 20) << minutes;
         return minutes == 10;
     }},
    {"MaxOpen", "CircuitBreakerMaxOpen", "100", "50", trips_at_once,
     [](Site& site, const std::string& host) {
         site.fail(host, 1);
         EXPECT_EQ(site.number(host, "Suppressed"), site.breaker(host).at("State") == "open" ? 0U : 1U);
         return site.breaker(host).at("State") == "open";
     }},
    {"Probes", "CircuitBreakerProbes", "1", "2", trips_at_once + "CircuitBreakerOpenTime 100ms jitter=0\n",
     [](Site& site, const std::string& host) {
         EXPECT_TRUE(trips_after_a_failure(site, host));
         EXPECT_TRUE(
             wait_until([&] { return site.number(host, "Next-probe-ms") == 0; }, patience, "the open time's end"));
         site.succeed(host, 1);
         return site.breaker(host).at("State") == "closed";
     }},
    {"RampUp", "CircuitBreakerRampUp", "Off", "10min",
     trips_at_once + "CircuitBreakerOpenTime 100ms jitter=0\nCircuitBreakerProbes 1\n",
     [](Site& site, const std::string& host) {
         EXPECT_TRUE(trips_after_a_failure(site, host));
         EXPECT_TRUE(
             wait_until([&] { return site.number(host, "Next-probe-ms") == 0; }, patience, "the open time's end"));
         site.succeed(host, 1);
         return site.breaker(host).at("State") == "closed";
     }},
    {"Settle", "CircuitBreakerSettle", "10min", "0s", "",
     [](Site& site, const std::string& host) {
         site.app.answer_next(1, Reply::of_size(10).stalling(5));
         RawClient client(site.httpd.port());
         EXPECT_TRUE(client.send("GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"));
         EXPECT_NE(client.read_until("xxxxx").find("200 OK"), std::string::npos);
         const bool waits_for_the_end = site.number(host, "Calls") == 0;
         site.app.release();
         EXPECT_EQ(client.read_to_end(), "xxxxx");
         EXPECT_EQ(site.number(host, "Calls"), 1U);
         return waits_for_the_end;
     },
     true},
    {"RetryAfter", "CircuitBreakerRetryAfter", "On", "Off", trips_at_once,
     [](Site& site, const std::string& host) {
         EXPECT_TRUE(trips_after_a_failure(site, host));
         const Response refused = site.request(host);
         EXPECT_EQ(refused.status, 503);
         return refused.headers.has("Retry-After");
     },
     true},
};

class Precedence : public testing::TestWithParam<Value> {
  protected:
    [[nodiscard]] static std::string one() { return GetParam().directive + " " + GetParam().one + "\n"; }
    [[nodiscard]] static std::string other() { return GetParam().directive + " " + GetParam().other + "\n"; }

    [[nodiscard]] static std::string server() {
        return "CircuitBreaker On\nCircuitBreakerOpenTime 10min jitter=0\n" + one() + status_location;
    }
    [[nodiscard]] std::string vhost(const std::string& name, const std::string& lines,
                                    const std::string& in_balancer = "", const std::string& in_member = "",
                                    const std::string& in_location = "") const {
        const std::string around = GetParam().around;
        std::string text =
            "<VirtualHost *>\nServerName " + name + ".example\nServerAlias " + name + "\n" + around + lines;
        // The member's section comes first: what counts is not the order in the file.
        if (!in_member.empty()) text += "<Proxy \"" + site_.app.member() + "\">\n" + in_member + "</Proxy>\n";
        text += "<Proxy balancer://app>\nBalancerMember " + site_.app.member() + "\n" + in_balancer + "</Proxy>\n";
        if (!in_location.empty()) text += "<Location />\n" + in_location + "</Location>\n";
        return text + "ProxyPass / balancer://app/\n</VirtualHost>\n";
    }
    void start(const std::string& vhosts) {
        site_.httpd.set_config(server() + vhosts);
        site_.httpd.start();
    }
    [[nodiscard]] bool is_one(const std::string& host) { return GetParam().is_one(site_, host); }

    Site site_;
};

INSTANTIATE_TEST_SUITE_P(EveryDirective, Precedence, testing::ValuesIn(values),
                         [](const auto& value) { return std::string(value.param.test_name); });

TEST_P(Precedence, OfTheInnerLevelOverTheOuterOne) {
    start(vhost("a", "") + vhost("b", other()) + vhost("c", other(), one()) + vhost("d", other(), one(), other()) +
          vhost("e", "", other()) + vhost("f", "", "", other()));
    EXPECT_TRUE(is_one("a")) << "the server's\n" << site_.httpd.describe();
    EXPECT_FALSE(is_one("b")) << "the virtual host's over the server's\n" << site_.httpd.describe();
    EXPECT_TRUE(is_one("c")) << "the balancer's over the virtual host's\n" << site_.httpd.describe();
    EXPECT_FALSE(is_one("d")) << "the member's over the balancer's\n" << site_.httpd.describe();
    EXPECT_FALSE(is_one("e")) << "the balancer's over the server's\n" << site_.httpd.describe();
    EXPECT_FALSE(is_one("f")) << "the member's over the server's\n" << site_.httpd.describe();
}

class PrecedenceForRequests : public Precedence {};

INSTANTIATE_TEST_SUITE_P(EveryDirective, PrecedenceForRequests, testing::ValuesIn([] {
                             std::vector<Value> some(std::begin(values), std::end(values));
                             std::erase_if(some, [](const Value& value) { return !value.for_requests; });
                             return some;
                         }()),
                         [](const auto& value) { return std::string(value.param.test_name); });

TEST_P(PrecedenceForRequests, OfALocationOverEverything) {
    start(vhost("a", "", "", "", other()) + vhost("b", other(), other(), other(), one()));
    EXPECT_FALSE(is_one("a")) << site_.httpd.describe();
    EXPECT_TRUE(is_one("b")) << site_.httpd.describe();
}

TEST(PrecedenceOfAPattern, ThatNamesEveryMemberIsThatOfItsBalancer) {
    Backend app("app");
    const auto section = [](const std::string& name, const std::string& failures) {
        return "<Proxy \"" + name + "\">\n    CircuitBreakerConsecutiveFailures " + failures + "\n</Proxy>\n";
    };
    Httpd httpd({.config = counting_policy + std::string(status_location) + balancer_of(member_line(app)) +
                           section("*", "3") + section("balancer://app", "5")});
    httpd.start();
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Consecutive-limit"), 5U);
}

TEST_P(Precedence, HoldsForWorkersWithoutABalancerToo) {
    const auto plain = [&](const std::string& name, const std::string& lines, const std::string& section) {
        return "<VirtualHost *>\nServerName " + name + ".example\nServerAlias " + name + "\n" + GetParam().around +
               lines + "<Proxy \"" + site_.app.member() + "\">\n" + section + "</Proxy>\nProxyPass / " +
               site_.app.member() + "/\n</VirtualHost>\n";
    };
    start(plain("a", other(), one()) + plain("b", one(), other()));
    if (GetParam().directive == "CircuitBreakerMaxOpen") {
        EXPECT_TRUE(is_one("a"));
        EXPECT_TRUE(is_one("b")) << "a worker without a balancer has no others to keep";
        return;
    }
    EXPECT_TRUE(is_one("a")) << site_.httpd.describe();
    EXPECT_FALSE(is_one("b")) << site_.httpd.describe();
}

}  // namespace
}  // namespace cb::test
