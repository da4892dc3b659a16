// What happened to a call: from what was seen of it to an outcome class (the table of DESIGN 4.5).
//
// Purpose: facts only; the verdict on them is the core's.
// Thread safety: one request's state.
#ifndef CIRCUITBREAKER_HTTPD_CALL_OUTCOME_HPP
#define CIRCUITBREAKER_HTTPD_CALL_OUTCOME_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// Bytes of an HTTP response before its body, as they are read: a line at a time. The status if it is a status line
/// that is looked for: the first one, or the one after an interim response. Time goes on to the first that is no such.
int note_bytes(Call& call, apr_bucket_brigade* bb, core::Millis now) noexcept;

/// A `101` that mod_proxy did not ask for begins no tunnel.
[[nodiscard]] bool may_tunnel(const Call& call, const request_rec* r) noexcept;

/// The outcome of a call whose scheme handler returned `rv`.
[[nodiscard]] core::Outcome outcome_of(const RequestState& state, int rv) noexcept;

/// The outcome of a call that has been answered with call.status.
[[nodiscard]] core::Outcome answer_outcome(const RequestState& state) noexcept;

/// The outcome of a call whose answer broke off after its headers.
[[nodiscard]] core::Outcome broken_off_outcome(const RequestState& state) noexcept;

/// When the request had been sent to its last byte, as far as that is known; until then, when the call began.
[[nodiscard]] core::Millis sent_at(const RequestState& state) noexcept;

/// Time from sent_at() to the first byte of the response, or to now if none came.
[[nodiscard]] core::Millis latency_of(const RequestState& state, core::Millis now) noexcept;

/// Is a call with this outcome a measurement of the member's speed? Not while the client's upload goes on: a member
/// that answers meanwhile may have waited for the client before.
[[nodiscard]] bool is_timed(const RequestState& state, core::Outcome outcome) noexcept;

/// The member has the whole request, as far as that is known.
[[nodiscard]] bool has_all(const RequestState& state) noexcept;

/// The notes of mod_proxy that outcome_of() reads; cleared before each call.
void clear_notes(request_rec* r) noexcept;

/// Of the response, so far.
[[nodiscard]] int count_fields(const request_rec* r) noexcept;
/// Has the handler set anything that comes from the head of a response?
[[nodiscard]] bool has_set_fields(const RequestState& state) noexcept;
/// mod_proxy_fcgi passes the end of an answer whose headers have not ended, and what it has read of them as the body.
/// Of a whole answer the end never comes together with the beginning.
[[nodiscard]] bool is_without_head(const RequestState& state, const apr_bucket_brigade* bb) noexcept;

}  // namespace cb::httpd

#endif
