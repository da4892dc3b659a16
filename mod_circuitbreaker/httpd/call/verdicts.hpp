// The verdict on a call: the rules that apply to it, tried in their order.
//
// Purpose: DESIGN 6. Those of <Location>, <Directory>, <Files> and <If> come before those of the member's policy; a
// probe's own before all others; the built-in ones last. Keeps the beginning of a response's body if a rule looks at
// it. Thread safety: each request on its own thread.
#ifndef CIRCUITBREAKER_HTTPD_CALL_VERDICTS_HPP
#define CIRCUITBREAKER_HTTPD_CALL_VERDICTS_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

struct Judgement {
    core::Verdict verdict;
    const VerdictRule* rule;  // nullptr: a built-in one
};

/// When the response's headers are in: `expr=` is evaluated now, and whether the body is of interest is known.
void note_headers_for_rules(RequestState& state) noexcept;

/// Copies what passes, up to the body limit, if a rule is interested. Blocks on nothing and changes nothing.
void note_body_for_rules(RequestState& state, apr_bucket_brigade* bb) noexcept;

/// When the scheme handler has returned `rv`: a body that the end of the connection delimits is whole without an EOS.
void note_end_for_rules(RequestState& state, int rv) noexcept;

/// The verdict on a call that ended so. `with_body` false: from the headers alone; no condition on the body holds.
[[nodiscard]] Judgement judge(const RequestState& state, core::Outcome outcome, bool with_body) noexcept;

/// "failure:timeout", "failure:json=/error_code", "success".
[[nodiscard]] const char* verdict_text(apr_pool_t* p, const Judgement& judgement, core::Outcome outcome) noexcept;

}  // namespace cb::httpd

#endif
