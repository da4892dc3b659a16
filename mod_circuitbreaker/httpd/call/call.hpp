// One call: it begins with a permit, and ends with a verdict on its member.
//
// Thread safety: each request on its own thread.
#ifndef CIRCUITBREAKER_HTTPD_CALL_CALL_HPP
#define CIRCUITBREAKER_HTTPD_CALL_CALL_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// Begins to watch a call to `worker` under `permit`.
void begin_call(RequestState& state, Breaker& breaker, shm::Slot& slot, proxy_worker& worker,
                const shm::Permit& permit) noexcept;

/// Gives the verdict on the call and its permit back; once, however often it is called. A response that breaks off
/// after it has settled is counted still.
void finish_call(RequestState& state, core::Outcome outcome) noexcept;

/// Ends the call if it has not ended yet: no scheme handler may have run at all.
void close_call(RequestState& state) noexcept;

/// A probe's lease: until then its outcome must be known (DESIGN 3: connect timeout + probe timeout + settle + 1 s).
[[nodiscard]] core::Millis lease_span(const request_rec* r, const Breaker& breaker,
                                      const proxy_worker& worker) noexcept;

}  // namespace cb::httpd

#endif
