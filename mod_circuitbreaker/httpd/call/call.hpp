// One call: it begins with a permit, and ends with a verdict on its member.
//
// Purpose: the beginning and the end of a call; the other files of call/ watch what is between.
#ifndef CIRCUITBREAKER_HTTPD_CALL_CALL_HPP
#define CIRCUITBREAKER_HTTPD_CALL_CALL_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// Begins a call to `worker` under `permit`.
void begin_call(RequestState& state, Breaker& breaker, shm::Slot& slot, proxy_worker& worker,
                const shm::Permit& permit) noexcept;

/// Judges the call and gives its permit back, the first time that it is called. Later it only counts a response that
/// breaks off after it was judged by its headers. The end of a probe is then to be told of (Ended::untold).
void finish_call(RequestState& state, core::Outcome outcome) noexcept;

/// Ends the call if it has not ended yet. There may have been no scheme handler at all. Of a probe as above.
void close_call(RequestState& state) noexcept;

/// How long a probe's lease lasts: connect timeout + probe timeout + settle + 1 s. Its outcome must be known by then.
[[nodiscard]] core::Millis lease_span(const request_rec* r, const Breaker& breaker,
                                      const proxy_worker& worker) noexcept;

}  // namespace cb::httpd

#endif
