// How a probe is told from an ordinary call.
//
// Purpose: CircuitBreakerProbeHeader, CircuitBreakerProbeTimeout, and the environment variables and notes of a call. In
// Observe nothing is sent that would not be sent without the module, and no timeout is changed.
#ifndef CIRCUITBREAKER_HTTPD_CALL_PROBE_MARKS_HPP
#define CIRCUITBREAKER_HTTPD_CALL_PROBE_MARKS_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// Removes the marks of an earlier attempt.
void unmark_request(RequestState& state) noexcept;
/// Removes the header only. An ErrorDocument's own request inherits the headers, and may go to any backend.
void unmark_header(RequestState& state) noexcept;

/// Marks the request for the member, the logs and conditions. Removes a header of the client's with the name of the
/// probe header.
void mark_request(RequestState& state, const Breaker& breaker, const shm::Slot& slot, bool is_probe) noexcept;

/// When the request has been sent: from now on a probe's connection has CircuitBreakerProbeTimeout.
void set_probe_timeout(Call& call, conn_rec* backend) noexcept;

/// When the response begins: gives the connection its own timeout back. Otherwise a stream would be cut, and a pooled
/// connection would keep the probe's timeout.
void restore_timeout(Call& call) noexcept;

}  // namespace cb::httpd

#endif
