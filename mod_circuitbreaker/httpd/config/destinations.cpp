#include "destinations.hpp"

#include <cstring>

namespace cb::httpd {
namespace {

/// Do the flags of a RewriteRule ("[L,P]") say that it proxies?
bool is_proxied(const char* flags) noexcept {
    const char* flag = flags + std::strspn(flags, "[");
    while (*flag != '\0') {
        const std::size_t length = std::strcspn(flag, ",] ");
        const bool is_p = (length == 1 && ap_cstr_casecmpn(flag, "P", 1) == 0) ||
                          (length == 5 && ap_cstr_casecmpn(flag, "proxy", 5) == 0);
        if (is_p) return true;
        flag += length;
        flag += std::strspn(flag, ",] ");
    }
    return false;
}

/// The URL that the directive sends requests to; nullptr if it sends none. (What only mentions a URL doesn't:
/// BalancerMember, ProxyPassReverse, Redirect, Header.)
const char* destination_of(apr_pool_t* p, const ap_directive_t& directive) noexcept {
    constexpr const char* kHandler = "proxy:";
    const char* rest = directive.args != nullptr ? directive.args : "";
    const char* const name = directive.directive;
    if (ap_cstr_casecmp(name, "ProxyPass") == 0 || ap_cstr_casecmp(name, "ProxyPassMatch") == 0) {
        const char* word = ap_getword_conf(p, &rest);  // of a <Location>: the URL itself
        if (std::strstr(word, "://") == nullptr) word = ap_getword_conf(p, &rest);
        return word;
    }
    if (ap_cstr_casecmp(name, "SetHandler") == 0 || ap_cstr_casecmp(name, "AddHandler") == 0) {
        const char* const word = ap_getword_conf(p, &rest);
        const std::size_t length = std::strlen(kHandler);
        return ap_cstr_casecmpn(word, kHandler, length) == 0 ? word + length : nullptr;
    }
    if (ap_cstr_casecmp(name, "RewriteRule") == 0) {
        (void)ap_getword_conf(p, &rest);
        const char* const url = ap_getword_conf(p, &rest);
        return is_proxied(ap_getword_conf(p, &rest)) ? url : nullptr;
    }
    return nullptr;
}

/// As much of the URL as is the same for all requests; nullptr if that is not all of its host.
const char* without_variables(apr_pool_t* p, const char* url) noexcept {
    const char* const scheme_end = std::strstr(url, "://");
    const std::size_t fixed = std::strcspn(url, "$%");
    if (scheme_end == nullptr || url + fixed < scheme_end) return nullptr;
    const std::size_t host_end = static_cast<std::size_t>(scheme_end + 3 - url) + std::strcspn(scheme_end + 3, "/$%");
    if (url[host_end] == '%') return nullptr;
    const char* const text = apr_pstrmemdup(p, url, fixed);
    return fixed == host_end ? apr_pstrcat(p, text, "/", nullptr) : text;
}

}  // namespace

void find_destinations(apr_pool_t* p, const server_rec* s, const ap_directive_t* directive,
                       apr_array_header_t* found) noexcept {
    proxy_server_conf* const conf = proxy_conf(s);
    for (; directive != nullptr; directive = directive->next) {
        find_destinations(p, s, directive->first_child, found);
        const char* url = destination_of(p, *directive);
        if (url != nullptr) url = without_variables(p, url);
        if (url == nullptr) continue;
        const bool is_balancer = ap_cstr_casecmpn(url, BALANCER_PREFIX, sizeof(BALANCER_PREFIX) - 1) == 0;
        APR_ARRAY_PUSH(found, Destination) = is_balancer
                                                 ? Destination{proxy.get_balancer(p, conf, url, 1), nullptr}
                                                 : Destination{nullptr, proxy.get_worker_ex(p, nullptr, conf, url, 0)};
    }
}

}  // namespace cb::httpd
