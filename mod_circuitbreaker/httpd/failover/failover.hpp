// Failed calls that the client does not see: another member makes them again (CircuitBreakerFailover, DESIGN 7).
//
// Purpose: whether a call may be withheld, and the way back to before it. The failed call is charged to its member all
// the same.
// Thread safety: each request on its own thread; the budget is a matter of shared atomics.
// Invariants: nothing of a withheld answer goes to the client, and nothing is withheld once something has gone.
#ifndef CIRCUITBREAKER_HTTPD_FAILOVER_FAILOVER_HPP
#define CIRCUITBREAKER_HTTPD_FAILOVER_FAILOVER_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// Before a call: if its failure may be withheld, the request is noted as it is now, and its body kept.
void begin_try(RequestState& state) noexcept;

/// A ProxyRemote may be meant for a member of the balancer. mod_proxy looks for it once, before the first call: none is
/// made again elsewhere then, as it would go through the wrong one.
[[nodiscard]] bool has_remote(const RequestState& state) noexcept;

/// The request has a body, and it can be read again from its first byte.
[[nodiscard]] bool is_body_kept(const RequestState& state) noexcept;

/// A call that ends so and is judged so is one to be withheld, may be, and the budget has had one for it.
[[nodiscard]] bool withhold(RequestState& state, core::Outcome outcome, core::Verdict verdict) noexcept;

/// May this call still be withheld, if it should turn out to have failed?
[[nodiscard]] bool may_withhold(RequestState& state) noexcept;

/// After a call that failed: the request as it was before, and another member for it. False if there is none any more:
/// then all is as the call left it.
[[nodiscard]] bool go_elsewhere(RequestState& state, proxy_worker** worker, char** url) noexcept;

}  // namespace cb::httpd

#endif
