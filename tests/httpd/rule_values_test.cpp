// Verdict rules that are errors to `httpd -t`, each with what is wrong and what would be right.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config_check.hpp"

namespace cb::test {
namespace {

constexpr const char* member = "ProxyPass / http://127.0.0.1:9001/\n";

class RuleDirective : public testing::TestWithParam<std::string> {
  protected:
    /// Refused where it stands, with the directive, the value and that part of what would be right.
    void expect_refused(const std::string& words, const std::string& value, const std::string& part) {
        check_.expect_refused("CircuitBreaker On\n" + GetParam() + " " + words, {GetParam() + ":", value, part});
    }

  private:
    ConfigCheck check_{member};
};

INSTANTIATE_TEST_SUITE_P(Both, RuleDirective, testing::Values("CircuitBreakerVerdict", "CircuitBreakerProbeVerdict"),
                         [](const auto& directive) { return directive.param; });

TEST_P(RuleDirective, RefusesWhatIsNoVerdict) {
    for (const char* word : {"fail", "ok", "failures", "503", "timeout", "-"})
        expect_refused(std::string(word) + " 503", "\"" + std::string(word) + "\"", "success, failure, fatal");
}

TEST_P(RuleDirective, RefusesARuleWithoutAConditionAndUnknownOnes) {
    expect_refused("failure", "a value is missing", "a status (503)");
    for (const char* word :
         {"99",       "50x", "5x", "0xx",  "5xxx", "xx",         "504-502",  "502-",  "502-1000", "timeouts",
          "time-out", "0",   "-1", "1000", "all",  "status=503", "xpr=true", "exprx", "json",     "body"}) {
        expect_refused("failure 503 " + std::string(word), "\"" + std::string(word) + "\"", "from 100 to 999");
    }
}

TEST_P(RuleDirective, RefusesARegexThatDoesNotCompile) {
    expect_refused("failure \"body=/(/\"", "\"body=/(/\"", "that compiles");
    expect_refused("failure body=/[/i", "\"body=/[/i\"", "that compiles");
    for (const char* word : {"body=", "body=x", "body=/x", "body=x/", "body=//", "body=/", "body=/x/g", "body=/x/ii"})
        expect_refused("failure " + std::string(word), "\"" + std::string(word) + "\"", "between slashes");
}

TEST_P(RuleDirective, RefusesAPointerWithoutASlash) {
    expect_refused("failure json=code:7", "\"json=code:7\"", "begins with a slash");
    expect_refused("failure json=", "\"json=\"", "begins with a slash");
    expect_refused("failure json=/code", "\"json=/code\"", "values to look for are missing");
    expect_refused("failure json=/code:", "\"json=/code:\"", "values to look for are missing");
    expect_refused("failure json=/a~b:1", "\"json=/a~b:1\"", "~0");
}

TEST_P(RuleDirective, RefusesAnExpressionWithASyntaxError) {
    for (const char* word : {"expr=", "expr=resp('X') ==", "expr=nonsense(", "expr=resp('X') = 'y' 'z'"})
        expect_refused("failure \"" + std::string(word) + "\"", "\"" + std::string(word) + "\"", "an expression");
    // The usual slip: no quotes around the whole.
    expect_refused("failure expr=resp('X') == 'y'", "\"expr=resp('X')\"", "quotes around the whole");
}

TEST_P(RuleDirective, RefusesToCountAgainstAMemberWhatItDidNotDo) {
    for (const char* verdict : {"failure", "fatal", "tolerate"}) {
        for (const char* word : {"local", "client"})
            expect_refused(std::string(verdict) + " 503 " + word, "\"" + std::string(word) + "\"", "ignore or success");
    }
}

}  // namespace
}  // namespace cb::test
