// What can be seen of a call while it runs: a filter on either side of mod_proxy.
//
// Purpose: DESIGN 4.5 to 4.8. The request being sent, the first bytes of the response, its headers, its end.
// Thread safety: each request on its own thread.
#ifndef CIRCUITBREAKER_HTTPD_CALL_WATCH_HPP
#define CIRCUITBREAKER_HTTPD_CALL_WATCH_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

void register_watch_filters() noexcept;
/// mod_proxy's optional hooks, in pre_config.
void register_watch_hooks() noexcept;

/// Puts our filter next to the scheme handler that is about to run.
[[nodiscard]] ap_filter_t* add_response_filter(RequestState& state) noexcept;

/// The scheme handler is about to run. Where no hook will tell when the request is sent, one without a body counts as
/// sent from now on; one with a body may wait for its client (CASES 4).
void note_begin(RequestState& state) noexcept;

/// The call has been slower than CircuitBreakerSlowCall so far.
[[nodiscard]] bool is_slow(const RequestState& state) noexcept;

/// Its response has gone on for longer than CircuitBreakerSettle after the headers: it is judged by them, however it
/// ends (DESIGN 4.8).
[[nodiscard]] bool has_settled(const RequestState& state) noexcept;

}  // namespace cb::httpd

#endif
