// Passing checks of mod_proxy_hcheck (CircuitBreakerHealthCheck Early).
//
// Purpose: a check that passes while a breaker is open ends the open time. It closes no breaker and shortens no ramp.
// Thread safety: any thread, lock-free. Each process notes for itself which checks it has seen.
// Invariants: only a check that began after the breaker opened counts; a breaker that is not open stays as it is.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_HEALTH_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_HEALTH_HPP

#include "httpd/members/registry.hpp"

namespace cb::httpd {

/// Ends the open time if the member's last check passed. Called when the breaker refuses a request, and by the parent
/// about every ten seconds, so that the pages are right where no requests come.
void heed_health_check(Breaker& breaker, shm::Slot& slot) noexcept;

}  // namespace cb::httpd

#endif
