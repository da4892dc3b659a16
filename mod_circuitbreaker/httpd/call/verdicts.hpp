// The verdict on a call: the rules that apply to it, tried in their order.
//
// Purpose: for a probe the rules of CircuitBreakerProbeVerdict come first. Rules of <Location>, <Directory>, <Files>
// and <If> come before those of the member's policy, and the built-in ones last. Keeps the beginning of a response's
// body if a rule looks at it.
#ifndef CIRCUITBREAKER_HTTPD_CALL_VERDICTS_HPP
#define CIRCUITBREAKER_HTTPD_CALL_VERDICTS_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

struct Judgement {
    core::Verdict verdict;
    const VerdictRule* rule;  // nullptr: a built-in one

    /// The rule has the condition `slow`, so its verdict is all that the call counts as.
    [[nodiscard]] bool is_by_slowness() const noexcept { return rule != nullptr && rule->is_for_slow; }
};

/// When the response's headers are here: evaluates each `expr=`, and finds out whether a rule looks at the body.
void note_headers_for_rules(RequestState& state) noexcept;

/// Copies the body as it passes, up to the body limit, if a rule looks at it. Never blocks and changes nothing.
void note_body_for_rules(RequestState& state, apr_bucket_brigade* bb) noexcept;

/// When the scheme handler has returned `rv`: a body that ends with the connection is complete without an EOS.
void note_end_for_rules(RequestState& state, int rv) noexcept;

/// The verdict on a call with this outcome. `with_body` false: by the headers alone; no condition on the body holds.
/// `slow`: it took longer than CircuitBreakerSlowCall.
[[nodiscard]] Judgement judge(const RequestState& state, core::Outcome outcome, bool with_body, bool slow) noexcept;

/// The same for CircuitBreakerFailover: an answer that is a failure only because it is slow is as good as another one.
[[nodiscard]] core::Verdict verdict_for_failover(const RequestState& state, core::Outcome outcome, bool with_body,
                                                 bool slow) noexcept;

/// "failure:timeout", "failure:json=/error_code", "success".
[[nodiscard]] const char* verdict_text(apr_pool_t* p, const Judgement& judgement, core::Outcome outcome) noexcept;

}  // namespace cb::httpd

#endif
