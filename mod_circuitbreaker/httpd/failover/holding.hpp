// An answer that is held back, or swallowed, on its way to the client.
//
// Purpose: a failing answer is swallowed, so that another member can answer. An answer that a condition on its body may
// yet make a failing one is held back until that is known, for at most CircuitBreakerBodyLimit bytes, or until the
// member pauses.
// Thread safety: belongs to one request.
#ifndef CIRCUITBREAKER_HTTPD_FAILOVER_HOLDING_HPP
#define CIRCUITBREAKER_HTTPD_FAILOVER_HOLDING_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// When an answer begins, or an error comes in its place: decides what becomes of it.
void begin_holding(RequestState& state) noexcept;

/// Passes on `bb`, holds it back, or swallows it. `is_end`: the answer is complete, and judged.
apr_status_t pass_or_hold(RequestState& state, ap_filter_t* f, apr_bucket_brigade* bb, bool is_end) noexcept;

/// Passes on all that was held back, and then `bb`.
apr_status_t let_go(Call& call, ap_filter_t* f, apr_bucket_brigade* bb) noexcept;

/// After the handler has returned and the call was judged: is its answer withheld?
[[nodiscard]] bool is_withheld_at_end(RequestState& state, core::Outcome outcome) noexcept;

/// What was held of an answer.
struct HeldAnswer {
    apr_bucket_brigade* bytes = nullptr;
    int status = 0;
    bool is_cut = false;  // part of it has been thrown away
};
[[nodiscard]] HeldAnswer held_answer(const Call& call) noexcept;

/// Sends the held answer to the client after all. Returns what the scheme handler is to return.
int give(request_rec* r, const HeldAnswer& answer, int rv) noexcept;

}  // namespace cb::httpd

#endif
