// The policy of one member: server, then the <Proxy> sections of its balancer, then those of its own URL (DESIGN 4.9).
//
// Purpose: whole names decide which section applies, not mod_proxy's prefixes, so `balancer://a` never reaches
// `balancer://ab`, and `<Proxy "http://10.0.0.7:8080">` refines one member.
// Thread safety: reads configuration only; may be called in a child for a member added at run time.
#ifndef CIRCUITBREAKER_HTTPD_POLICIES_HPP
#define CIRCUITBREAKER_HTTPD_POLICIES_HPP

#include "proxy_api.hpp"
#include "settings.hpp"

namespace cb::httpd {

/// `balancer` is nullptr for a worker without one. `temporary` is used for scratch only.
[[nodiscard]] Settings settings_of(apr_pool_t* temporary, const server_rec* server, const proxy_balancer* balancer,
                                   const proxy_worker& worker) noexcept;

/// False for workers that can have no breaker of their own: the generic one, and those with `$` in their host.
[[nodiscard]] bool can_have_breaker(const proxy_worker& worker) noexcept;

/// Calls `visit(server, balancer or nullptr, worker)` once for every member, at the server that defines it. What a
/// virtual host inherits is not visited again.
template <class Visit>
void for_each_member(server_rec* main_server, Visit visit) noexcept {
    for (server_rec* s = main_server; s != nullptr; s = s->next) {
        const proxy_server_conf* const conf = proxy_conf(s);
        // A virtual host's arrays begin with what it inherits from the main server (merge_proxy_config).
        const proxy_server_conf* const base = s == main_server ? nullptr : proxy_conf(main_server);
        auto* const balancers = reinterpret_cast<proxy_balancer*>(conf->balancers->elts);
        for (int b = 0; b < conf->balancers->nelts; ++b) {
            bool is_inherited = false;
            for (int i = 0; base != nullptr && base != conf && i < base->balancers->nelts; ++i) {
                const auto& other = reinterpret_cast<const proxy_balancer*>(base->balancers->elts)[i];
                is_inherited = is_inherited || other.workers == balancers[b].workers;
            }
            if (is_inherited || base == conf) continue;
            for (int i = 0; i < balancers[b].workers->nelts; ++i) {
                visit(s, &balancers[b], *workers_of(balancers[b])[i]);
            }
        }
        auto* const workers = reinterpret_cast<proxy_worker*>(conf->workers->elts);
        for (int w = 0; w < conf->workers->nelts; ++w) {
            bool is_inherited = false;
            for (int i = 0; base != nullptr && base != conf && i < base->workers->nelts; ++i) {
                is_inherited = is_inherited || reinterpret_cast<const proxy_worker*>(base->workers->elts)[i].s == workers[w].s;
            }
            if (is_inherited || base == conf) continue;
            visit(s, static_cast<proxy_balancer*>(nullptr), workers[w]);
        }
    }
}

/// The first <Proxy> section that uses our directives and applies to no member; nullptr if there is none, else where it
/// stands. `skip` sections are passed over.
[[nodiscard]] const ap_directive_t* unused_section(apr_pool_t* temporary, server_rec* main_server, int skip) noexcept;

}  // namespace cb::httpd

#endif
