// ProxyPassReverse, ProxyPassReverseCookiePath and ProxyPassReverseCookieDomain for the answers of a fallback.
//
// Purpose: they are written for the balancer or worker that a path leads to. What a fallback answers in its place is to
// reach the client as if that one had answered: each of these lines holds for what corresponds at the fallback, too.
// Thread safety: one request's; the configuration stays as it is, the request gets a copy.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_REVERSE_MAP_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_REVERSE_MAP_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// `worker`: the one without a balancer that refuses; nullptr: state.balancer does.
void map_answers_of_fallback(RequestState& state, const proxy_worker_shared* worker, proxy_balancer& fallback) noexcept;

}  // namespace cb::httpd

#endif
