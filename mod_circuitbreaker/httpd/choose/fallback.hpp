// CircuitBreakerFallback: another balancer for a request that all members have refused.
//
// Purpose: the fallback's own breakers apply; what they refuse is refused.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_FALLBACK_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_FALLBACK_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// Gives the request to the fallback of its balancer. False if there is none, or if it is there already.
[[nodiscard]] bool take_fallback_of_balancer(RequestState& state, char** url) noexcept;

/// The request's state before it was given to a fallback.
struct BeforeFallback {
    proxy_balancer* balancer;
    const char* balancer_url;
    proxy_worker** tried;
    int tried_count;
    ap_conf_vector_t* per_dir_config;  // with the lines of ProxyPassReverse as written
    proxy_req_conf interpolated{};

    explicit BeforeFallback(const RequestState& state) noexcept;
};
/// Puts that state back.
void leave_fallback(RequestState& state, const BeforeFallback& before, char** url) noexcept;

/// Gives a request for a worker without a balancer to the fallback of that worker.
[[nodiscard]] bool take_fallback_of_worker(RequestState& state, const Breaker& breaker, char** url) noexcept;

}  // namespace cb::httpd

#endif
