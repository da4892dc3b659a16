#include "timing.hpp"

#include <algorithm>

#include "httpd/runtime.hpp"

namespace cb::httpd {

using core::Outcome;

core::Millis sent_at(const RequestState& state) noexcept {
    const Call& call = state.call;
    if (call.is_sent()) return call.seen.sent_at;
    return state.body != nullptr ? std::max(call.target.started, state.body->ended_at) : call.target.started;
}

core::Millis latency_of(const RequestState& state, core::Millis now) noexcept {
    const Call& call = state.call;
    const core::Millis from = sent_at(state);
    const bool has_begun =
        call.has_bytes() && call.seen.interim == Interim::none;  // interim responses are no first byte
    const core::Millis to = has_begun ? call.seen.first_byte_at : call.has_headers() ? call.seen.headers_at : now;
    return to > from ? to - from : 0;
}

bool has_all(const RequestState& state) noexcept {
    return state.call.is_sent() || state.body == nullptr || state.body->has_end;
}

bool is_timed(const RequestState& state, Outcome outcome) noexcept {
    if (state.call.has_headers() && !has_all(state)) return false;
    return core::is_status(outcome) || outcome == Outcome::timeout || outcome == Outcome::truncated ||
           outcome == Outcome::reset || outcome == Outcome::protocol;
}

bool is_slow(const RequestState& state) noexcept {
    const core::Millis threshold = state.call.target.breaker->policy.slow_call.threshold;
    return threshold > 0 && has_all(state) && latency_of(state, now()) > threshold;
}

bool has_settled(const RequestState& state) noexcept {
    const Call& call = state.call;
    return call.has_headers() && now() - call.seen.headers_at >= settle_time(state.r, *call.target.breaker);
}

}  // namespace cb::httpd
