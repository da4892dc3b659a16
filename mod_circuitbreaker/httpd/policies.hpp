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

/// Reads the policies of many members; keeps the sections of the server it was last asked about.
class PolicyReader {
  public:
    /// Scratch memory comes from `temporary`, which must outlive the reader.
    explicit PolicyReader(apr_pool_t* temporary) noexcept : pool_(temporary) {}

    /// `balancer` is nullptr for a worker without one.
    [[nodiscard]] Settings settings_of(const server_rec* server, const proxy_balancer* balancer,
                                       const proxy_worker& worker) noexcept;

  private:
    apr_pool_t* pool_;
    const server_rec* server_ = nullptr;
    apr_array_header_t* sections_ = nullptr;
};

/// False for workers that can have no breaker of their own: the generic one, and those with `$` in their host.
[[nodiscard]] bool can_have_breaker(const proxy_worker& worker) noexcept;

/// Calls `visit(server, balancer or nullptr, worker)` once for every member, at the server that defines it. What a
/// virtual host inherits is not visited again.
template <class Visit>
void for_each_member(server_rec* main_server, Visit visit) noexcept {
    const proxy_server_conf* const base = proxy_conf(main_server);
    for (server_rec* s = main_server; s != nullptr; s = s->next) {
        const proxy_server_conf* const conf = proxy_conf(s);
        if (s != main_server && conf == base) continue;
        // A virtual host's arrays begin with copies of what it inherits, in the same order (merge_proxy_config).
        auto* const balancers = reinterpret_cast<proxy_balancer*>(conf->balancers->elts);
        for (int b = 0; b < conf->balancers->nelts; ++b) {
            const bool is_inherited =
                s != main_server && b < base->balancers->nelts &&
                reinterpret_cast<const proxy_balancer*>(base->balancers->elts)[b].workers == balancers[b].workers;
            for (int i = 0; !is_inherited && i < balancers[b].workers->nelts; ++i) {
                visit(s, &balancers[b], *workers_of(balancers[b])[i]);
            }
        }
        auto* const workers = reinterpret_cast<proxy_worker*>(conf->workers->elts);
        for (int w = 0; w < conf->workers->nelts; ++w) {
            const bool is_inherited = s != main_server && w < base->workers->nelts &&
                                      reinterpret_cast<const proxy_worker*>(base->workers->elts)[w].s == workers[w].s;
            if (!is_inherited) visit(s, static_cast<proxy_balancer*>(nullptr), workers[w]);
        }
    }
}

/// The first <Proxy> section that uses our directives and applies to no member; nullptr if there is none, else where it
/// stands. `skip` sections are passed over.
[[nodiscard]] const ap_directive_t* unused_section(apr_pool_t* temporary, server_rec* main_server, int skip) noexcept;

}  // namespace cb::httpd

#endif
