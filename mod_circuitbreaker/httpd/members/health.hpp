// Checks of mod_proxy_hcheck, as CircuitBreakerHealthCheck takes them.
//
// Purpose: a passing check may end the open time (Early), and probes may have to wait for one (Gate). It closes no
// breaker and shortens no ramp.
// Thread safety: any thread, lock-free. What was seen of the checks is in the member's slot.
// Invariants: only a check that began after the breaker opened counts; a breaker that is not open stays as it is.
#ifndef CIRCUITBREAKER_HTTPD_MEMBERS_HEALTH_HPP
#define CIRCUITBREAKER_HTTPD_MEMBERS_HEALTH_HPP

#include "registry.hpp"

namespace cb::httpd {

/// Looks at the member's last check: when the breaker opens, when it refuses a request, and from time to time, so that
/// the pages are right where no requests come. Ends the open time if the policy says so.
void heed_health_check(const Breaker& breaker, shm::Slot& slot) noexcept;

/// Must the open member pass a health check before it may be probed? False for a member that mod_proxy_hcheck does not
/// check.
[[nodiscard]] bool is_awaiting_check(const Breaker& breaker, const shm::Slot& slot) noexcept;

/// The child that made the checks has ended, perhaps in the middle of one. Then mod_proxy_hcheck writes an end of that
/// check (in its AP_WATCHDOG_STATE_STARTING), which is to count for nothing.
void doubt_check_under_way(const Breaker& breaker, shm::Slot& slot) noexcept;

/// When that member's next check is due: ms from now; 0 if one is under way.
[[nodiscard]] core::Millis time_to_check(const Breaker& breaker) noexcept;

}  // namespace cb::httpd

#endif
