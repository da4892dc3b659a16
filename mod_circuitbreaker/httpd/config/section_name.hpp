// What the name of a <Proxy> section stands for: a balancer, a member, or those that a pattern matches.
//
// Purpose: names are compared whole and in mod_proxy's spelling, whichever spelling a section has. httpd takes the
// brackets of an IPv6 address for a pattern's; here they are part of the name.
// Thread safety: pure, but for the pool.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_SECTION_NAME_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_SECTION_NAME_HPP

#include "httpd/proxy_api.hpp"

namespace cb::httpd {

/// A name as mod_proxy keeps it (ap_proxy_define_worker_ex): socket path apart, scheme and host in lower case, no
/// default port, and here no trailing slash either.
struct Name {
    const char* uds_path = "";
    const char* url = "";
};

/// The `url` of a Name.
[[nodiscard]] const char* normalized(apr_pool_t* p, const char* url) noexcept;

class SectionName {
  public:
    SectionName(apr_pool_t* p, const proxy_dir_conf& section) noexcept;

    [[nodiscard]] bool applies(const Name& to) const noexcept;
    [[nodiscard]] bool is_pattern() const noexcept { return regex_ != nullptr || pattern_ != nullptr; }
    /// httpd takes no parameter beside it.
    [[nodiscard]] bool is_pattern_to_httpd() const noexcept { return is_pattern_to_httpd_; }

  private:
    const ap_regex_t* regex_;        // nullptr: no <ProxyMatch>
    const char* pattern_ = nullptr;  // for apr_fnmatch; nullptr: it is a name
    Name name_;
    bool is_pattern_to_httpd_;
};

}  // namespace cb::httpd

#endif
