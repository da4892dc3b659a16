// Outcome classes, verdicts, and the rules that lead from one to the other (DESIGN 1 and 6).
#include "core/verdict.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "vocabulary.hpp"

namespace cb::test {
namespace {

constexpr Outcome kClassesInOrder[] = {Outcome::connect,   Outcome::timeout,  Outcome::reset, Outcome::stale,
                                       Outcome::truncated, Outcome::protocol, Outcome::local, Outcome::client};

Rule rule_of(Verdict verdict, std::initializer_list<CodeRange> ranges) {
    Rule rule{};
    rule.verdict = verdict;
    for (const CodeRange& range : ranges)
        rule.range[rule.ranges++] = range;
    return rule;
}
Outcome code(unsigned value) {
    return static_cast<Outcome>(value);
}

TEST(OutcomeClass, HasTheNameOfTheReferenceAndIsFoundByIt) {
    const char* const names[] = {"connect", "timeout", "reset", "stale", "truncated", "protocol", "local", "client"};
    ASSERT_EQ(std::size(names), kClasses);
    for (std::size_t i = 0; i < kClasses; ++i) {
        EXPECT_EQ(class_name(kClassesInOrder[i]), names[i]);
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
        const bool is_class = value >= 600 && value < 600 + kClasses;
        ASSERT_EQ(class_name(code(value)).empty(), !is_class) << value;
    }
}

TEST(Outcome, FitsTheTenBitsOfTheFlightRecorder) {
    for (const Outcome outcome : kClassesInOrder)
        EXPECT_LT(static_cast<unsigned>(outcome), 1U << 10);
    EXPECT_LT(599U, static_cast<unsigned>(Outcome::connect));
}

TEST(Outcome, OfAStatusIsThatStatusAndOfNonsenseAProtocolError) {
    for (int status = -10; status < 2000; ++status) {
        if (status >= 100 && status <= 599) {
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
    EXPECT_EQ(name(Verdict::success), "success");
    EXPECT_EQ(name(Verdict::failure), "failure");
    EXPECT_EQ(name(Verdict::fatal), "fatal");
    EXPECT_EQ(name(Verdict::tolerate), "tolerate");
    EXPECT_EQ(name(Verdict::ignore), "ignore");
    EXPECT_EQ(std::size(kAllVerdicts), kVerdicts);
}

// ---- The built-in rules.

TEST(BuiltinVerdict, OfEveryStatusIsSuccessButForTheThreeOfABadGateway) {
    for (int status = 100; status <= 599; ++status) {
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
    for (const Outcome outcome : {Outcome::local, Outcome::client, Outcome::stale, Outcome::none}) {
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
    const Rule rule = rule_of(Verdict::failure, {{502, 504}});
    for (unsigned value = 0; value < 1024; ++value) {
        ASSERT_EQ(matches(rule, code(value)), value >= 502 && value <= 504) << value;
    }
}

TEST(Rule, MatchesASingleCode) {
    const Rule rule = rule_of(Verdict::fatal, {{503, 503}});
    EXPECT_TRUE(matches(rule, status_outcome(503)));
    EXPECT_FALSE(matches(rule, status_outcome(502)));
    EXPECT_FALSE(matches(rule, status_outcome(504)));
}

TEST(Rule, TakesItsStatusesAndClassesAsAlternatives) {
    const auto timeout = static_cast<std::uint16_t>(Outcome::timeout);
    const Rule rule = rule_of(Verdict::failure, {{500, 599}, {timeout, timeout}, {429, 429}});
    EXPECT_TRUE(matches(rule, status_outcome(500)));
    EXPECT_TRUE(matches(rule, status_outcome(599)));
    EXPECT_TRUE(matches(rule, status_outcome(429)));
    EXPECT_TRUE(matches(rule, Outcome::timeout));
    EXPECT_FALSE(matches(rule, Outcome::connect));
    EXPECT_FALSE(matches(rule, Outcome::reset));
    EXPECT_FALSE(matches(rule, status_outcome(200)));
}

TEST(Rule, HoldsAsManyRangesAsItHasRoomFor) {
    Rule rule{};
    for (std::uint16_t i = 0; i < Rule::kMaxRanges; ++i) {
        const auto status = static_cast<std::uint16_t>(400 + 2 * i);
        rule.range[rule.ranges++] = {status, status};
    }
    for (unsigned value = 390; value < 440; ++value) {
        EXPECT_EQ(matches(rule, code(value)), value >= 400 && value < 432 && value % 2 == 0) << value;
    }
}

TEST(Rule, WithoutARangeMatchesNothing) {
    Rule rule = rule_of(Verdict::failure, {{0, 1023}});
    rule.ranges = 0;
    for (unsigned value = 0; value < 1024; ++value)
        ASSERT_FALSE(matches(rule, code(value)));
}

}  // namespace
}  // namespace cb::test
