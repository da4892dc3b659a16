// Failed calls that the client does not see: another member makes them again (CircuitBreakerFailover).
//
// Whether a call's answer may be withheld. The failed call is charged to its member all the same.
// Thread safety: each request on its own thread; the budget is a matter of shared atomics.
// Invariants: nothing of a withheld answer goes to the client, and nothing is withheld once something has gone.
#ifndef CIRCUITBREAKER_HTTPD_FAILOVER_FAILOVER_HPP
#define CIRCUITBREAKER_HTTPD_FAILOVER_FAILOVER_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// Before a call: if its failure may be withheld, the request is noted as it is now, and its body kept.
void begin_try(RequestState& state) noexcept;

/// The request has a body, and it can be read again from its first byte.
[[nodiscard]] bool is_body_kept(const RequestState& state) noexcept;

/// Should another member make this call again? It failed, its answer may be withheld, and the retry budget allows one
/// more; that one is taken from the budget.
[[nodiscard]] bool withhold(RequestState& state, core::Outcome outcome, core::Verdict verdict) noexcept;

/// May this call still be withheld, if it should turn out to have failed?
[[nodiscard]] bool may_withhold(RequestState& state) noexcept;

/// A call that never reached its member may go to another one, as in stock httpd (proxy_handler, `maxattempts`), and
/// whatever the reason: stock httpd takes a TLS handshake or a name lookup that fails (500) for final. `rv`: what the
/// handler has returned; `attempts`: calls of this kind so far.
[[nodiscard]] bool may_go_on(const RequestState& state, int rv, core::Outcome outcome, int attempts) noexcept;

}  // namespace cb::httpd

#endif
