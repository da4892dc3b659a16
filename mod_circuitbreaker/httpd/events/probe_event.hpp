// The end of a probe, as a line of the error log and of the event log.
//
// Purpose: what a probe's own call has ended is told when it is known whether another member gets the request; what
// somebody else has ended, at once.
// Thread safety: any thread of any process; no state of its own.
#ifndef CIRCUITBREAKER_HTTPD_EVENTS_PROBE_EVENT_HPP
#define CIRCUITBREAKER_HTTPD_EVENTS_PROBE_EVENT_HPP

#include "httpd/request/call_parts.hpp"

namespace cb::httpd {

/// Tells of it and forgets it; does nothing if there is none. `is_failed_over`: another member got the request.
void tell_probe(std::optional<UntoldProbe>& probe, bool is_failed_over) noexcept;

/// Tells of a probe that its own call has not ended.
void tell_probe_of_others(const shm::Slot& slot, const shm::ProbeEnd& end) noexcept;

}  // namespace cb::httpd

#endif
