#include "verdicts.hpp"

#include <algorithm>
#include <cstring>

#include "httpd/request/environment.hpp"

namespace cb::httpd {
namespace {

constexpr std::uint32_t kFirstSample = 8192;

/// Calls `visit(rule, its number)` for each rule of this call, until it returns true.
template <class Visit>
void for_each_rule(const RequestState& state, Visit visit) noexcept {
    const Breaker& breaker = *state.call.target.breaker;
    const DirConfig* const dir = dir_config(state.r->per_dir_config);
    const bool is_probe = state.call.is_probe();
    if (dir == nullptr && breaker.rules.count == 0 && !is_probe) return;  // the usual case
    const RuleList lists[] = {
        is_probe && dir != nullptr ? dir->request.probe_rules : RuleList{},
        is_probe ? breaker.probe_rules : RuleList{},
        dir != nullptr ? dir->request.rules : RuleList{},
        breaker.rules,
    };
    int number = 0;
    for (const RuleList& list : lists) {
        for (int i = 0; i < list.count; ++i) {
            if (visit(*list.rule[i], number++)) return;
        }
    }
}

bool is_true(const RequestState& state, const VerdictRule& rule) noexcept {
    for (int i = 0; i < rule.count; ++i) {
        if (rule.conditions[i].expr == nullptr) continue;
        const ForExpressions environment(state);
        const char* error = nullptr;
        if (ap_expr_exec(state.r, rule.conditions[i].expr, &error) <= 0)
            return false;  // httpd logs what is wrong with it
    }
    return true;
}

bool body_matches(const Sample& sample, const VerdictRule& rule) noexcept {
    for (int i = 0; i < rule.count; ++i) {
        const Condition& condition = rule.conditions[i];
        if (!condition.needs_body()) continue;
        if (!sample.is_wanted) return false;
        if (condition.regex != nullptr) {
            const char* const bytes = sample.bytes != nullptr ? sample.bytes : "";
            if (ap_regexec_len(condition.regex, bytes, sample.size, 0, nullptr, 0) != 0) return false;
        } else if (!sample.is_whole || !core::holds(condition.json, {sample.bytes, sample.size})) {
            return false;
        }
    }
    return true;
}

bool needs_body(const VerdictRule& rule) noexcept {
    return std::any_of(rule.conditions, rule.conditions + rule.count,
                       [](const Condition& condition) noexcept { return condition.needs_body(); });
}

bool ends_with(const char* text, std::size_t length, const char* end) noexcept {
    const std::size_t size = std::strlen(end);
    return length >= size && ap_cstr_casecmpn(text + length - size, end, size) == 0;
}

bool is_textual(const char* type) noexcept {
    if (type == nullptr) return false;
    if (ap_cstr_casecmpn(type, "text/", 5) == 0) return true;
    const std::size_t length = std::strcspn(type, "; \t");
    for (const char* end : {"/json", "+json", "/xml", "+xml", "/javascript", "/x-javascript", "/x-ndjson",
                            "/x-www-form-urlencoded", "/yaml"}) {
        if (ends_with(type, length, end)) return true;
    }
    return false;
}

bool is_compressed(const request_rec* r) noexcept {
    const char* const encoding =
        r->content_encoding != nullptr ? r->content_encoding : answer_field(r, "Content-Encoding");
    return encoding != nullptr && *encoding != '\0' && ap_cstr_casecmp(encoding, "identity") != 0;
}

/// Does the response carry the whole page? An answer to HEAD has no body, and a 206 only a part of it, because the
/// client has asked for that.
bool has_page(const RequestState& state) noexcept {
    const int status = state.call.seen.status;
    return !state.r->header_only && status != HTTP_NO_CONTENT && status != HTTP_PARTIAL_CONTENT &&
           status != HTTP_NOT_MODIFIED;
}

/// False if memory for it would be more than the limit.
bool make_room(Sample& sample, apr_pool_t* p, std::uint32_t limit) noexcept {
    if (sample.size < sample.capacity) return true;
    if (sample.capacity >= limit) return false;
    const std::uint32_t capacity = std::min(limit, std::max(2 * sample.capacity, kFirstSample));
    auto* const bytes = static_cast<char*>(apr_palloc(p, capacity));
    if (sample.size > 0) std::memcpy(bytes, sample.bytes, sample.size);
    sample.bytes = bytes;
    sample.capacity = capacity;
    return true;
}

/// Looks only at what is in memory already: a file or a pipe would have to be read.
bool is_in_memory(const apr_bucket* b) noexcept {
    return APR_BUCKET_IS_HEAP(b) || APR_BUCKET_IS_TRANSIENT(b) || APR_BUCKET_IS_IMMORTAL(b) || APR_BUCKET_IS_POOL(b);
}

/// While it lives, the request has the status that the member gave. ProxyErrorOverride has put 200 in its place, for
/// the error page.
class StatusForRules {
  public:
    StatusForRules(request_rec& r, core::Outcome outcome) noexcept : r_(r), own_(r.status) {
        if (core::is_status(outcome)) r_.status = static_cast<int>(outcome);
    }
    ~StatusForRules() { r_.status = own_; }
    StatusForRules(const StatusForRules&) = delete;
    StatusForRules& operator=(const StatusForRules&) = delete;

