// Verdict rules of the configuration: CircuitBreakerVerdict and CircuitBreakerProbeVerdict.
//
// Purpose: a rule is a verdict, the statuses and classes it is about (core::Rule), and further conditions that must all
// hold. The first rule that matches decides; the built-in ones (core::builtin_verdict) come last.
// Thread safety: made while the configuration is read, read-only afterwards.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_RULES_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_RULES_HPP

#include "core/json.hpp"
#include "core/verdict.hpp"
#include "words.hpp"

namespace cb::httpd {

/// One of `expr=`, `json=`, `body=`; exactly one pointer is set, or none for json.
struct Condition {
    const ap_expr_info_t* expr = nullptr;
    const ap_regex_t* regex = nullptr;
    core::JsonCondition json;

    [[nodiscard]] bool needs_body() const noexcept { return expr == nullptr; }
};

struct VerdictRule {
    core::Rule codes;
    const Condition* conditions;
    int count;
    bool is_for_slow;    // has the condition `slow`
    const char* reason;  // "json=/error_code"; nullptr where statuses, classes and `slow` say it all
    const ap_directive_t* where;
};

/// Rules in the order in which they are tried.
struct RuleList {
    const VerdictRule* const* rule = nullptr;
    int count = 0;
};

/// Parses an expression. nullptr, or the message, which names `word`.
[[nodiscard]] const char* read_expression(const Words& words, const char* word, const char* text,
                                          const ap_expr_info_t*& expr) noexcept;

/// Reads one rule and adds it to the end of the list. nullptr, or the message.
[[nodiscard]] const char* read_verdict_rule(const Words& words, RuleList& list) noexcept;

/// The rules of an inner section, then those of the outer one.
[[nodiscard]] RuleList joined(apr_pool_t* p, RuleList inner, RuleList outer) noexcept;

/// The statuses that fail by default: the built-in ones, and the `failonstatus` of the balancer.
[[nodiscard]] core::Rule failing_statuses(apr_pool_t* p, const proxy_balancer* balancer) noexcept;

[[nodiscard]] bool has_fatal(RuleList list) noexcept;
/// The first of the rules that has the condition `slow`; nullptr if none has.
[[nodiscard]] const VerdictRule* slow_rule(RuleList rules, RuleList probe_rules) noexcept;

}  // namespace cb::httpd

#endif
