// How a probe is told from an ordinary call.
//
// Purpose: CircuitBreakerProbeHeader, CircuitBreakerProbeTimeout, and the environment of
// DESIGN 6. In Observe nothing is sent that would not be sent without the module, and no timeout is touched.
// Thread safety: each request on its own thread.
#ifndef CIRCUITBREAKER_HTTPD_CALL_PROBE_MARKS_HPP
#define CIRCUITBREAKER_HTTPD_CALL_PROBE_MARKS_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// Takes the marks of an earlier attempt away.
void unmark_request(RequestState& state) noexcept;
/// Only the header: an ErrorDocument's own request has the same headers, and may go to anybody.
void unmark_header(RequestState& state) noexcept;

/// Marks the request for the backend, logs and conditions. A client's own header of the probe header's name goes.
void mark_request(RequestState& state, const Breaker& breaker, const shm::Slot& slot, bool is_probe) noexcept;

/// The request is sent: from now on a probe's response has CircuitBreakerProbeTimeout.
void set_probe_timeout(Call& call, conn_rec* backend) noexcept;

/// The response has begun: the connection gets its own timeout back, or a stream would be cut, and a pooled connection
/// would keep the probe's.
void restore_timeout(Call& call) noexcept;

}  // namespace cb::httpd

#endif
