// CircuitBreakerFallback: another balancer for a request that every member was refused to.
//
// Purpose: DESIGN 5. The fallback's own breakers apply, and what it refuses is refused.
// Thread safety: each request on its own thread.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_FALLBACK_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_FALLBACK_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// Turns the request to the fallback of the balancer it was for. False if it has none, or is there already.
[[nodiscard]] bool take_fallback_of_balancer(RequestState& state, char** url) noexcept;

/// What a fallback takes the place of.
struct BeforeFallback {
    proxy_balancer* balancer;
    const char* balancer_url;
    proxy_worker** tried;
    int tried_count;
    ap_conf_vector_t* per_dir_config;  // with the lines of ProxyPassReverse as written
    proxy_req_conf interpolated{};

    explicit BeforeFallback(const RequestState& state) noexcept;
};
/// Turns the request back to where it was meant to go.
void leave_fallback(RequestState& state, const BeforeFallback& before, char** url) noexcept;

/// The same for a worker without a balancer.
[[nodiscard]] bool take_fallback_of_worker(RequestState& state, const Breaker& breaker, char** url) noexcept;

}  // namespace cb::httpd

#endif
