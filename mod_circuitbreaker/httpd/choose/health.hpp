// Passing checks of mod_proxy_hcheck (CircuitBreakerHealthCheck Early).
//
// Purpose: a check that passes while a breaker is open ends its open time. It closes nothing and skips no ramp.
// Thread safety: any thread, lock-free. Each process notes for itself what it has seen.
// Invariants: only a check that began after the breaker opened counts; nothing is done for a breaker that is not open.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_HEALTH_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_HEALTH_HPP

#include "httpd/members/registry.hpp"

namespace cb::httpd {

/// Ends the open time if the member's last check says so. To be called now and then while the breaker is open: when it
/// refuses a request, and by the parent every ten seconds or so (where nobody asks, so that the pages are right).
void heed_health_check(Breaker& breaker, shm::Slot& slot) noexcept;

}  // namespace cb::httpd

#endif
