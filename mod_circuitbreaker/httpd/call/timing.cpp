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

core::Millis settles_at(const RequestState& state) noexcept {
    return state.call.seen.headers_at + settle_time(state.r, *state.call.target.breaker);
}

core::Millis time_to_end(const RequestState& state, core::Millis at) noexcept {
    const core::Millis end = std::min(at, settles_at(state));
    const core::Millis others = sent_at(state) + state.call.seen.passing_on;
    return end > others ? end - others : 0;
}

bool is_slow(const RequestState& state, core::Millis at) noexcept {
    const core::SlowCall& limit = state.call.target.breaker->policy.slow_call;
    if (limit.threshold == 0 || !has_all(state)) return false;
    if (latency_of(state, at) > limit.threshold) return true;
    // A final answer in place of a `100 Continue`: mod_proxy_http reads the body all the same before it passes it on.
    if (!limit.until_end || state.call.seen.waits_for_100) return false;
    return state.call.has_headers() && time_to_end(state, at) > limit.threshold;
}

bool has_settled(const RequestState& state) noexcept {
    return state.call.has_headers() && now() >= settles_at(state);
}

}  // namespace cb::httpd
