// retry= of a member whose breaker is On has no effect: what the start says of it, at LogLevel info.
#include <sstream>

#include "config_check.hpp"
#include "traffic.hpp"

namespace cb::test {
namespace {

/// The module's lines of it.
std::string told(const std::string& output) {
    std::string lines;
    std::istringstream stream(output);
    for (std::string line; std::getline(stream, line);) {
        if (const std::size_t at = line.find("mod_circuitbreaker: "); at != std::string::npos)
            lines += line.substr(at) + "\n";
    }
    return lines;
}

const std::string members =
    "<Proxy balancer://app>\n"
    "    BalancerMember http://127.0.0.1:9001 retry=5\n"
    "    BalancerMember http://127.0.0.1:9002\n"
    "    BalancerMember http://127.0.0.1:9003\n"
    "</Proxy>\n"
    "ProxyPass /app balancer://app\n"
    "ProxyPass /plain http://127.0.0.1:9004 retry=0\n";

std::string about(const std::string& member) {
    return "mod_circuitbreaker: member " + member +
           ": retry= has no effect, because its CircuitBreaker is On: CircuitBreakerOpenTime says when it is tried "
           "again\n";
}

TEST(Retry, OfAMemberWhoseBreakerIsOnIsToldAtInfo) {
    ConfigCheck check(members, {.log_level = "notice circuitbreaker:info"});
    const std::string both = about("http://127.0.0.1:9001 of balancer://app") + about("http://127.0.0.1:9004");
    const CommandResult on = check.check("CircuitBreaker On");
    EXPECT_EQ(on.exit_status, 0);
    EXPECT_EQ(told(on.output), both);
    EXPECT_EQ(told(check.check("<Proxy http://127.0.0.1:9004>\n    CircuitBreaker On\n</Proxy>").output),
              about("http://127.0.0.1:9004"));
    for (const char* quiet : {"CircuitBreaker Off", "CircuitBreaker Observe", ""})
        EXPECT_EQ(told(check.check(quiet).output), "") << quiet;
}

TEST(Retry, IsToldOnceAtTheStartAndNotAtNotice) {
    Httpd httpd({.config = "CircuitBreaker On\n" + members, .log_level = "info"});
    httpd.start();
    EXPECT_EQ(told(httpd.console()), about("http://127.0.0.1:9001 of balancer://app") + about("http://127.0.0.1:9004"));
    EXPECT_TRUE(httpd.error_lines_with("retry= has no effect").empty()) << "by the second reading";
    ConfigCheck check(members);
    check.expect_accepted("CircuitBreaker On");
}

}  // namespace
}  // namespace cb::test
