// The <Proxy> sections that use our directives, and whether one names a member.
//
// Purpose: shared by what makes a member's policy (policies.hpp) and what warns of sections without a member.
// Thread safety: reads configuration only.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_SECTIONS_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_SECTIONS_HPP

#include "section_name.hpp"
#include "settings.hpp"

namespace cb::httpd {

struct Section {
    const ap_conf_vector_t* config;
    SectionName name;

    [[nodiscard]] const Settings& settings() const noexcept { return dir_config(config)->section; }
};

/// Those of a server, as Section, in the order in which they apply. A virtual host has the main server's first.
[[nodiscard]] apr_array_header_t* sections_of(apr_pool_t* p, const server_rec* s) noexcept;

/// A member with its names as sections write them.
class NamedMember {
  public:
    /// `balancer` is nullptr for a worker without one.
    NamedMember(apr_pool_t* p, const proxy_balancer* balancer, const proxy_worker& worker) noexcept;

    [[nodiscard]] bool is_named_by_balancer(const Section& section) const noexcept;
    [[nodiscard]] bool is_named_itself(const Section& section) const noexcept;

  private:
    const proxy_balancer* balancer_;
    const proxy_worker* worker_;
    Name balancer_name_;
    Name worker_name_;
};

}  // namespace cb::httpd

#endif
