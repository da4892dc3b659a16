// What happened to a call: from what was seen of it to an outcome class (the table of DESIGN 4.5).
//
// Purpose: facts only; the verdict on them is the core's.
// Thread safety: reads one request's state.
#ifndef CIRCUITBREAKER_HTTPD_JUDGE_HPP
#define CIRCUITBREAKER_HTTPD_JUDGE_HPP

#include "request.hpp"

namespace cb::httpd {

/// The outcome of a call whose scheme handler returned `rv`.
[[nodiscard]] core::Outcome outcome_of(const Call& call, const request_rec* r, int rv) noexcept;

/// Takes down what the scheme handler says of a call in the error log (see judge.cpp).
void hear(Call& call, const ap_errorlog_info& said) noexcept;

/// The status in a line that begins with "HTTP/1.1 101", else 0.
[[nodiscard]] int status_in_line(apr_bucket_brigade* bb) noexcept;

/// At the first byte of a `101` the verdict is due at once: a tunnel may last for hours (DESIGN 4.8). One that
/// mod_proxy did not ask for becomes no tunnel.
[[nodiscard]] bool begins_tunnel(const Call& call, const request_rec* r) noexcept;

/// Time from "request sent" (where that is known) to the first byte of the response, or to now if none came.
[[nodiscard]] core::Millis latency_of(const Call& call, core::Millis now) noexcept;

/// Is a call with this outcome a measurement of the member's speed?
[[nodiscard]] bool is_timed(core::Outcome outcome) noexcept;

/// The notes of mod_proxy that outcome_of() reads; cleared before each call.
void clear_notes(request_rec* r) noexcept;

}  // namespace cb::httpd

#endif
