// The policy of one member: server, then the <Proxy> sections of its balancer, then those of its own URL.
//
// Purpose: whole names decide which section applies, not mod_proxy's prefixes, so `balancer://a` never reaches
// `balancer://ab`, and `<Proxy "http://10.0.0.7:8080">` refines one member.
// Thread safety: reads configuration only; may be called in a child for a member added at run time.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_POLICIES_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_POLICIES_HPP

#include <cstring>

#include "httpd/proxy_api.hpp"
#include "settings.hpp"

namespace cb::httpd {

/// Reads the policies of many members; keeps the sections of the server it was last asked about.
class PolicyReader {
  public:
    /// Scratch memory comes from `temporary`, which must outlive the reader; lists of rules in the result from `kept`.
    PolicyReader(apr_pool_t* temporary, apr_pool_t* kept) noexcept : pool_(temporary), kept_(kept) {}

    /// `balancer` is nullptr for a worker without one.
    [[nodiscard]] Settings settings_of(const server_rec* server, const proxy_balancer* balancer,
                                       const proxy_worker& worker) noexcept;

    /// Whether any member of this server, one that may be added at run time included, could have a breaker.
    [[nodiscard]] bool may_have_breakers(const server_rec* server) noexcept;

  private:
    void read_sections_of(const server_rec* server) noexcept;

    apr_pool_t* pool_;
    apr_pool_t* kept_;
    const server_rec* server_ = nullptr;
    apr_array_header_t* sections_ = nullptr;
};

/// False for workers that can have no breaker of their own: the generic one, and those with `$` in their host.
[[nodiscard]] bool can_have_breaker(const proxy_worker& worker) noexcept;

[[nodiscard]] inline bool is_same_name(const proxy_worker& a, const proxy_worker& b) noexcept {
    return std::strcmp(a.s->name_ex, b.s->name_ex) == 0 && std::strcmp(a.s->uds_path, b.s->uds_path) == 0;
}

/// Calls `visit(server, balancer)` once for every balancer, at the server that defines its members. A virtual host that
/// inherits it has a copy with the same array of members, which is not visited again.
template <class Visit>
void for_each_balancer(server_rec* main_server, Visit visit) noexcept {
    const proxy_server_conf* const base = proxy_conf(main_server);
    const auto* const inherited = reinterpret_cast<const proxy_balancer*>(base->balancers->elts);
    for (server_rec* s = main_server; s != nullptr; s = s->next) {
        const proxy_server_conf* const conf = proxy_conf(s);
        if (s != main_server && conf == base) continue;
        auto* const balancers = reinterpret_cast<proxy_balancer*>(conf->balancers->elts);
        int at =
            0;  // where the last one was found: those that the virtual host names itself come last (merge_balancers)
        for (int b = 0; b < conf->balancers->nelts; ++b) {
            bool is_inherited = false;
            for (int n = 0; s != main_server && !is_inherited && n < base->balancers->nelts; ++n) {
                at = at + 1 < base->balancers->nelts && n + b > 0 ? at + 1 : 0;
                is_inherited = inherited[at].workers == balancers[b].workers;
            }
            if (!is_inherited) visit(s, balancers[b]);
        }
    }
}

/// Calls `visit(server, balancer or nullptr, worker)` once for every member, at the server that defines it. Not for a
/// virtual host's worker of the same name as one that it inherits: mod_proxy finds that one first, and never asks it.
template <class Visit>
void for_each_member(server_rec* main_server, Visit visit) noexcept {
    for_each_balancer(main_server, [&](server_rec* s, proxy_balancer& balancer) noexcept {
        for (int i = 0; i < balancer.workers->nelts; ++i)
            visit(s, &balancer, *workers_of(balancer)[i]);
    });
    const proxy_server_conf* const base = proxy_conf(main_server);
    const auto* const inherited = reinterpret_cast<const proxy_worker*>(base->workers->elts);
    for (server_rec* s = main_server; s != nullptr; s = s->next) {
        const proxy_server_conf* const conf = proxy_conf(s);
        if (s != main_server && conf == base) continue;
        // A virtual host's workers begin with copies of what it inherits, in the same order (merge_proxy_config).
        auto* const workers = reinterpret_cast<proxy_worker*>(conf->workers->elts);
        for (int w = 0; w < conf->workers->nelts; ++w) {
            const bool is_inherited = s != main_server && w < base->workers->nelts && inherited[w].s == workers[w].s;
            bool is_hidden = false;
            for (int i = 0; s != main_server && !is_hidden && i < w && i < base->workers->nelts; ++i)
                is_hidden = is_same_name(workers[i], workers[w]) && workers[i].s == inherited[i].s;
            if (!is_inherited && !is_hidden) visit(s, static_cast<proxy_balancer*>(nullptr), workers[w]);
        }
    }
}

/// A <Proxy> section that uses our directives and applies to no member.
struct UnusedSection {
    const ap_directive_t* where = nullptr;  // nullptr: there is none
    const char* remedy = nullptr;
};
/// The first one after `skip` others.
[[nodiscard]] UnusedSection unused_section(apr_pool_t* temporary, server_rec* main_server, int skip) noexcept;

}  // namespace cb::httpd

#endif
