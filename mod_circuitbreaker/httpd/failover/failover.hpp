// CircuitBreakerFailover: which failed calls the client doesn't see, because another member makes them again.
//
// Purpose: decides whether a call's answer may be withheld. The failed call counts against its member all the same.
// Thread safety: the retry budget is in shared atomics; the rest belongs to one request.
// Invariants: nothing of a withheld answer goes to the client, and no answer is withheld after some of it has gone.
#ifndef CIRCUITBREAKER_HTTPD_FAILOVER_FAILOVER_HPP
#define CIRCUITBREAKER_HTTPD_FAILOVER_FAILOVER_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// Before a call: if its answer may be withheld, takes a snapshot of the request, and keeps its body.
void begin_try(RequestState& state) noexcept;

/// Does the request have a body that can be read again from its first byte?
[[nodiscard]] bool is_body_kept(const RequestState& state) noexcept;

/// Should another member make this call again? True if it failed, its answer may be withheld, and the retry budget
/// allows one more, which is then taken from the budget.
[[nodiscard]] bool withhold(RequestState& state, core::Outcome outcome, core::Verdict verdict) noexcept;

/// Could the answer of this call still be withheld, if the call turns out to have failed?
[[nodiscard]] bool may_withhold(RequestState& state) noexcept;

/// May a call without a connection to its member go on to another one? As in stock httpd (proxy_handler,
/// `maxattempts`), but for every reason: stock httpd does not go on after a TLS handshake or a name lookup that failed
/// (500). `rv`: what the handler has returned; `attempts`: calls of this request to a scheme handler so far.
[[nodiscard]] bool may_go_on(const RequestState& state, int rv, core::Outcome outcome, int attempts) noexcept;

}  // namespace cb::httpd

#endif
