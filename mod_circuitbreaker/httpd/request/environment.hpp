// The environment CIRCUIT_BREAKER_*: for logs and expressions, not for applications.
//
// Purpose: whoever is sent a request by FastCGI, SCGI, uwsgi or CGI is sent its environment. So these variables stand
// there only once that has been done: from the first sign of an answer on. Requests that httpd makes of others
// (ErrorDocument, internal redirects, subrequests) inherit them, with REDIRECT_ before their names; see `redirects`. In
// Observe, which changes nothing, they come with the log.
// Thread safety: one request's.
#ifndef CIRCUITBREAKER_HTTPD_REQUEST_ENVIRONMENT_HPP
#define CIRCUITBREAKER_HTTPD_REQUEST_ENVIRONMENT_HPP

#include "request.hpp"

namespace cb::httpd {

/// From now on the environment has them: the request has been sent, or will not be.
void show_environment(RequestState& state) noexcept;
/// The same when its answer comes, where we don't watch for that.
void show_environment_at_answer(RequestState& state) noexcept;
/// The opposite, before it is sent (again).
void hide_environment(RequestState& state) noexcept;
/// All of them, as the log shall see them.
void log_environment(request_rec* r, const Told& told, const apr_table_t* inherited) noexcept;

/// What CIRCUIT_BREAKER_VERDICT says.
void tell_verdict(RequestState& state, const char* verdict) noexcept;
/// What CIRCUIT_BREAKER_REJECTED says.
void tell_refusal(RequestState& state, const char* reason) noexcept;

/// Takes inherited variables out of the request's environment. nullptr: there were none.
[[nodiscard]] apr_table_t* take_inherited(request_rec* r) noexcept;

/// While an expression of ours is evaluated.
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
