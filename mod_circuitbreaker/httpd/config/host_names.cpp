#include "host_names.hpp"

#include <arpa/inet.h>

#include <cstring>

namespace cb::httpd {
namespace {

constexpr std::size_t kMostName = 253;  // RFC 1035
constexpr std::size_t kMostLabel = 63;

/// Of an address without brackets; nullptr if it is none.
const char* ipv6(apr_pool_t* p, const char* text) noexcept {
    in6_addr address;
    char spelled[INET6_ADDRSTRLEN];
    if (inet_pton(AF_INET6, text, &address) != 1) return nullptr;
    return apr_pstrdup(p, inet_ntop(AF_INET6, &address, spelled, sizeof spelled));
}

bool is_ipv4(const char* text) noexcept {
    in_addr address;
    return inet_pton(AF_INET, text, &address) == 1;
}

/// Labels of letters, digits, "-" and "_" (which is no rule, but is in use), with dots between them.
bool is_name(const char* text) noexcept {
    if (std::strlen(text) > kMostName) return false;
    std::size_t label = 0;
    bool is_number = true;
    for (;; ++text) {
        if (*text == '.' || *text == '\0') {
            if (label == 0 || label > kMostLabel) return false;
            if (*text == '\0') return !is_number;  // a last label of digits alone: that would be an address
            label = 0;
            is_number = true;
            continue;
        }
        if (!apr_isalnum(*text) && *text != '-' && *text != '_') return false;
        is_number = is_number && apr_isdigit(*text);
        ++label;
    }
}

}  // namespace

const char* host_name(apr_pool_t* p, const char* text) noexcept {
    const std::size_t length = std::strlen(text);
    if (length > 2 && text[0] == '[' && text[length - 1] == ']') {
        return ipv6(p, apr_pstrmemdup(p, text + 1, length - 2));
    }
    const bool has_trailing_dot = length > 1 && text[length - 1] == '.';
    char* const name = apr_pstrmemdup(p, text, has_trailing_dot ? length - 1 : length);
    ap_str_tolower(name);
    return is_ipv4(name) || is_name(name) ? name : nullptr;
}

bool is_for_host(const request_rec* r, const apr_array_header_t* names) noexcept {
    if (names == nullptr) return true;
    if (r->hostname == nullptr) return false;
    // httpd has taken port, brackets and trailing dot away and has made it lower case.
    const char* const own = std::strchr(r->hostname, ':') != nullptr ? ipv6(r->pool, r->hostname) : r->hostname;
    if (own == nullptr) return false;
    for (int i = 0; i < names->nelts; ++i) {
        if (std::strcmp(own, APR_ARRAY_IDX(names, i, const char*)) == 0) return true;
    }
    return false;
}

}  // namespace cb::httpd
