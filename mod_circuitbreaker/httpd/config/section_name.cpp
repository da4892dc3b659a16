#include "section_name.hpp"

#include <apr_uri.h>
#include <arpa/inet.h>

#include <cstring>

namespace cb::httpd {
namespace {

Name parsed(apr_pool_t* p, const char* text) noexcept {
    Name name;
    const char* bar = nullptr;
    if (ap_cstr_casecmpn(text, "unix:", 5) == 0 && (bar = std::strchr(text, '|')) != nullptr) {
        const char* const path = apr_pstrmemdup(p, text + 5, static_cast<apr_size_t>(bar - text - 5));
        name.uds_path = ap_runtime_dir_relative(p, path);
        text = proxy.de_socketfy(p, text);
        if (text == nullptr || name.uds_path == nullptr) return Name{};
    }
    name.url = normalized(p, text);
    return name;
}

/// An address, also with a zone ("fe80::1%eth0").
bool is_ipv6(apr_pool_t* p, const char* text, std::size_t length) noexcept {
    in6_addr address;
    const char* const spelled = apr_pstrmemdup(p, text, length);
    return inet_pton(AF_INET6, apr_pstrmemdup(p, spelled, std::strcspn(spelled, "%")), &address) == 1;
}

/// The bracket before the IPv6 address that is the host of the URL; nullptr if its host is none.
const char* ipv6_bracket(apr_pool_t* p, const char* url) noexcept {
    const char* const authority = std::strstr(url, "://");
    if (authority == nullptr) return nullptr;
    const char* host = authority + 3;
    const char* const end = host + std::strcspn(host, "/?#");
    for (const char* c = host; c < end; ++c) {
        if (*c == '@') host = c + 1;
    }
    const char* const closing = host < end && *host == '[' ? std::strchr(host, ']') : nullptr;
    const bool is_address =
        closing != nullptr && closing < end && is_ipv6(p, host + 1, static_cast<std::size_t>(closing - host - 1));
    return is_address ? host : nullptr;
}

/// For apr_fnmatch: the brackets of an address are themselves.
const char* as_pattern(apr_pool_t* p, const char* text) noexcept {
    const char* const bracket = ipv6_bracket(p, text);
    if (bracket == nullptr) return text;
    return apr_pstrcat(p, apr_pstrmemdup(p, text, static_cast<apr_size_t>(bracket - text)), "\\", bracket, nullptr);
}

}  // namespace

const char* normalized(apr_pool_t* p, const char* url) noexcept {
    apr_uri_t uri;
    if (apr_uri_parse(p, url, &uri) != APR_SUCCESS || uri.scheme == nullptr || uri.hostname == nullptr) return url;
    ap_str_tolower(uri.scheme);
    ap_str_tolower(uri.hostname);
    if (uri.port != 0 && uri.port == proxy.port_of_scheme(uri.scheme)) uri.port = 0;
    uri.port_str = uri.port != 0 ? apr_psprintf(p, "%u", static_cast<unsigned>(uri.port)) : nullptr;
    char* const text = apr_uri_unparse(p, &uri, APR_URI_UNP_REVEALPASSWORD);
    for (std::size_t length = std::strlen(text); length > 0 && text[length - 1] == '/'; --length)
        text[length - 1] = '\0';
    return text;
}

SectionName::SectionName(apr_pool_t* p, const proxy_dir_conf& section) noexcept
    : regex_(section.r), is_pattern_to_httpd_(section.p_is_fnmatch != 0) {
    if (regex_ != nullptr) return;
    const char* const pattern = as_pattern(p, section.p);
    if (apr_fnmatch_test(pattern) != 0) {
        pattern_ = pattern;
    } else {
        name_ = parsed(p, section.p);
    }
}

bool SectionName::applies(const Name& to) const noexcept {
    if (regex_ != nullptr) return ap_regexec(regex_, to.url, 0, nullptr, 0) == 0;
    if (pattern_ != nullptr) return apr_fnmatch(pattern_, to.url, 0) == APR_SUCCESS;
    return std::strcmp(name_.url, to.url) == 0 && std::strcmp(name_.uds_path, to.uds_path) == 0;
}

}  // namespace cb::httpd
