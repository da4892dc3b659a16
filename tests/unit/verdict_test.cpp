// Outcome classes, verdicts, and the rules that lead from one to the other.
#include "core/verdict.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vocabulary.hpp"

namespace cb::test {
namespace {

constexpr Outcome kClassesInOrder[] = {Outcome::connect, Outcome::timeout,   Outcome::reset,
                                       Outcome::stale,   Outcome::truncated, Outcome::protocol,
                                       Outcome::local,   Outcome::client,    Outcome::upload};

/// A rule and the ranges it refers to.
class OwnRule {
  public:
    OwnRule(Verdict verdict, std::initializer_list<CodeRange> ranges) : ranges_(ranges), verdict_(verdict) {}
    operator Rule() const { return {verdict_, static_cast<std::uint32_t>(ranges_.size()), ranges_.data()}; }

  private:
    std::vector<CodeRange> ranges_;
    Verdict verdict_;
};
Outcome code(unsigned value) {
    return static_cast<Outcome>(value);
}

TEST(OutcomeClass, HasTheNameOfTheReferenceAndIsFoundByIt) {
    const char* const names[] = {"connect",  "timeout", "reset",  "stale", "truncated",
                                 "protocol", "local",   "client", "upload"};
    ASSERT_EQ(std::size(names), kClasses);
    for (std::size_t i = 0; i < kClasses; ++i) {
        EXPECT_STREQ(class_name(kClassesInOrder[i]), names[i]);
        EXPECT_EQ(class_named(names[i]), kClassesInOrder[i]);
    }
}

TEST(OutcomeClass, IsNotFoundByAnyOtherName) {
    for (const std::string_view wrong : {"", "none", "502", "connec", "connects", " timeout", "reset\n", "success"}) {
        EXPECT_EQ(class_named(wrong), Outcome::none) << '"' << wrong << '"';
    }
}

TEST(OutcomeClass, HasNoNameWhereThereIsNoClass) {
    for (unsigned value = 0; value < 0x10000; ++value) {
        const bool is_class = value >= 1000 && value < 1000 + kClasses;
        ASSERT_EQ(*class_name(code(value)) == '\0', !is_class) << value;
    }
}

TEST(Outcome, FitsTheTenBitsOfTheFlightRecorder) {
    for (const Outcome outcome : kClassesInOrder)
        EXPECT_LT(static_cast<unsigned>(outcome), 1U << 10);
    EXPECT_LT(999U, static_cast<unsigned>(Outcome::connect));
}

TEST(Outcome, OfAStatusIsThatStatusAndOfNonsenseAProtocolError) {
    for (int status = -10; status < 2000; ++status) {
        if (status >= 100 && status <= 999) {
            ASSERT_EQ(static_cast<int>(status_outcome(status)), status);
            ASSERT_TRUE(is_status(status_outcome(status)));
        } else {
            ASSERT_EQ(status_outcome(status), Outcome::protocol) << status;
        }
    }
    for (const Outcome outcome : kClassesInOrder)
        EXPECT_FALSE(is_status(outcome));
    EXPECT_FALSE(is_status(Outcome::none));
}

TEST(Verdict, HasTheNameOfTheReference) {
    EXPECT_STREQ(name(Verdict::success), "success");
    EXPECT_STREQ(name(Verdict::failure), "failure");
    EXPECT_STREQ(name(Verdict::fatal), "fatal");
    EXPECT_STREQ(name(Verdict::tolerate), "tolerate");
    EXPECT_STREQ(name(Verdict::ignore), "ignore");
    EXPECT_EQ(std::size(kAllVerdicts), kVerdicts);
}

// ---- The built-in rules.

TEST(BuiltinVerdict, OfEveryStatusIsSuccessButForTheThreeOfABadGateway) {
    for (int status = 100; status <= 999; ++status) {
        const bool is_failure = status >= 502 && status <= 504;
        ASSERT_EQ(builtin_verdict(status_outcome(status)), is_failure ? Verdict::failure : Verdict::success) << status;
    }
}

TEST(BuiltinVerdict, OfWhatTheMemberDidIsFailure) {
    for (const Outcome outcome :
         {Outcome::connect, Outcome::timeout, Outcome::reset, Outcome::truncated, Outcome::protocol}) {
        EXPECT_EQ(builtin_verdict(outcome), Verdict::failure) << class_name(outcome);
    }
}

TEST(BuiltinVerdict, NeverCountsAgainstAMemberWhatItDidNotDo) {
    for (const Outcome outcome : {Outcome::local, Outcome::client, Outcome::upload, Outcome::stale, Outcome::none}) {
        EXPECT_EQ(builtin_verdict(outcome), Verdict::ignore) << class_name(outcome);
    }
}

TEST(BuiltinVerdict, IsNeverFatalNorTolerant) {
    for (unsigned value = 0; value < 1024; ++value) {
        const Verdict verdict = builtin_verdict(code(value));
        ASSERT_TRUE(verdict == Verdict::success || verdict == Verdict::failure || verdict == Verdict::ignore) << value;
    }
}

// ---- Rules of the configuration.

TEST(Rule, MatchesFromTheFirstToTheLastCodeOfItsRange) {
    const OwnRule rule(Verdict::failure, {{502, 504}});
    for (unsigned value = 0; value < 1024; ++value) {
        ASSERT_EQ(matches(rule, code(value)), value >= 502 && value <= 504) << value;
    }
}

TEST(Rule, MatchesASingleCode) {
    const OwnRule rule(Verdict::fatal, {{503, 503}});
    EXPECT_TRUE(matches(rule, status_outcome(503)));
    EXPECT_FALSE(matches(rule, status_outcome(502)));
    EXPECT_FALSE(matches(rule, status_outcome(504)));
}

TEST(Rule, TakesItsStatusesAndClassesAsAlternatives) {
    const auto timeout = static_cast<std::uint16_t>(Outcome::timeout);
    const OwnRule rule(Verdict::failure, {{500, 599}, {timeout, timeout}, {429, 429}});
    EXPECT_TRUE(matches(rule, status_outcome(500)));
    EXPECT_TRUE(matches(rule, status_outcome(599)));
    EXPECT_TRUE(matches(rule, status_outcome(429)));
    EXPECT_TRUE(matches(rule, Outcome::timeout));
    EXPECT_FALSE(matches(rule, Outcome::connect));
    EXPECT_FALSE(matches(rule, Outcome::reset));
    EXPECT_FALSE(matches(rule, status_outcome(200)));
}

TEST(Rule, WithoutARangeMatchesWhateverConcernsTheMember) {
    const Rule rule{Verdict::failure, 0, nullptr};
    for (unsigned value = 100; value < 1000 + kClasses; ++value) {
        const Outcome outcome = code(value);
        const bool is_no_fault = outcome == Outcome::local || outcome == Outcome::client ||
                                 outcome == Outcome::upload || outcome == Outcome::stale;
        ASSERT_EQ(matches(rule, outcome), !is_no_fault) << value;
    }
    EXPECT_FALSE(matches(rule, Outcome::none));
}

TEST(Codes, AreAStatusARangeOrAClass) {
    CodeRange range{};
    ASSERT_TRUE(parse_codes("503", range));
    EXPECT_EQ(range.first, 503);
    EXPECT_EQ(range.last, 503);
    ASSERT_TRUE(parse_codes("100-999", range));
    EXPECT_EQ(range.first, 100);
    EXPECT_EQ(range.last, 999);
    ASSERT_TRUE(parse_codes("timeout", range));
    EXPECT_EQ(range.first, static_cast<std::uint16_t>(Outcome::timeout));
    EXPECT_EQ(range.last, range.first);
}

TEST(Codes, AreAllStatusesOfOneFirstDigit) {
    CodeRange range{};
    for (unsigned digit = 1; digit <= 9; ++digit) {
        ASSERT_TRUE(parse_codes(std::to_string(digit) + "xx", range));
        EXPECT_EQ(range.first, digit * 100);
        EXPECT_EQ(range.last, digit * 100 + 99);
    }
    for (const auto& [text, first, last] : std::vector<std::tuple<std::string, unsigned, unsigned>>{
             {"4xx-5xx", 400, 599}, {"429-5xx", 429, 599}, {"4xx-502", 400, 502}, {"5xx-5xx", 500, 599}}) {
        ASSERT_TRUE(parse_codes(text, range)) << text;
        EXPECT_EQ(range.first, first) << text;
        EXPECT_EQ(range.last, last) << text;
    }
}

TEST(Codes, AreNothingElse) {
    CodeRange range{};
    for (const std::string_view wrong :
         {"",     "99",   "1000", "0503",    "50",          "0xx",      "5x",         "5x0",  "x5x",
          "5XX",  "5xxx", "50x",  "5xx-500", "5xx-4xx",     "504-502",  "502-",       "-504", "502-504-505",
          "502 ", "+50",  "none", "Timeout", "502-timeout", "999-1000", "99999999999"}) {
        EXPECT_FALSE(parse_codes(wrong, range)) << '"' << wrong << '"';
    }
}

TEST(Verdict, IsFoundByItsNameAndByNoOther) {
    for (std::uint32_t i = 0; i < kVerdicts; ++i) {
        Verdict verdict{};
        EXPECT_TRUE(verdict_named(name(static_cast<Verdict>(i)), verdict));
        EXPECT_EQ(verdict, static_cast<Verdict>(i));
    }
    Verdict verdict{};
    for (const std::string_view wrong : {"", "ok", "Failure", "fail", "unknown", "failure "})
        EXPECT_FALSE(verdict_named(wrong, verdict)) << wrong;
}

TEST(BuiltinVerdict, TakesTheFailingStatusesThatItIsGiven) {
    const OwnRule statuses(Verdict::failure, {{500, 500}, {429, 429}});
    for (int status = 100; status < 600; ++status) {
        const bool fails = status == 500 || status == 429;
        ASSERT_EQ(builtin_verdict(status_outcome(status), statuses), fails ? Verdict::failure : Verdict::success);
    }
    EXPECT_EQ(builtin_verdict(Outcome::timeout, statuses), Verdict::failure);
    EXPECT_EQ(builtin_verdict(Outcome::client, statuses), Verdict::ignore);
}

}  // namespace
}  // namespace cb::test
