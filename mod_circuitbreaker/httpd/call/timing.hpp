// How long a call has taken, and whether that says anything about its member.
//
// Purpose: a member's time begins when it has the whole request, so that a slow client never makes a member slow.
#ifndef CIRCUITBREAKER_HTTPD_CALL_TIMING_HPP
#define CIRCUITBREAKER_HTTPD_CALL_TIMING_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// When the last byte of the request was sent, as far as that is known. Before that: when the call began.
[[nodiscard]] core::Millis sent_at(const RequestState& state) noexcept;

/// Time from sent_at() to the first byte of the response, or to now if none came.
[[nodiscard]] core::Millis latency_of(const RequestState& state, core::Millis now) noexcept;

/// Does a call with this outcome measure the member's speed? Not if the client's upload is still going on: the member
/// may have waited for the client before it answered.
[[nodiscard]] bool is_timed(const RequestState& state, core::Outcome outcome) noexcept;

/// Does the member have the whole request, as far as that is known?
[[nodiscard]] bool has_all(const RequestState& state) noexcept;

/// Once the headers are here: time from sent_at() to `at`, or to the moment at which the call is judged by its headers
/// (CircuitBreakerSettle). Without the time that went by while the answer was passed on to the client.
[[nodiscard]] core::Millis time_to_end(const RequestState& state, core::Millis at) noexcept;

/// Is the call slower than CircuitBreakerSlowCall, if nothing more comes of its answer before `at`?
[[nodiscard]] bool is_slow(const RequestState& state, core::Millis at) noexcept;

/// When a call is judged by its headers.
[[nodiscard]] core::Millis settles_at(const RequestState& state) noexcept;

/// Has the response gone on for longer than CircuitBreakerSettle after its headers? Then the call is judged by the
/// headers, however the response ends.
[[nodiscard]] bool has_settled(const RequestState& state) noexcept;

}  // namespace cb::httpd

#endif
