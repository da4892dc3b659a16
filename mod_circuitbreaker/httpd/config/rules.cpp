#include "rules.hpp"

#include <algorithm>
#include <cstring>

#include "parse.hpp"

namespace cb::httpd {
namespace {

using core::CodeRange;
using core::Outcome;
using core::Verdict;

constexpr const char* kVerdictsAllowed = "success, failure, fatal, tolerate or ignore";
constexpr const char* kConditionsAllowed =
    "a status (503), all statuses of one first digit (5xx), a range of statuses (500-599, from 100 to 999), a class "
    "(connect, timeout, reset, stale, truncated, protocol, local, client, upload), slow, \"expr=EXPRESSION\", "
    "\"json=/POINTER:VALUE\" or \"body=/REGEX/\"";

const char* read_regex(const Words& words, const char* word, const char* text, Condition& condition) noexcept {
    const char* const end = std::strrchr(text, '/');
    const bool is_delimited = *text == '/' && end > text + 1;
    const bool has_i = is_delimited && std::strcmp(end, "/i") == 0;
    if (!is_delimited || (end[1] != '\0' && !has_i)) {
        return words.wrong(word, "a regular expression between slashes (\"body=/out of memory/\", \"body=/error/i\")");
    }
    const char* const pattern = apr_pstrmemdup(words.cmd->pool, text + 1, static_cast<apr_size_t>(end - text - 1));
    condition.regex = ap_pregcomp(words.cmd->pool, pattern, has_i ? AP_REG_ICASE : 0);
    return condition.regex != nullptr ? nullptr : words.wrong(word, "a regular expression that compiles");
}

const char* read_json(const Words& words, const char* word, const char* text, Condition& condition) noexcept {
    const char* const error = core::parse_json_condition(text, condition.json);
    if (error == nullptr) return nullptr;
    return words.wrong(word, apr_psprintf(words.cmd->pool, "\"json=/POINTER:VALUE,VALUE\": %s", error));
}

/// One of the further conditions; false if the word is none.
bool read_condition(const Words& words, const char* word, Condition& condition, const char*& error) noexcept {
    if (const char* const expr = value_of(word, "expr")) {
        error = read_expression(words, word, expr, condition.expr);
    } else if (const char* const json = value_of(word, "json")) {
        error = read_json(words, word, json, condition);
    } else if (const char* const body = value_of(word, "body")) {
        error = read_regex(words, word, body, condition);
    } else {
        return false;
    }
    return true;
}

/// Keywords of httpd.conf may be written in any case.
const char* lower(apr_pool_t* p, const char* word) noexcept {
    char* const copy = apr_pstrdup(p, word);
    ap_str_tolower(copy);
    return copy;
}

/// What was nobody's fault but httpd's or the client's is never counted against a member.
bool blames_the_innocent(Verdict verdict, const CodeRange& range) noexcept {
    if (verdict == Verdict::success || verdict == Verdict::ignore) return false;
    return range.first == static_cast<std::uint16_t>(Outcome::local) ||
           range.first == static_cast<std::uint16_t>(Outcome::client);
}

const char* reason_of(apr_pool_t* p, const char* word, const Condition& condition) noexcept {
    if (condition.expr != nullptr || condition.regex != nullptr) return apr_pstrdup(p, word);
    return apr_pstrcat(p, "json=", apr_pstrmemdup(p, condition.json.pointer.data(), condition.json.pointer.size()),
                       nullptr);
}

}  // namespace

const char* read_expression(const Words& words, const char* word, const char* text,
                            const ap_expr_info_t*& expr) noexcept {
    const char* error = nullptr;
    // Or each response would get a Vary by what the expression reads.
    expr = ap_expr_parse_cmd(words.cmd, text, AP_EXPR_FLAG_DONT_VARY, &error, nullptr);
    if (error == nullptr) return nullptr;
    return words.wrong(word, apr_psprintf(words.cmd->pool,
                                          "an expression that httpd can parse (it says: %s), with quotes around the "
                                          "whole: \"expr=resp('X-Health') == 'down'\"",
                                          error));
}

const char* read_verdict_rule(const Words& words, RuleList& list) noexcept {
    apr_pool_t* const p = words.cmd->pool;
    Verdict verdict{};
    if (!core::verdict_named(lower(p, words.word[0]), verdict)) return words.wrong(words.word[0], kVerdictsAllowed);
    if (words.count < 2) return words.wrong("", kConditionsAllowed);
    auto* const ranges =
        static_cast<CodeRange*>(apr_palloc(p, static_cast<apr_size_t>(words.count) * sizeof(CodeRange)));
    auto* const conditions =
        static_cast<Condition*>(apr_palloc(p, static_cast<apr_size_t>(words.count) * sizeof(Condition)));
    auto* const rule = static_cast<VerdictRule*>(apr_pcalloc(p, sizeof(VerdictRule)));
    rule->codes.verdict = verdict;
    for (int i = 1; i < words.count; ++i) {
        const char* const word = words.word[i];
        Condition condition;
        const char* error = nullptr;
        if (is_word(word, "slow")) {
            rule->is_for_slow = true;
            continue;
        }
        if (read_condition(words, word, condition, error)) {
            if (error != nullptr) return error;
            if (rule->reason == nullptr) rule->reason = reason_of(p, word, condition);
            conditions[rule->count++] = condition;
            continue;
        }
        CodeRange& range = ranges[rule->codes.ranges];
        if (!core::parse_codes(lower(p, word), range)) return words.wrong(word, kConditionsAllowed);
        if (blames_the_innocent(verdict, range)) {
            return words.wrong(word, "ignore or success for it: what it stands for is not the member's doing");
        }
        ++rule->codes.ranges;
    }
    rule->where = words.cmd->directive;
    rule->codes.range = ranges;
    rule->conditions = conditions;
    const VerdictRule* const one = rule;
    list = joined(p, list, {&one, 1});
    return nullptr;
}

RuleList joined(apr_pool_t* p, RuleList inner, RuleList outer) noexcept {
    const int count = inner.count + outer.count;
    if (count == 0) return {};
    auto** const all = static_cast<const VerdictRule**>(apr_palloc(p, static_cast<apr_size_t>(count) * sizeof(void*)));
    for (int i = 0; i < inner.count; ++i)
        all[i] = inner.rule[i];
    for (int i = 0; i < outer.count; ++i)
        all[inner.count + i] = outer.rule[i];
    return {all, count};
}

core::Rule failing_statuses(apr_pool_t* p, const proxy_balancer* balancer) noexcept {
    if (balancer == nullptr || balancer->errstatuses == nullptr || balancer->errstatuses->nelts == 0) {
        return core::kBuiltinStatuses;
    }
    const core::Rule& builtin = core::kBuiltinStatuses;
    const auto most = builtin.ranges + static_cast<std::uint32_t>(balancer->errstatuses->nelts);
    auto* const ranges = static_cast<CodeRange*>(apr_palloc(p, most * sizeof(CodeRange)));
    std::copy_n(builtin.range, builtin.ranges, ranges);
    std::uint32_t count = builtin.ranges;
    for (int i = 0; i < balancer->errstatuses->nelts; ++i) {
        const auto status = static_cast<std::uint16_t>(APR_ARRAY_IDX(balancer->errstatuses, i, int));
        if (!core::matches({Verdict::failure, count, ranges}, static_cast<Outcome>(status)))
            ranges[count++] = {status, status};
    }
    return {Verdict::failure, count, ranges};
}

bool has_fatal(RuleList list) noexcept {
    for (int i = 0; i < list.count; ++i) {
        if (list.rule[i]->codes.verdict == Verdict::fatal) return true;
    }
    return false;
}

const VerdictRule* slow_rule(RuleList rules, RuleList probe_rules) noexcept {
    for (const RuleList& list : {rules, probe_rules}) {
        for (int i = 0; i < list.count; ++i) {
            if (list.rule[i]->is_for_slow) return list.rule[i];
        }
    }
    return nullptr;
}

}  // namespace cb::httpd