  private:
    request_rec& r_;
    int own_;
};

/// A rule for slow calls that names no status or class, and is not about failures, is about good answers: it must not
/// make a success of a timeout.
bool holds_for_slow(const VerdictRule& rule, bool slow, bool is_failing) noexcept {
    const core::Verdict verdict = rule.codes.verdict;
    const bool is_for_failures = verdict == core::Verdict::failure || verdict == core::Verdict::fatal;
    return slow && (is_for_failures || rule.codes.ranges > 0 || !is_failing);
}

}  // namespace

void note_headers_for_rules(RequestState& state) noexcept {
    int count = 0;
    bool has_expr = false;
    bool is_interested = false;
    for_each_rule(state, [&](const VerdictRule& rule, int) noexcept {
        ++count;
        for (int i = 0; i < rule.count; ++i)
            has_expr = has_expr || rule.conditions[i].expr != nullptr;
        is_interested = is_interested || needs_body(rule);
        return false;
    });
    const request_rec* const r = state.r;
    state.call.answer.sample.is_wanted =
        is_interested && has_page(state) && is_textual(r->content_type) && !is_compressed(r);
    if (!has_expr) return;
    // Later filters change the headers; a rule is about the member's.
    auto* const results = static_cast<bool*>(apr_palloc(r->pool, static_cast<apr_size_t>(count) * sizeof(bool)));
    const core::Outcome answer = core::status_outcome(state.call.seen.status);
    for_each_rule(state, [&](const VerdictRule& rule, int number) noexcept {
        // All outcomes that the call can still have.
        const bool may_match =
            core::matches(rule.codes, answer) || core::matches(rule.codes, core::Outcome::truncated) ||
            core::matches(rule.codes, core::Outcome::client) || core::matches(rule.codes, core::Outcome::upload);
        results[number] = may_match && is_true(state, rule);
        return false;
    });
    state.call.answer.expressions = results;
}

void note_body_for_rules(RequestState& state, apr_bucket_brigade* bb) noexcept {
    Sample& sample = state.call.answer.sample;
    if (!sample.is_wanted || sample.is_whole || sample.is_over) return;
    const std::uint32_t limit = body_limit(state);
    for (apr_bucket* b = APR_BRIGADE_FIRST(bb); b != APR_BRIGADE_SENTINEL(bb); b = APR_BUCKET_NEXT(b)) {
        if (APR_BUCKET_IS_METADATA(b)) continue;
        const char* data = nullptr;
        apr_size_t length = 0;
        if (!is_in_memory(b) || apr_bucket_read(b, &data, &length, APR_NONBLOCK_READ) != APR_SUCCESS) {
            sample.is_wanted = false;
            return;
        }
        while (length > 0) {
            if (!make_room(sample, state.r->pool, limit)) {
                sample.is_over = true;
                return;
            }
            const apr_size_t part = std::min<apr_size_t>(length, sample.capacity - sample.size);
            std::memcpy(sample.bytes + sample.size, data, part);
            sample.size += static_cast<std::uint32_t>(part);
            data += part;
            length -= part;
        }
    }
}

void note_end_for_rules(RequestState& state, int rv) noexcept {
    Sample& sample = state.call.answer.sample;
    if (rv == OK && !state.call.is_broken_off() && !sample.is_over) sample.is_whole = true;
}

Judgement judge(const RequestState& state, core::Outcome outcome, bool with_body, bool slow) noexcept {
    const Call& call = state.call;
    const VerdictRule* found = nullptr;
    const StatusForRules status(*state.r, outcome);
    const core::Verdict builtin = core::builtin_verdict(outcome, call.target.breaker->failing_statuses);
    const bool is_failing = builtin == core::Verdict::failure;
    for_each_rule(state, [&](const VerdictRule& rule, int number) noexcept {
        if (!core::matches(rule.codes, outcome)) return false;
        if (rule.is_for_slow && !holds_for_slow(rule, slow, is_failing)) return false;
        if (needs_body(rule) && !(with_body && body_matches(call.answer.sample, rule))) return false;
        if (!(call.answer.expressions != nullptr ? call.answer.expressions[number] : is_true(state, rule)))
            return false;
        found = &rule;
        return true;
    });
    if (found != nullptr) return {found->codes.verdict, found};
    return {builtin, nullptr};
}

core::Verdict verdict_for_failover(const RequestState& state, core::Outcome outcome, bool with_body,
                                   bool slow) noexcept {
    const Judgement judgement = judge(state, outcome, with_body, slow);
    const bool is_failure = judgement.verdict == core::Verdict::failure || judgement.verdict == core::Verdict::fatal;
    if (!is_failure || !judgement.is_by_slowness()) return judgement.verdict;
    return judge(state, outcome, with_body, false).verdict;
}

const char* verdict_text(apr_pool_t* p, const Judgement& judgement, core::Outcome outcome) noexcept {
    const char* const verdict = core::name(judgement.verdict);
    if (judgement.rule == nullptr && judgement.verdict == core::Verdict::success) return verdict;
    if (judgement.rule != nullptr && judgement.rule->reason != nullptr) {
        return apr_pstrcat(p, verdict, ":", judgement.rule->reason, nullptr);
    }
    if (judgement.is_by_slowness()) return apr_pstrcat(p, verdict, ":slow", nullptr);
    if (core::is_status(outcome)) return apr_psprintf(p, "%s:%d", verdict, static_cast<int>(outcome));
    return outcome == core::Outcome::none ? verdict : apr_pstrcat(p, verdict, ":", core::class_name(outcome), nullptr);
}

}  // namespace cb::httpd
