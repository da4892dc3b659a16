#include "origin.hpp"

#include <cstring>
#include <string_view>

#include "httpd/httpd_api.hpp"

namespace cb::httpd {
namespace {

struct Url {
    std::string_view scheme;
    std::string_view authority;
    const char* rest = nullptr;  // from the path on
};

bool parse_url(const char* text, Url& url) noexcept {
    const char* const colon = std::strstr(text, "://");
    if (colon == nullptr || colon == text) return false;
    url.scheme = {text, static_cast<std::size_t>(colon - text)};
    const char* const authority = colon + 3;
    url.authority = {authority, std::strcspn(authority, "/?#")};
    url.rest = authority + url.authority.size();
    return !url.authority.empty();
}

bool is_word(std::string_view text, const char* word) noexcept {
    return text.size() == std::strlen(word) && ap_cstr_casecmpn(text.data(), word, text.size()) == 0;
}

/// Without the port that the scheme implies: a browser leaves it out, others may not.
std::string_view without_default_port(std::string_view authority, std::string_view scheme) noexcept {
    const std::string_view port = is_word(scheme, "http") ? ":80" : is_word(scheme, "https") ? ":443" : "";
    if (!port.empty() && authority.size() > port.size() && authority.ends_with(port)) {
        authority.remove_suffix(port.size());
    }
    return authority;
}

}  // namespace

bool is_same_host(const char* host, const char* origin, const char* referer) noexcept {
    Url url;
    const char* const from = origin != nullptr ? origin : referer;
    if (host == nullptr || from == nullptr || !parse_url(from, url)) return false;
    const std::string_view theirs = without_default_port(url.authority, url.scheme);
    const std::string_view ours = without_default_port(host, url.scheme);
    return theirs.size() == ours.size() && ap_cstr_casecmpn(theirs.data(), ours.data(), ours.size()) == 0;
}

const char* path_of_url(const char* url) noexcept {
    Url parsed;
    if (url == nullptr || !parse_url(url, parsed) || *parsed.rest != '/') return nullptr;
    // "//host" and "/\host" are other hosts to a browser.
    return parsed.rest[1] == '/' || parsed.rest[1] == '\\' ? nullptr : parsed.rest;
}

}  // namespace cb::httpd
