// How long a call has taken, and whether that says anything about its member.
//
// Thread safety: reads one request's state.
#ifndef CIRCUITBREAKER_HTTPD_CALL_TIMING_HPP
#define CIRCUITBREAKER_HTTPD_CALL_TIMING_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// When the request had been sent to its last byte, as far as that is known; until then, when the call began.
[[nodiscard]] core::Millis sent_at(const RequestState& state) noexcept;

/// Time from sent_at() to the first byte of the response, or to now if none came.
[[nodiscard]] core::Millis latency_of(const RequestState& state, core::Millis now) noexcept;

/// Is a call with this outcome a measurement of the member's speed? Not while the client's upload goes on: a member
/// that answers meanwhile may have waited for the client before.
[[nodiscard]] bool is_timed(const RequestState& state, core::Outcome outcome) noexcept;

/// The member has the whole request, as far as that is known.
[[nodiscard]] bool has_all(const RequestState& state) noexcept;

/// The call has been slower than CircuitBreakerSlowCall so far.
[[nodiscard]] bool is_slow(const RequestState& state) noexcept;

/// Its response has gone on for longer than CircuitBreakerSettle after the headers: it is judged by them, however it
/// ends.
[[nodiscard]] bool has_settled(const RequestState& state) noexcept;

}  // namespace cb::httpd

#endif
