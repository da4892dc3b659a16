// The policy of one member: server, then the <Proxy> sections of its balancer, then those of its own URL.
//
// Purpose: whole names decide which section applies, not mod_proxy's prefixes, so `balancer://a` never reaches
// `balancer://ab`, and `<Proxy "http://10.0.0.7:8080">` refines one member.
// Thread safety: reads configuration only; may be called in a child for a member added at run time.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_POLICIES_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_POLICIES_HPP

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

}  // namespace cb::httpd

#endif
