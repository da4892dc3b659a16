// Choosing a member around those whose breaker refuses (DESIGN 4.1 to 4.3).
//
// Purpose: mod_proxy chooses, from a balancer in which refused members look stopped, so that sticky routes, nofailover,
// redirects, spares, standbys, lbsets and every lbmethod work by themselves. Nothing shared is touched by it.
// Thread safety: each request on its own thread; the balancer's member list is read under its thread lock while it
// changes.
#ifndef CIRCUITBREAKER_HTTPD_CHOOSE_SELECT_HPP
#define CIRCUITBREAKER_HTTPD_CHOOSE_SELECT_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// mod_proxy's hook, in pre_config.
void register_select_hook() noexcept;

/// Chooses once more, around `failed` and every member tried before. OK with member and URL; the new call has begun.
int choose_another(RequestState& state, proxy_worker& failed, proxy_worker** worker, char** url) noexcept;

}  // namespace cb::httpd

#endif
