// Values of the directives, as `httpd -t` judges them: a wrong one is an error with file, line, directive, value and
// the allowed range; a right one passes.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config_check.hpp"

namespace cb::test {
namespace {

/// Two members, so that contradictions have somebody to apply to.
constexpr const char* members =
    "<Proxy balancer://app>\n    BalancerMember http://127.0.0.1:9001\n    BalancerMember http://127.0.0.1:9002\n"
    "</Proxy>\nProxyPass / balancer://app/\n";

struct WrongValues {
    const char* test_name;
    std::string directive;
    std::string before;  // words in front of the wrong one
    std::vector<std::string> values;
    std::string allowed;
};

void PrintTo(const WrongValues& wrong, std::ostream* out) {
    *out << wrong.directive << " " << wrong.before;
}

class WrongValue : public testing::TestWithParam<WrongValues> {};

TEST_P(WrongValue, IsRefusedWithFileLineDirectiveValueAndRange) {
    const WrongValues& wrong = GetParam();
    ASSERT_FALSE(wrong.values.empty());
    ConfigCheck check(members);
    for (const std::string& value : wrong.values) {
        check.expect_refused("CircuitBreaker On\n" + wrong.directive + " " + wrong.before + "\"" + value + "\"",
                             {wrong.directive + ":", "\"" + value + "\"", wrong.allowed});
    }
}

INSTANTIATE_TEST_SUITE_P(
    EveryDirective, WrongValue,
    testing::Values(
        WrongValues{"Mode", "CircuitBreaker", "", {"Yes", "1", "On ", "Observed"}, "On, Off or Observe"},
        WrongValues{"Window",
                    "CircuitBreakerWindow",
                    "",
                    {"10", "0s", "999ms", "25h", "86401s", "-1s", "10 s", "1.5s", "10m", "10d", "s", "ms",
                     "18446744073709551616s", "18446744073709551615h", "10ss", " 10s", "Off"},
                    "from 1s to 24h"},
        WrongValues{"WindowOfCalls",
                    "CircuitBreakerWindow",
                    "",
                    {"0calls", "4097calls", "calls", "-5calls", "1e3calls", "100 calls", "4294967297calls", "100call"},
                    "from 1 to 4096"},
        WrongValues{"MinimumCalls",
                    "CircuitBreakerMinimumCalls",
                    "",
                    {"0", "-1", "1000001", "20calls", "1.5", "Off", "4294967297", "99999999999999999999"},
                    "from 1 to 1000000"},
        WrongValues{"FailureRate",
                    "CircuitBreakerFailureRate",
                    "",
                    {"0", "0%", "101", "101%", "50%%", "-1", "50.5", "%", "On", "50 %"},
                    "from 1 to 100"},
        WrongValues{"ConsecutiveFailures",
                    "CircuitBreakerConsecutiveFailures",
                    "",
                    {"0", "1024", "-1", "5x", "On", "2.0"},
                    "from 1 to 1023"},
        WrongValues{"SlowCall", "CircuitBreakerSlowCall", "", {"0ms", "2", "25h", "On", "-1s"}, "from 1ms to 24h"},
        WrongValues{"SlowCallRate",
                    "CircuitBreakerSlowCall",
                    "2s ",
                    {"rate=0", "rate=101", "rate=", "rate=x", "rate", "50%", "ratio=50", "rate =50"},
                    "from 1 to 100"},
        WrongValues{"SlowCallUntil",
                    "CircuitBreakerSlowCall",
                    "2s rate=Off ",
                    {"until=", "until=last-byte", "until", "end"},
                    "until=first-byte or until=end"},
        WrongValues{"FailureCount",
                    "CircuitBreakerFailureCount",
                    "",
                    {"0", "10001", "-1", "5x", "50%", "On", "2.0"},
                    "from 1 to 10000, or Off"},
        WrongValues{"SlowCallOffAndMore", "CircuitBreakerSlowCall", "Off ", {"rate=50"}, "nothing after Off"},
        WrongValues{"OpenTime",
                    "CircuitBreakerOpenTime",
                    "",
                    {"99ms", "0s", "25h", "30", "Off", "1441min", "-30s"},
                    "from 100ms to 24h"},
        WrongValues{"OpenTimeMax",
                    "CircuitBreakerOpenTime",
                    "30s ",
                    {"max=", "max=99ms", "max=25h", "max=300", "max=Off"},
                    "from 100ms to 24h"},
        WrongValues{"OpenTimeFactor",
                    "CircuitBreakerOpenTime",
                    "30s ",
                    {"factor=", "factor=0.9", "factor=0", "factor=101", "factor=100.001", "factor=x", "factor=1.2345",
                     "factor=2.", "factor=.5", "factor=-2", "factor=1,5"},
                    "from 1 to 100"},
        WrongValues{"OpenTimeJitter",
                    "CircuitBreakerOpenTime",
                    "30s ",
                    {"jitter=", "jitter=101", "jitter=-1", "jitter=10s", "jitter=Off"},
                    "from 0 to 100"},
        WrongValues{"OpenTimeMin",
                    "CircuitBreakerOpenTime",
                    "30s ",
                    {"min=99ms", "min=25h", "min=", "min=1", "min=Off"},
                    "min=DURATION from 100ms to 24h"},
        WrongValues{"OpenTimeNotice",
                    "CircuitBreakerOpenTime",
                    "30s ",
                    {"notice=0s", "notice=25h", "notice=", "notice=1", "notice=On"},
                    "notice=DURATION from 1ms to 24h"},
        WrongValues{"OpenTimeKey",
                    "CircuitBreakerOpenTime",
                    "30s ",
                    {"maximum=60s", "60s", "=60s", "max", "max 60s"},
                    "max=DURATION, factor=NUMBER"},
        WrongValues{
            "MaxOpen", "CircuitBreakerMaxOpen", "", {"0", "101", "-1", "Off", "50.5%", "half"}, "from 1 to 100"},
        WrongValues{"Probes", "CircuitBreakerProbes", "", {"0", "64", "-1", "Off", "3x"}, "from 1 to 63"},
        WrongValues{"ProbesConcurrent",
                    "CircuitBreakerProbes",
                    "20 ",
                    {"concurrent=", "concurrent=0", "concurrent=17", "concurrent=x", "concurrent=-1"},
                    "from 1 to 16"},
        WrongValues{"ProbesTolerate",
                    "CircuitBreakerProbes",
                    "3 ",
                    {"tolerate=", "tolerate=16", "tolerate=-1", "tolerate=101%", "tolerate=%", "tolerate=1.5%"},
                    "from 0 to 15, or a share"},
        WrongValues{"ProbesTolerateAll",
                    "CircuitBreakerProbes",
                    "3 ",
                    {"tolerate=3", "tolerate=15", "tolerate=100%"},
                    "none would have to succeed: lower it, or write successes=N"},
        WrongValues{"ProbesSuccesses",
                    "CircuitBreakerProbes",
                    "63 ",
                    {"successes=", "successes=0", "successes=64", "successes=all", "successes=0%", "successes=101%"},
                    "from 1 to 63, or a share"},
        WrongValues{"ProbesMax",
                    "CircuitBreakerProbes",
                    "3 ",
                    {"max=", "max=0", "max=64", "max=-1", "max=Off", "max=6x"},
                    "from 1 to 63"},
        WrongValues{"ProbesKey", "CircuitBreakerProbes", "3 ", {"5", "parallel=2", "concurrent"}, "concurrent=N"},
        WrongValues{"RampUp", "CircuitBreakerRampUp", "", {"99ms", "0s", "25h", "60", "On"}, "from 100ms to 24h"},
        WrongValues{"RampUpFrom",
                    "CircuitBreakerRampUp",
                    "60s ",
                    {"from=", "from=101", "from=-1", "from=x", "to=50", "10%"},
                    "from 0 to 100"},
        WrongValues{"RampUpOffAndMore", "CircuitBreakerRampUp", "Off ", {"from=10"}, "nothing after Off"},
        WrongValues{"OpenTimeRetryAfter",
                    "CircuitBreakerOpenTime",
                    "30s ",
                    {"retry-after=", "retry-after=20s", "retry-after=Yes", "retry-after=1"},
                    "retry-after=On or retry-after=Off"},
        WrongValues{
            "ProbeTimeout", "CircuitBreakerProbeTimeout", "", {"0ms", "2", "25h", "On", "-1s"}, "from 1ms to 24h"},
        WrongValues{"ProbeIf",
                    "CircuitBreakerProbeIf",
                    "",
                    {"%{REQUEST_METHOD} ==", "nonsense(", "'a' = 'b' 'c'"},
                    "an expression"},
        WrongValues{"ProbeHeader",
                    "CircuitBreakerProbeHeader",
                    "",
                    {"X Probe", "On", "X-Probe:", "Host", "content-length", "Connection", "(x)"},
                    "header field of your own"},
        WrongValues{"MaxConcurrent",
                    "CircuitBreakerMaxConcurrent",
                    "",
                    {"0", "-1", "1000001", "50%", "On", "1.5"},
                    "from 1 to 1000000"},
        WrongValues{"Failover", "CircuitBreakerFailover", "", {"On", "Some", "3", "tries=2"}, "Off, Probes or All"},
        WrongValues{"FailoverBudget",
                    "CircuitBreakerFailover",
                    "All ",
                    {"budget=", "budget=101", "budget=-1", "budget=x"},
                    "budget=PERCENT from 0 to 100"},
        WrongValues{"FailoverTries",
                    "CircuitBreakerFailover",
                    "All ",
                    {"tries=", "tries=1", "tries=101", "tries=x"},
                    "tries=N from 2 to 100"},
        WrongValues{"FailoverTimeout",
                    "CircuitBreakerFailover",
                    "Probes ",
                    {"timeout=", "timeout=0ms", "timeout=10", "timeout=25h"},
                    "timeout=DURATION from 1ms to 24h"},
        WrongValues{"FailoverKey", "CircuitBreakerFailover", "All ", {"5", "retries=2", "Off"}, "tries=N"},
        WrongValues{"FailoverOffAndMore", "CircuitBreakerFailover", "Off ", {"tries=2"}, "nothing after Off"},
        WrongValues{"BodyLimit",
                    "CircuitBreakerBodyLimit",
                    "",
                    {"0", "-1", "1048577", "8k", "Off", "8192.0"},
                    "from 1 to 1048576"},
        WrongValues{
            "ProbeBody", "CircuitBreakerProbeBody", "", {"-1", "16777217", "64k", "Off", "1.5"}, "from 0 to 16777216"},
        WrongValues{"Settle", "CircuitBreakerSettle", "", {"10", "25h", "Off", "-1s"}, "from 0s to 24h"},
        WrongValues{"RecordPath", "CircuitBreakerRecordPath", "", {"1", "Yes", "/path", "Observe"}, "On or Off"},
        WrongValues{
            "HealthCheck", "CircuitBreakerHealthCheck", "", {"On", "1", "earlier", "10s"}, "Off, Early, Gate or Both"},
        WrongValues{"RetryAfter", "CircuitBreakerRetryAfter", "", {"1", "10s", "Yes", "Observe"}, "On or Off"}),
    [](const auto& wrong) { return std::string(wrong.param.test_name); });

TEST(RightValue, OfEveryDirectivePassesToTheEndsOfItsRange) {
    ConfigCheck check(members);
    const std::vector<std::vector<std::string>> lines{
        // a directive, then its values
        {"CircuitBreaker ", "Off", "Observe", "on", "ON", "On"},
        {"CircuitBreakerWindow ", "1s", "24h", "1440min", "1000ms", "86400S", "1calls", "4096CALLS", "10s"},
        {"CircuitBreakerMinimumCalls ", "1", "1000000", "020"},
        {"CircuitBreakerFailureRate ", "1", "100%", "off", "50"},
        {"CircuitBreakerConsecutiveFailures ", "1", "1023", "Off"},
        {"CircuitBreakerSlowCall ", "1ms", "24h rate=1", "2s rate=100%", "2s RATE=50", "2s rate=off UNTIL=END",
         "2s until=first-byte rate=1", "Off"},
        {"CircuitBreakerFailureCount ", "1", "10000", "off"},
        {"CircuitBreakerOpenTime ", "100ms", "24h", "24h max=24h", "30s max=30s", "30s factor=1", "30s factor=100",
         "30s factor=1.125", "30s retry-after=on", "30s jitter=0", "30s jitter=100%",
         "30s jitter=5 factor=1.5 max=1min", "30s min=100ms", "30s min=24h",
         "10min"},  // above the default max: then it is its own
        {"CircuitBreakerMaxOpen ", "1", "100%", "34"},
        {"CircuitBreakerProbes ", "1", "63", "63 concurrent=16 tolerate=15 successes=63", "17 concurrent=1",
         "3 successes=1 tolerate=0", "3 max=3", "3 concurrent=12 tolerate=1 successes=2 max=12", "1 max=63",
         "4 tolerate=50%", "1 tolerate=100% successes=100% max=8", "63 tolerate=0% successes=1%"},
        {"CircuitBreakerRampUp ", "100ms", "24h from=100", "60s from=0%", "Off"},
        {"CircuitBreakerVerdict ", "failure 500-599", "FATAL 503 connect", "tolerate 404 timeout",
         "failure 5XX 1xx-4xx", "ignore local client upload stale", "failure upload", "success json=/a:1",
         "failure body=/x/i", "failure \"expr=resp('X') == 'y'\"",
         "failure 200 json=/error/0/code:7,8,\\\\, \"body=/a b/\" \"expr=true\" 201 protocol"},
        {"CircuitBreakerProbeVerdict ", "failure 100-599", "ignore reset truncated"},
        {"CircuitBreakerProbeTimeout ", "1ms", "24h", "off"},
        {"CircuitBreakerProbeIf ", "true", "\"%{REQUEST_METHOD} in {'GET', 'HEAD'}\""},
        {"CircuitBreakerProbeHeader ", "X-Probe", "x_1!", "Off"},
        {"CircuitBreakerMaxConcurrent ", "1", "1000000", "OFF"},
        {"CircuitBreakerFailover ", "off", "Probes", "ALL", "All budget=0", "All budget=100% tries=2 timeout=1ms",
         "Probes TRIES=100 timeout=24h"},
        {"CircuitBreakerBodyLimit ", "1", "1048576", "8192"},
        {"CircuitBreakerProbeBody ", "0", "16777216", "65536"},
        {"CircuitBreakerSettle ", "0s", "24h", "500ms"},
        {"CircuitBreakerRetryAfter ", "On", "off"},
        {"CircuitBreakerRecordPath ", "Off", "on"},
        {"CircuitBreakerHealthCheck ", "Off", "early"},
    };
    for (const std::vector<std::string>& each : lines) {
        std::string all;  // the last one stays
        for (std::size_t i = 1; i < each.size(); ++i)
            all += each[0] + each[i] + "\n";
        check.expect_accepted(all);
    }
}

TEST(Contradiction, WithinADirectiveIsRefusedWhereItStands) {
    ConfigCheck check(members);
    check.expect_refused("CircuitBreakerProbes 3 concurrent=4", {"CircuitBreakerProbes:", "concurrent=4", "3 probes"});
    check.expect_refused("CircuitBreakerProbes 3 successes=4", {"CircuitBreakerProbes:", "successes=4", "3 probes"});
    check.expect_refused("CircuitBreakerProbes 3 max=2",
                         {"CircuitBreakerProbes:", "max=2", "3 probes", "write max=3 or more"});
    check.expect_refused("CircuitBreakerProbes 3 max=6 concurrent=7",
                         {"CircuitBreakerProbes:", "concurrent=7", "6 probes"});
    check.expect_refused("CircuitBreakerProbes 3 successes=4 max=6",
                         {"CircuitBreakerProbes:", "successes=4", "3 probes"});
    check.expect_refused("CircuitBreakerOpenTime 30s max=29999ms",
                         {"CircuitBreakerOpenTime:", "max=29999ms", "30s", "write max=30s or more"});
}

TEST(Contradiction, OfMoreCallsNeededThanTheWindowHoldsIsRefusedWithBothLines) {
    ConfigCheck check(members);
    const std::string both = "CircuitBreaker On\nCircuitBreakerWindow 10calls\nCircuitBreakerMinimumCalls 11";
    check.expect_refused(both,
                         {"CircuitBreakerMinimumCalls 11", "CircuitBreakerWindow 10calls", "http://127.0.0.1:9001"});
    check.expect_refused(both, {}, "CircuitBreakerWindow 10calls");
    check.expect_refused("CircuitBreaker On\nCircuitBreakerWindow 19calls",
                         {"CircuitBreakerMinimumCalls", "20", "CircuitBreakerWindow 19calls"});
    check.expect_accepted("CircuitBreaker On\nCircuitBreakerWindow 10calls\nCircuitBreakerMinimumCalls 10");
    check.expect_accepted("CircuitBreakerWindow 10calls\nCircuitBreakerMinimumCalls 11");  // Off
}

TEST(Contradiction, OfMoreFailuresThanTheWindowHoldsIsRefusedWithBothLines) {
    ConfigCheck check(members);
    const std::string window = "CircuitBreaker On\nCircuitBreakerWindow 100calls\n";
    check.expect_refused(window + "CircuitBreakerFailureCount 101",
                         {"CircuitBreakerFailureCount 101", "CircuitBreakerWindow 100calls", "http://127.0.0.1:9001"});
    check.expect_accepted(window + "CircuitBreakerFailureCount 100");
    check.expect_accepted("CircuitBreaker On\nCircuitBreakerFailureCount 10000");
}

TEST(Contradiction, OfNothingThatCouldTripIsRefused) {
    ConfigCheck check(members);
    const std::string nothing = "CircuitBreakerConsecutiveFailures Off\nCircuitBreakerFailureRate Off";
    check.expect_refused("CircuitBreaker On\n" + nothing,
                         {"CircuitBreakerFailureRate", "CircuitBreakerConsecutiveFailures", "CircuitBreakerSlowCall"});
    check.expect_refused("CircuitBreaker Observe\n" + nothing, {"CircuitBreakerFailureRate"});
    check.expect_accepted("CircuitBreaker On\nCircuitBreakerSlowCall 2s\n" + nothing);
    check.expect_accepted("CircuitBreaker On\nCircuitBreakerFailureCount 30\n" + nothing);
    check.expect_refused("CircuitBreaker On\n" + nothing + "\nCircuitBreakerSlowCall 2s rate=Off",
                         {"CircuitBreakerFailureCount", "CircuitBreakerSlowCall 2s rate=Off"});
    const std::string on = "CircuitBreaker On\n" + nothing + "\n";
    check.expect_refused("CircuitBreakerVerdict failure 500\n" + on, {"CircuitBreakerVerdict fatal"},
                         "CircuitBreakerFailureRate Off");
    check.expect_accepted(on + "CircuitBreakerVerdict fatal 503");
    check.expect_refused("<Proxy http://127.0.0.1:9002>\n    CircuitBreakerVerdict fatal 503\n</Proxy>\n" + on,
                         {"http://127.0.0.1:9001"}, "CircuitBreakerFailureRate Off");
    check.expect_accepted(on + "<Location /x>\n    CircuitBreakerVerdict fatal 503\n</Location>");
    check.expect_accepted("CircuitBreaker Off\n" + nothing);
}

TEST(Contradiction, ThatOnlyTwoSectionsTogetherMakeIsRefusedForThatMember) {
    ConfigCheck check(members);
    const std::string server = "CircuitBreaker On\nCircuitBreakerMinimumCalls 50\n";
    check.expect_accepted(server);
    check.expect_refused(server + "<Proxy http://127.0.0.1:9002>\n    CircuitBreakerWindow 20calls\n</Proxy>",
                         {"member http://127.0.0.1:9002 of balancer://app", "CircuitBreakerMinimumCalls 50"},
                         "CircuitBreakerWindow 20calls");
}

TEST(Contradiction, KeepsTheServerFromStarting) {
    Httpd httpd({.config = std::string("CircuitBreaker On\nCircuitBreakerWindow 5calls\n") + members});
    EXPECT_FALSE(httpd.try_start());
    EXPECT_EQ(httpd.exit_status(), 1) << httpd.describe();
    EXPECT_NE(httpd.console().find("CircuitBreakerMinimumCalls"), std::string::npos) << httpd.console();
}

}  // namespace
}  // namespace cb::test
