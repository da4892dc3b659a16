// Members and balancers whose names hold an IPv6 address: httpd takes its brackets for those of a pattern.
#include <gtest/gtest.h>

#include <string>

#include "config_check.hpp"
#include "traffic.hpp"

namespace cb::test {
namespace {

constexpr const char* off = "CircuitBreaker Off\nCircuitBreakerConsecutiveFailures 7\n";

std::string section(const std::string& name, unsigned limit) {
    return "<Proxy \"" + name + "\">\n    CircuitBreaker On\n    CircuitBreakerConsecutiveFailures " +
           std::to_string(limit) + "\n</Proxy>\n";
}

/// What each member's page says, "" for one without a breaker.
std::string limits(const Httpd& httpd, const std::vector<std::string>& members) {
    const BreakerPage page(httpd);
    std::string text;
    for (const std::string& member : members)
        text += (text.empty() ? "" : " ") + page.member(member).at("Consecutive-limit");
    return text;
}

TEST(Ipv6, AddressOfAMemberIsANameAndNoPattern) {
    const std::vector<std::string> members{"http://[::1]:8080",
                                           "http://[::1]",
                                           "http://[2001:db8::7]:8080/path",
                                           "unix:/run/app|http://[::1]:8081",
                                           "http://[fe80::1%eth0]:8080",
                                           "https://[::ffff:10.0.0.7]"};
    std::string lines = off;
    for (const std::string& member : members)
        lines += "ProxyPass /" + std::to_string(lines.size()) + " \"" + member + "\"\n";
    // What the brackets would match, were they a pattern's.
    for (const char* other : {"http://1:8080", "http://1", "http://[::1]:8082", "http://[::2]:8080"})
        lines += "ProxyPass /" + std::to_string(lines.size()) + " " + other + "\n";
    lines += section("http://[::1]:8080", 11) + section("HTTP://[::1]:80/", 12) +
             section("http://[2001:DB8::7]:8080/path/", 13) + section("unix:/run/app|http://[::1]:8081", 14) +
             section("http://[FE80::1%eth0]:8080", 15) + section("https://[::ffff:10.0.0.7]:443", 16);
    Httpd httpd({.config = status_location + lines});
    httpd.start();
    EXPECT_EQ(limits(httpd, members), "11 12 13 14 15 16") << get(httpd.url("/breakers?auto")).body;
    EXPECT_EQ(BreakerPage(httpd).members().size(), members.size()) << "the others have none";
    EXPECT_EQ(httpd.error_log().find("applies to no member"), std::string::npos) << httpd.describe();
}

TEST(Ipv6, AddressStandsForItselfInAPatternToo) {
    Httpd httpd({.config = std::string(off) + status_location +
                           "ProxyPass /1 http://[::1]:8080\nProxyPass /2 http://[::1]:8081/x\n"
                           "ProxyPass /3 http://[::1]\nProxyPass /4 http://1:8080\n" +
                           section("http://[::1]:*", 11) + section("http://[::1]:808[1-9]/?", 12)});
    httpd.start();
    EXPECT_EQ(limits(httpd, {"http://[::1]:8080", "http://[::1]:8081/x", "http://[::1]", "http://1:8080"}), "11 12  ");
}

TEST(Ipv6, MemberOfABalancerIsRefinedByItsOwnSectionAndMeetsIt) {
    TempDir folder("cb-ipv6");
    Backend app("app", OnUnixSocket{folder.path() / "socket"});
    const std::string member = "unix:" + (folder.path() / "socket").string() + "|http://[::1]:8080";
    Httpd httpd(
        site(Mpm::event, std::string(quick_policy) + long_open,
             balancer_of("    BalancerMember \"" + member + "\"\n    BalancerMember http://[::1]:9 status=+D\n") +
                 section(member, 2) + "<Proxy \"balancer://[::1]\">\n    BalancerMember http://[::1]:9\n" +
                 "</Proxy>\n" + section("balancer://[::1]", 5)));
    httpd.start();
    app.answer(Reply::status(503));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "503 503 503") << httpd.describe();
    EXPECT_EQ(app.requests(), 2U) << "by the section's policy";
    const BreakerPage page(httpd);
    EXPECT_EQ(page.member(member).at("State"), "open");
    EXPECT_EQ(page.member("http://[::1]:9", "balancer://app").at("Consecutive-limit"), "3");
    EXPECT_EQ(page.member("http://[::1]:9", "balancer://[::1]").at("Consecutive-limit"), "5");
}

TEST(Ipv6, SectionThatAppliesToNoMemberIsToldWhatHttpdTakes) {
    ConfigCheck check("ProxyPass / http://[::1]:9001/\n");
    const std::string name = "<Proxy \"http://[::1]:9002\">";
    check.expect_warned(name + "\nCircuitBreaker On\n</Proxy>", name,
                        {"applies to no member", "ProxySet enablereuse=on"});
    check.expect_accepted(name + "\nProxySet enablereuse=on\nCircuitBreaker On\n</Proxy>");
    const CommandResult parameter = check.check("<Proxy \"http://[::1]:9002\" enablereuse=on>\n</Proxy>\n");
    EXPECT_EQ(parameter.exit_status, 1) << "what is said of other names";
    for (const std::string pattern : {"<Proxy \"http://[::1]:8*\">", "<Proxy \"ftp:*\">"}) {
        const CommandResult result = check.check(pattern + "\nCircuitBreaker On\n</Proxy>\n");
        EXPECT_NE(result.output.find("applies to no member"), std::string::npos) << result.output;
        EXPECT_EQ(result.output.find("enablereuse"), std::string::npos) << "a pattern declares none\n" << result.output;
    }
    check.expect_accepted("<Proxy \"http://[::1]:9001\">\nCircuitBreaker On\n</Proxy>");
}

}  // namespace
}  // namespace cb::test
