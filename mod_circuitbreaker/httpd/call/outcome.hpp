// What happened to a call: from what was seen of it to an outcome class.
//
// Purpose: facts only; verdicts.hpp judges them. DESIGN.md (Evidence) has the tables.
#ifndef CIRCUITBREAKER_HTTPD_CALL_OUTCOME_HPP
#define CIRCUITBREAKER_HTTPD_CALL_OUTCOME_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// The outcome of a call whose scheme handler returned `rv`.
[[nodiscard]] core::Outcome outcome_of(const RequestState& state, int rv) noexcept;

/// The outcome of a call that was answered with call.seen.status.
[[nodiscard]] core::Outcome answer_outcome(const RequestState& state) noexcept;

/// The outcome of a call whose answer broke off after its headers.
[[nodiscard]] core::Outcome broken_off_outcome(const RequestState& state) noexcept;

/// Clears the notes of mod_proxy that outcome_of() reads. To be called before each call.
void clear_notes(request_rec* r) noexcept;

}  // namespace cb::httpd

#endif
