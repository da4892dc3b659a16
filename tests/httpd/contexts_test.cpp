// Where directives may stand, and what `httpd -t` says when they stand somewhere else, have no value, too many words,
// or apply to no member.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "breaker_page.hpp"
#include "config_check.hpp"
#include "support/http_client.hpp"

namespace cb::test {
namespace {

constexpr const char* members =
    "<Proxy balancer://app>\n    BalancerMember http://127.0.0.1:9001\n    BalancerMember http://127.0.0.1:9002\n"
    "</Proxy>\nProxyPass / balancer://app/\n";

struct Usage {
    const char* test_name;
    std::string directive;
    std::string right;     // a right value
    std::string too_many;  // words, the last of which is one too many
    std::string allowed;   // part of the message for a missing value
    bool for_requests;     // may stand in <Location>, <Directory>, <Files> and <If>
};

void PrintTo(const Usage& usage, std::ostream* out) {
    *out << usage.directive;
}

std::string words(int count) {
    std::string text;
    for (int i = 0; i < count; ++i)
        text += " 500";
    return text;
}

class EachDirective : public testing::TestWithParam<Usage> {
  protected:
    [[nodiscard]] static std::string line() { return GetParam().directive + " " + GetParam().right; }
};

INSTANTIATE_TEST_SUITE_P(
    Configuration, EachDirective,
    testing::Values(
        Usage{"Mode", "CircuitBreaker", "Observe", "On On", "On, Off or Observe", false},
        Usage{"Window", "CircuitBreakerWindow", "60s", "10s 100calls", "from 1s to 24h", false},
        Usage{"MinimumCalls", "CircuitBreakerMinimumCalls", "30", "20 30", "from 1 to 1000000", false},
        Usage{"FailureRate", "CircuitBreakerFailureRate", "30%", "50 %", "from 1 to 100", false},
        Usage{"ConsecutiveFailures", "CircuitBreakerConsecutiveFailures", "7", "5 6", "from 1 to 1023", false},
        Usage{"FailureCount", "CircuitBreakerFailureCount", "30", "30 40", "from 1 to 10000", false},
        Usage{"SlowCall", "CircuitBreakerSlowCall", "2s rate=50", "2s rate=50 until=end rate=60", "from 1ms to 24h",
              false},
        Usage{"OpenTime", "CircuitBreakerOpenTime", "10s max=1min",
              "1s max=2s factor=2 jitter=0 min=1s notice=1s retry-after=On x", "from 100ms to 24h", false},
        Usage{"MaxOpen", "CircuitBreakerMaxOpen", "50%", "50 60", "from 1 to 100", false},
        Usage{"Probes", "CircuitBreakerProbes", "5 tolerate=1", "5 concurrent=1 tolerate=1 successes=1 max=5 x",
              "from 1 to 63", false},
        Usage{"RampUp", "CircuitBreakerRampUp", "60s from=5", "60s from=5 to=50", "from 100ms to 24h", false},
        Usage{"Verdict", "CircuitBreakerVerdict", "failure 500", "failure" + words(62) + " last", "success, failure",
              true},
        Usage{"ProbeVerdict", "CircuitBreakerProbeVerdict", "fatal 503", "fatal" + words(62) + " last",
              "success, failure", true},
        Usage{"ProbeTimeout", "CircuitBreakerProbeTimeout", "2s", "2s 3s", "from 1ms to 24h", false},
        Usage{"ProbeIf", "CircuitBreakerProbeIf", "\"%{REQUEST_METHOD} == 'GET'\"", "true false", "an expression",
              true},
        Usage{"ProbeHeader", "CircuitBreakerProbeHeader", "X-Probe", "X-Probe X-Other", "header field", false},
        Usage{"MaxConcurrent", "CircuitBreakerMaxConcurrent", "50", "50 60", "from 1 to 1000000", false},
        Usage{"HealthCheck", "CircuitBreakerHealthCheck", "Early", "Off Early", "Off, Early, Gate or Both", false},
        Usage{"Fallback", "CircuitBreakerFallback", "off", "Off Off", "name of a balancer", true},
        Usage{"Failover", "CircuitBreakerFailover", "All tries=3", "All budget=5 tries=2 timeout=1s x",
              "Off, Probes or All", true},
        Usage{"BodyLimit", "CircuitBreakerBodyLimit", "4096", "1 2", "from 1 to 1048576", true},
        Usage{"ProbeBody", "CircuitBreakerProbeBody", "4096", "1 2", "from 0 to 16777216", false},
        Usage{"Settle", "CircuitBreakerSettle", "5s", "5s 6s", "from 0s to 24h", true},
        Usage{"RetryAfter", "CircuitBreakerRetryAfter", "Off", "On Off", "On or Off", true},
        Usage{"RecordPath", "CircuitBreakerRecordPath", "On", "On Off", "On or Off", false}),
    [](const auto& usage) { return std::string(usage.param.test_name); });

TEST_P(EachDirective, WithoutAValueIsRefusedWithTheRightOnes) {
    ConfigCheck check(members);
    const std::string name = GetParam().directive;
    check.expect_refused(name, {name + ":", "value is missing", GetParam().allowed});
    check.expect_refused(name + " \"\"", {name + ":", "value is missing", GetParam().allowed});
}

TEST_P(EachDirective, WithAWordTooManyIsRefusedWithThatWord) {
    ConfigCheck check(members);
    const std::string words = GetParam().too_many;
    check.expect_refused("CircuitBreaker On\n" + GetParam().directive + " " + words,
                         {GetParam().directive + ":", "\"" + words.substr(words.rfind(' ') + 1) + "\"", "too many"});
}

TEST_P(EachDirective, MayStandWhereAMembersPolicyIsMade) {
    ConfigCheck check(members);
    const std::filesystem::path included = check.httpd().root() / "included.conf";
    std::ofstream(included) << line() << "\n";
    std::string lines = line() + "\n<VirtualHost *:81>\n" + line() + "\n</VirtualHost>\n<IfModule proxy_module>\n" +
                        line() + "\n</IfModule>\nInclude \"" + included.string() + "\"\n";
    for (const char* section : {"balancer://app", "http://127.0.0.1:9001", "*"}) {
        const std::string begin = "<Proxy \"" + std::string(section) + "\">\n";
        lines += begin + line() + "\n</Proxy>\n" + begin + "<IfModule proxy_module>\n" + line() +
                 "\n</IfModule>\n</Proxy>\n" + begin + "ProxyAddHeaders On\n<IfModule proxy_module>\n" + line() +
                 "\n</IfModule>\n</Proxy>\n" + begin + "Include \"" + included.string() + "\"\n</Proxy>\n";
    }
    check.expect_accepted(lines + "<ProxyMatch \":900.$\">\n" + line() + "\n</ProxyMatch>");
}

TEST_P(EachDirective, StandsInSectionsForRequestsOnlyIfItIsAboutRequests) {
    ConfigCheck check(members);
    const std::vector<std::pair<std::string, std::string>> sections{
        {"<Location /x>", "</Location>"},
        {"<Directory />", "</Directory>"},
        {"<Files x>", "</Files>"},
        {"<If \"true\">", "</If>"},
        {"<Location /x>\n<If \"true\">", "</If>\n</Location>"},
    };
    std::string all;
    for (const auto& [begin, end] : sections) {
        const std::string lines = begin + "\n" + line() + "\n" + end + "\n";
        all += lines;
        if (!GetParam().for_requests) check.expect_refused(lines, {GetParam().directive, "not allowed"}, line());
    }
    if (GetParam().for_requests) check.expect_accepted(all);
    if (!GetParam().for_requests) {
        check.expect_refused("<Proxy balancer://app>\n<If \"true\">\n" + line() + "\n</If>\n</Proxy>",
                             {GetParam().directive, "not allowed"}, line());
    }
}

TEST(ControlDirective, BelongsToSectionsForRequestsOnly) {
    ConfigCheck check(members);
    const std::string line = "CircuitBreakerControl On";
    check.expect_accepted("<Location /x>\n" + line + "\n</Location>\n<Directory />\n" + line +
                          "\n</Directory>\n<Files x>\n" + line + "\n</Files>\n<If \"true\">\n" + line + "\n</If>\n");
    check.expect_refused(line, {"CircuitBreakerControl", "not allowed here"});
    check.expect_refused("<VirtualHost *:81>\n" + line + "\n</VirtualHost>", {"not allowed in"}, line);
    check.expect_refused("<Proxy balancer://app>\n" + line + "\n</Proxy>",
                         {"CircuitBreakerControl: not allowed here", "SetHandler circuitbreaker-status"}, line);
    check.expect_refused("<Location /x>\nCircuitBreakerControl\n</Location>",
                         {"CircuitBreakerControl:", "value is missing", "On or Off"}, "CircuitBreakerControl");
    check.expect_refused("<Location /x>\n" + line + " Off\n</Location>",
                         {"CircuitBreakerControl:", "\"Off\"", "host=NAME"}, line);
    for (const char* value : {"Yes", "1", "Observe"}) {
        check.expect_refused("<Location /x>\nCircuitBreakerControl " + std::string(value) + "\n</Location>",
                             {"CircuitBreakerControl:", "\"" + std::string(value) + "\"", "On or Off"},
                             "CircuitBreakerControl");
    }
}

TEST(Htaccess, MayHoldNoDirectiveOfOurs) {
    Httpd httpd({.config = "<Directory />\n    AllowOverride All\n</Directory>\n"});
    const std::vector<std::string> lines{"CircuitBreaker On", "CircuitBreakerSettle 1s", "CircuitBreakerRetryAfter Off",
                                         "CircuitBreakerControl On"};
    for (std::size_t i = 0; i < lines.size(); ++i) {
        httpd.put_document(std::to_string(i) + "/.htaccess", lines[i] + "\n");
        httpd.put_document(std::to_string(i) + "/page", "page");
    }
    httpd.start();
    for (std::size_t i = 0; i < lines.size(); ++i) {
        EXPECT_EQ(get(httpd.url("/" + std::to_string(i) + "/page")).status, 500) << lines[i];
    }
    EXPECT_EQ(httpd.error_lines_with("not allowed here").size(), lines.size()) << httpd.describe();
}

TEST(Section, ThatAppliesToNoMemberIsWarnedOfWithFileAndLine) {
    ConfigCheck check(members);
    const std::vector<std::string> nobodys{
        "<Proxy balancer://ap>",
        "<Proxy balancer://apps>",
        "<Proxy http://127.0.0.1:900>",
        "<Proxy http://127.0.0.1:90011>",
        "<Proxy http://127.0.0.1:9001/path>",
        "<Proxy https://127.0.0.1:9001>",
        "<Proxy ftp:*>",
        "<Proxy \"unix:/nowhere|http://127.0.0.1:9001\">",
    };
    for (const std::string& section : nobodys) {
        check.expect_warned(section + "\n    CircuitBreaker On\n</Proxy>", section, {"applies to no member"});
    }
    check.expect_warned("<ProxyMatch \"^http://10\\.\">\nCircuitBreaker On\n</ProxyMatch>", "<ProxyMatch",
                        {"applies to no member"});
}

TEST(Section, ThatAppliesOrHoldsNothingOfOursIsNotWarnedOf) {
    ConfigCheck check(members);
    for (const char* name : {"balancer://app", "BALANCER://APP/", "http://127.0.0.1:9001", "HTTP://127.0.0.1:9002/",
                             "*", "balancer://*", "http://127.0.0.1:900[12]"}) {
        check.expect_accepted("<Proxy \"" + std::string(name) + "\">\nCircuitBreaker On\n</Proxy>");
    }
    check.expect_accepted("<Proxy http://nobody.example:1>\nProxyAddHeaders Off\n</Proxy>");
    check.expect_accepted("<Proxy http://127.0.0.1:9003 enablereuse=on>\nCircuitBreaker On\n</Proxy>");
    check.expect_accepted(
        "ProxyPass /p http://127.0.0.1:9004/p\n<Proxy http://127.0.0.1:9004/p>\nCircuitBreaker On\n</Proxy>");
    check.expect_accepted(
        "ProxyPass /s \"unix:/run/s|http://s\"\n<Proxy \"unix:/run/s|http://s\">\nCircuitBreaker On\n</Proxy>");
    check.expect_accepted("ProxyPass /s http://s.example:80\n<Proxy http://s.example>\nCircuitBreaker On\n</Proxy>");
}

TEST(Section, OfAVirtualHostForAMemberThatItOnlyInheritsIsWarnedOf) {
    ConfigCheck check(members);
    const std::string section = "<Proxy balancer://app>\nCircuitBreaker On\n</Proxy>\n";
    // One breaker, at the server that defines the balancer: this section would change nothing.
    check.expect_warned("<VirtualHost *:81>\n" + section + "</VirtualHost>", "<Proxy balancer://app>",
                        {"applies to no member"});
    check.expect_accepted(
        "<VirtualHost *:81>\n" + section +
        "<Proxy balancer://app>\nBalancerMember http://127.0.0.1:9005\n</Proxy>\nProxyPassInherit Off\n" +
        "BalancerInherit Off\n" + "ProxyPass / balancer://app/\n</VirtualHost>");
}

TEST(Member, WhoseHostIsNotKnownBeforeTheRequestIsWarnedOf) {
    ConfigCheck check;
    const std::string match = "ProxyPassMatch \"^/(\\w+)/(.*)$\" \"http://$1.example/$2\"\n";
    const CommandResult result = check.check("CircuitBreaker On\n" + match);
    EXPECT_EQ(result.exit_status, 0);
    EXPECT_EQ(ConfigCheck::warnings_in(result.output), 1U) << result.output;
    EXPECT_NE(result.output.find("http://$1.example/$2 has no breaker"), std::string::npos) << result.output;
    EXPECT_NE(result.output.find("enablereuse=on"), std::string::npos) << result.output;
    check.expect_accepted("CircuitBreaker Off\n" + match);
    check.expect_accepted("CircuitBreaker On\nProxyPassMatch \"^/(.*)$\" \"http://127.0.0.1:9001/$1\"\n");
}

TEST(Warnings, StandInTheErrorLogAfterARestartAndOnlyOnceAtAStart) {
    Httpd httpd({.config = std::string("<Proxy balancer://nobody>\nCircuitBreaker On\n</Proxy>\n") + status_location +
                           members});
    httpd.start();
    const auto said = [](const std::string& text) {
        const std::size_t first = text.find("applies to no member");
        return first != std::string::npos && text.find("applies to no member", first + 1) == std::string::npos;
    };
    EXPECT_TRUE(said(httpd.console() + httpd.error_log())) << httpd.describe();
    EXPECT_TRUE(httpd.graceful());
    EXPECT_TRUE(said(httpd.error_log())) << httpd.describe();
}

}  // namespace
}  // namespace cb::test
