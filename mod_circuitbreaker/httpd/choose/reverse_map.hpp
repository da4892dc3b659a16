// ProxyPassReverse, ProxyPassReverseCookiePath and ProxyPassReverseCookieDomain for the answers of a fallback.
//
// Purpose: these lines are written for the balancer or worker that a path leads to. When a fallback answers in its
// place, each line holds for what corresponds to it at the fallback, so that the client sees no difference.
// Thread safety: belongs to one request. The configuration stays as it is; the request gets a copy.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_REVERSE_MAP_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_REVERSE_MAP_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// `worker`: the worker without a balancer that has refused; nullptr: state.balancer has.
void map_answers_of_fallback(RequestState& state, const proxy_worker_shared* worker, proxy_balancer& fallback) noexcept;

}  // namespace cb::httpd

#endif
