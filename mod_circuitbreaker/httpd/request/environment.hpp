// The environment variables CIRCUIT_BREAKER_*: for logs and expressions, not for applications.
//
// Purpose: FastCGI, SCGI, uwsgi and CGI send a request's whole environment to the application. So these variables are
// set only after that, when the first bytes of an answer have come. Requests that httpd makes of this one
// (ErrorDocument, internal redirects, subrequests) inherit them, with REDIRECT_ before their names; see `redirects`.
// In Observe, which changes nothing, they are set only for the log.
// Thread safety: belongs to the thread that handles the request.
#ifndef CIRCUITBREAKER_HTTPD_REQUEST_ENVIRONMENT_HPP
#define CIRCUITBREAKER_HTTPD_REQUEST_ENVIRONMENT_HPP

#include "request.hpp"

namespace cb::httpd {

/// Sets them from now on: the request has been sent, or will not be.
void show_environment(RequestState& state) noexcept;
/// Sets them when the answer comes, for a call that we don't watch.
void show_environment_at_answer(RequestState& state) noexcept;
/// Removes them, before the request is sent (again).
void hide_environment(RequestState& state) noexcept;
/// Sets all of them for the log.
void log_environment(request_rec* r, const Told& told, const apr_table_t* inherited) noexcept;

/// Sets CIRCUIT_BREAKER_ATTEMPTS for the log, where all others are set already.
void log_attempts(request_rec* r, const Told& told) noexcept;

/// The variables will be about another call: the present one becomes an earlier one. Does nothing if there is none.
void remember_call(RequestState& state) noexcept;

/// The value of CIRCUIT_BREAKER_VERDICT.
void tell_verdict(RequestState& state, const char* verdict) noexcept;
/// The value of CIRCUIT_BREAKER_REJECTED.
void tell_refusal(RequestState& state, const char* reason) noexcept;

/// Takes inherited variables out of the request's environment. nullptr: there were none.
[[nodiscard]] apr_table_t* take_inherited(request_rec* r) noexcept;

/// While it lives, the variables are set: for the evaluation of one of our expressions.
class ForExpressions {
  public:
    explicit ForExpressions(const RequestState& state) noexcept;
    ~ForExpressions();
    ForExpressions(const ForExpressions&) = delete;
    ForExpressions& operator=(const ForExpressions&) = delete;

  private:
    const RequestState& state_;
};

void register_environment_filter() noexcept;

}  // namespace cb::httpd

#endif
