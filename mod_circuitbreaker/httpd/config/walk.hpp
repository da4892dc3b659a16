// Walks over the balancers and members of the configuration.
//
// Purpose: each is visited once, at the server that defines it, although virtual hosts have copies of what they
// inherit.
// Thread safety: reads configuration, which does not change. A balancer's members change later, so they are to be
// walked while the configuration is read, and in post_config.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_WALK_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_WALK_HPP

#include <cstring>

#include "httpd/proxy_api.hpp"

namespace cb::httpd {

[[nodiscard]] inline bool is_same_name(const proxy_worker& a, const proxy_worker& b) noexcept {
    return std::strcmp(a.s->name_ex, b.s->name_ex) == 0 && std::strcmp(a.s->uds_path, b.s->uds_path) == 0;
}

/// Calls `visit(balancer)` for the balancers whose members this server defines. A virtual host that inherits a balancer
/// has a copy with the same array of members, which is not visited.
template <class Visit>
void for_each_own_balancer(server_rec* main_server, server_rec* s, Visit visit) noexcept {
    const proxy_server_conf* const base = proxy_conf(main_server);
    const proxy_server_conf* const conf = proxy_conf(s);
    if (s != main_server && conf == base) return;
    const auto* const inherited = reinterpret_cast<const proxy_balancer*>(base->balancers->elts);
    auto* const balancers = reinterpret_cast<proxy_balancer*>(conf->balancers->elts);
    int at = 0;  // where the last one was found: what the virtual host names itself comes last (merge_balancers)
    for (int b = 0; b < conf->balancers->nelts; ++b) {
        bool is_inherited = false;
        for (int n = 0; s != main_server && !is_inherited && n < base->balancers->nelts; ++n) {
            at = at + 1 < base->balancers->nelts && n + b > 0 ? at + 1 : 0;
            is_inherited = inherited[at].workers == balancers[b].workers;
        }
        if (!is_inherited) visit(balancers[b]);
    }
}

/// Calls `visit(worker)` for the workers without a balancer that this server defines. Not for a virtual host's worker
/// of the same name as one that it inherits: mod_proxy finds that one first, and never asks it.
template <class Visit>
void for_each_own_worker(server_rec* main_server, server_rec* s, Visit visit) noexcept {
    const proxy_server_conf* const base = proxy_conf(main_server);
    const proxy_server_conf* const conf = proxy_conf(s);
    if (s != main_server && conf == base) return;
    const auto* const inherited = reinterpret_cast<const proxy_worker*>(base->workers->elts);
    // A virtual host's workers begin with copies of what it inherits, in the same order (merge_proxy_config).
    auto* const workers = reinterpret_cast<proxy_worker*>(conf->workers->elts);
    for (int w = 0; w < conf->workers->nelts; ++w) {
        const bool is_inherited = s != main_server && w < base->workers->nelts && inherited[w].s == workers[w].s;
        bool is_hidden = false;
        for (int i = 0; s != main_server && !is_hidden && i < w && i < base->workers->nelts; ++i)
            is_hidden = is_same_name(workers[i], workers[w]) && workers[i].s == inherited[i].s;
        if (!is_inherited && !is_hidden) visit(workers[w]);
    }
}

/// Calls `visit(balancer or nullptr, worker)` for the members that this server defines.
template <class Visit>
void for_each_own_member(server_rec* main_server, server_rec* s, Visit visit) noexcept {
    for_each_own_balancer(main_server, s, [&](proxy_balancer& balancer) noexcept {
        for (int i = 0; i < balancer.workers->nelts; ++i)
            visit(&balancer, *workers_of(balancer)[i]);
    });
    for_each_own_worker(main_server, s,
                        [&](proxy_worker& worker) noexcept { visit(static_cast<proxy_balancer*>(nullptr), worker); });
}

/// Calls `visit(server, balancer)` once for every balancer, at the server that defines its members.
template <class Visit>
void for_each_balancer(server_rec* main_server, Visit visit) noexcept {
    for (server_rec* s = main_server; s != nullptr; s = s->next)
        for_each_own_balancer(main_server, s, [&](proxy_balancer& balancer) noexcept { visit(s, balancer); });
}

/// Calls `visit(server, balancer or nullptr, worker)` once for every member, at the server that defines it. Those of
/// all balancers come first.
template <class Visit>
void for_each_member(server_rec* main_server, Visit visit) noexcept {
    for_each_balancer(main_server, [&](server_rec* s, proxy_balancer& balancer) noexcept {
        for (int i = 0; i < balancer.workers->nelts; ++i)
            visit(s, &balancer, *workers_of(balancer)[i]);
    });
    for (server_rec* s = main_server; s != nullptr; s = s->next) {
        for_each_own_worker(main_server, s, [&](proxy_worker& worker) noexcept {
            visit(s, static_cast<proxy_balancer*>(nullptr), worker);
        });
    }
}

}  // namespace cb::httpd

#endif
