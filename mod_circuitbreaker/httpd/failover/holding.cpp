#include "holding.hpp"

#include "failover.hpp"
#include "httpd/call/outcome.hpp"
#include "httpd/call/timing.hpp"
#include "httpd/call/verdicts.hpp"
#include "httpd/events/probe_event.hpp"
#include "httpd/runtime.hpp"

namespace cb::httpd {
namespace {

/// Keeps the brigade. False if it can't be kept: it is too long, or its data would have to be waited for.
bool keep(RequestState& state, apr_bucket_brigade* bb) noexcept {
    Call& call = state.call;
    apr_off_t length = 0;
    if (apr_brigade_length(bb, 0, &length) != APR_SUCCESS || length < 0) return false;
    call.answer.held_size += length;
    if (call.answer.held_size > static_cast<apr_off_t>(body_limit(state))) return false;
    for (apr_bucket* b = APR_BRIGADE_FIRST(bb); b != APR_BRIGADE_SENTINEL(bb); b = APR_BUCKET_NEXT(b)) {
        if (!APR_BUCKET_IS_METADATA(b) && apr_bucket_setaside(b, state.r->pool) != APR_SUCCESS) return false;
    }
    if (call.answer.held == nullptr) call.answer.held = apr_brigade_create(state.r->pool, bb->bucket_alloc);
    APR_BRIGADE_CONCAT(call.answer.held, bb);
    return true;
}

bool has_flush(const apr_bucket_brigade* bb) noexcept {
    for (const apr_bucket* b = APR_BRIGADE_FIRST(bb); b != APR_BRIGADE_SENTINEL(bb); b = APR_BUCKET_NEXT(b)) {
        if (APR_BUCKET_IS_FLUSH(b)) return true;
    }
    return false;
}

/// Swallows a failing answer. If it is long or slow, the handler is stopped, and closes its connection.
apr_status_t swallow(RequestState& state, apr_bucket_brigade* bb, bool is_end) noexcept {
    Call& call = state.call;
    const bool is_pausing = !is_end && has_flush(bb);
    if (!is_pausing && keep(state, bb)) return APR_SUCCESS;
    call.answer.is_cut = true;
    if (call.answer.held != nullptr) apr_brigade_cleanup(call.answer.held);
    apr_brigade_cleanup(bb);
    return is_end ? APR_SUCCESS : APR_ECONNABORTED;
}

}  // namespace

apr_status_t let_go(Call& call, ap_filter_t* f, apr_bucket_brigade* bb) noexcept {
    call.answer.hold = Hold::none;
    if (call.answer.held != nullptr) APR_BRIGADE_PREPEND(bb, call.answer.held);
    return ap_pass_brigade(f->next, bb);
}

void begin_holding(RequestState& state) noexcept {
    Call& call = state.call;
    if (state.failover.before == nullptr || call.is_finished()) return;
    const bool is_answer = call.has_headers() && !call.is_broken_off();
    const core::Outcome outcome = is_answer ? answer_outcome(state) : outcome_of(state, HTTP_BAD_GATEWAY);
    const bool slow = is_timed(state, outcome) && is_slow(state, now());
    if (withhold(state, outcome, verdict_for_failover(state, outcome, false, slow))) {
        call.answer.hold = Hold::withheld;
    } else if (is_answer && call.answer.sample.is_wanted && may_withhold(state)) {
        call.answer.hold = Hold::undecided;
    }
}

apr_status_t pass_or_hold(RequestState& state, ap_filter_t* f, apr_bucket_brigade* bb, bool is_end) noexcept {
    Call& call = state.call;
    if (call.answer.hold == Hold::undecided && is_end &&
        withhold(state, answer_outcome(state), call.ended.failover_verdict)) {
        call.answer.hold = Hold::withheld;
    }
    switch (call.answer.hold) {
        case Hold::none:
            tell_probe(call.ended.untold, false);
            break;
        case Hold::withheld:
            return swallow(state, bb, is_end);
        case Hold::undecided:
            if (!is_end && !call.is_finished() && !has_flush(bb) && keep(state, bb)) return APR_SUCCESS;
            tell_probe(call.ended.untold, false);
            return let_go(call, f, bb);
    }
    return ap_pass_brigade(f->next, bb);
}

bool is_withheld_at_end(RequestState& state, core::Outcome outcome) noexcept {
    const Call& call = state.call;
    if (call.answer.hold == Hold::withheld) return true;
    if (call.answer.hold == Hold::none && call.is_answering()) return false;
    return withhold(state, outcome, call.ended.failover_verdict);
}

HeldAnswer held_answer(const Call& call) noexcept {
    return {call.answer.hold != Hold::none ? call.answer.held : nullptr, call.seen.status, call.answer.is_cut};
}

int give(request_rec* r, const HeldAnswer& answer, int rv) noexcept {
    if (answer.is_cut) return ap_is_HTTP_ERROR(answer.status) ? answer.status : HTTP_BAD_GATEWAY;
    if (answer.bytes == nullptr || APR_BRIGADE_EMPTY(answer.bytes)) return rv;
    return ap_pass_brigade(r->output_filters, answer.bytes) == APR_SUCCESS ? rv : AP_FILTER_ERROR;
}

}  // namespace cb::httpd
