// Choosing a member around those whose breaker refuses.
//
// Purpose: mod_proxy chooses, from a copy of the balancer in which refused members look stopped. So sticky routes,
// nofailover, redirects, spares, standbys, lbsets and every lbmethod work unchanged, and nothing shared is touched.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_SELECT_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_SELECT_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// Takes a member for the request, with a permit of its breaker, and begins the call. Returns what a pre_request hook
/// of mod_proxy returns: OK with member and URL, DECLINED if no breaker is involved, or the status for the client.
[[nodiscard]] int take_member(RequestState& state, proxy_worker** worker, proxy_balancer** balancer,
                              char** url) noexcept;

/// Takes another member: neither `failed` nor one that was tried before. OK with member and URL.
[[nodiscard]] int take_another(RequestState& state, proxy_worker& failed, proxy_worker** worker, char** url) noexcept;

}  // namespace cb::httpd

#endif
