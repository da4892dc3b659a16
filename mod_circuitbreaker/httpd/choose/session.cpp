#include "session.hpp"

#include <cstring>

#include "shm/table.hpp"

namespace cb::httpd {
namespace {

/// `;name=value` or `?name=value` anywhere in the URL.
const char* in_url(apr_pool_t* p, const char* url, const char* name, bool ends_at_semicolon) noexcept {
    const std::size_t length = std::strlen(name);
    for (const char* at = std::strstr(url, name); at != nullptr; at = std::strstr(at, name)) {
        at += length;
        if (*at != '=' || at[1] == '\0') continue;
        char* last = nullptr;
        return apr_strtok(apr_pstrdup(p, at + 1), ends_at_semicolon ? ";?&" : "?&", &last);
    }
    return nullptr;
}

const char* in_cookies(const request_rec* r, const char* name) noexcept {
    const char* const cookies = apr_table_get(r->headers_in, "Cookie");
    if (cookies == nullptr) return nullptr;
    const std::size_t length = std::strlen(name);
    for (const char* at = std::strstr(cookies, name); at != nullptr; at = std::strstr(at + 1, name)) {
        const bool begins = at == cookies || at[-1] == ';' || at[-1] == ',' || apr_isspace(at[-1]);
        const char* value = at + length;
        while (apr_isspace(*value))
            ++value;
        if (!begins || *value != '=' || value[1] == '\0') continue;
        ++value;
        return apr_pstrmemdup(r->pool, value, std::strcspn(value, ";,"));
    }
    return nullptr;
}

Session with_route(const char* value, const proxy_balancer_shared& balancer) noexcept {
    const char* route = value;
    if (balancer.sticky_separator != '\0') {
        const char* const separator = std::strchr(value, balancer.sticky_separator);
        route = separator != nullptr ? separator + 1 : "";
    }
    return *route != '\0' ? Session{value, route} : Session{};
}

struct SetCookies {
    apr_pool_t* pool;
    const char* name;
    const char* value;
};

extern "C" int look_at_cookie(void* data, const char*, const char* field) noexcept {
    auto& cookies = *static_cast<SetCookies*>(data);
    const std::size_t length = std::strlen(cookies.name);
    if (std::strncmp(field, cookies.name, length) == 0 && field[length] == '=') {
        const char* const value = field + length + 1;
        cookies.value = apr_pstrmemdup(cookies.pool, value, std::strcspn(value, ";,"));  // as it will come back
    }
    return 1;
}

}  // namespace

Session find_session(const request_rec* r, const proxy_balancer& balancer, const char* url) noexcept {
    const proxy_balancer_shared& shared = *balancer.s;
    if (*shared.sticky == '\0' || *shared.sticky_path == '\0') return {};
    const char* value = in_url(r->pool, url, shared.sticky_path, shared.scolonsep != 0);
    if (value == nullptr) value = in_cookies(r, shared.sticky);
    return value != nullptr ? with_route(value, shared) : Session{};
}

Session find_new_session(const request_rec* r, const proxy_balancer& balancer) noexcept {
    if (*balancer.s->sticky == '\0') return {};
    SetCookies cookies{r->pool, balancer.s->sticky, nullptr};
    apr_table_do(look_at_cookie, &cookies, r->headers_out, "Set-Cookie", nullptr);
    // What answers as a CGI script does (FastCGI, SCGI) has its fields there.
    apr_table_do(look_at_cookie, &cookies, r->err_headers_out, "Set-Cookie", nullptr);
    return cookies.value != nullptr ? with_route(cookies.value, *balancer.s) : Session{};
}

bool is_bound(const Session& session, Members members, const proxy_worker_shared& worker) noexcept {
    if (session.value == nullptr) return false;
    const char* route = session.route;
    for (std::size_t steps = 0; steps <= members.size(); ++steps) {
        if (std::strcmp(worker.route, route) == 0) return true;
        const char* redirect = nullptr;
        for (const proxy_worker* const other : members) {
            if (std::strcmp(other->s->route, route) != 0 || *other->s->redirect == '\0') continue;
            redirect = other->s->redirect;
            break;
        }
        if (redirect == nullptr) return false;
        route = redirect;
    }
    return false;
}

std::uint64_t session_hash(const request_rec* r, const Session& session, std::uint64_t salt) noexcept {
    const char* const own = session.is_route_only() ? session.route : session.value;
    std::uint64_t hash = shm::hash_bytes(own, std::strlen(own), salt);
    if (session.is_route_only()) {
        hash = shm::hash_bytes(r->useragent_ip, std::strlen(r->useragent_ip), hash);
        const char* const agent = apr_table_get(r->headers_in, "User-Agent");
        if (agent != nullptr) hash = shm::hash_bytes(agent, std::strlen(agent), hash);
    }
    hash = (hash ^ (hash >> 30U)) * 0xBF58476D1CE4E5B9U;  // splitmix64: values that are alike end far apart
    hash = (hash ^ (hash >> 27U)) * 0x94D049BB133111EBU;
    return hash ^ (hash >> 31U);
}

}  // namespace cb::httpd
