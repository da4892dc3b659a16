// An answer on its way to the client that is held back, or swallowed.
//
// Purpose: a failing answer is swallowed, so that another member can give the answer; one that a condition on its body
// may yet make a failing one is held back until that is known, or for CircuitBreakerBodyLimit bytes, or until the
// member pauses. Thread safety: one request's.
#ifndef CIRCUITBREAKER_HTTPD_FAILOVER_HOLDING_HPP
#define CIRCUITBREAKER_HTTPD_FAILOVER_HOLDING_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// When an answer begins, or the error that stands in its place: decides what becomes of it.
void begin_holding(RequestState& state) noexcept;

/// Passes on what may be passed on. `is_end`: the answer is complete, and judged.
apr_status_t pass_or_hold(RequestState& state, ap_filter_t* f, apr_bucket_brigade* bb, bool is_end) noexcept;

/// Passes on all that was held back, and then `bb`.
apr_status_t let_go(Call& call, ap_filter_t* f, apr_bucket_brigade* bb) noexcept;

/// The handler has returned `rv`, the call is judged: is its answer withheld?
[[nodiscard]] bool is_withheld_at_end(RequestState& state, core::Outcome outcome) noexcept;

/// What was held of an answer.
struct HeldAnswer {
    apr_bucket_brigade* bytes = nullptr;
    int status = 0;
    bool is_cut = false;  // some of it is gone
};
[[nodiscard]] HeldAnswer held_answer(const Call& call) noexcept;

/// The client gets it after all. Returns what the handler is to return.
int give(request_rec* r, const HeldAnswer& answer, int rv) noexcept;

}  // namespace cb::httpd

#endif
