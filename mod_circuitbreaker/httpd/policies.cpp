#include "policies.hpp"

#include <apr_uri.h>

#include <cstring>

namespace cb::httpd {
namespace {

/// A name as mod_proxy keeps it (ap_proxy_define_worker_ex): socket path apart, scheme and host in lower case, no
/// default port, and here no trailing slash either.
struct Name {
    const char* uds_path = "";
    const char* url = "";
};

const char* normalized(apr_pool_t* p, const char* url) noexcept {
    apr_uri_t uri;
    if (apr_uri_parse(p, url, &uri) != APR_SUCCESS || uri.scheme == nullptr || uri.hostname == nullptr) return url;
    ap_str_tolower(uri.scheme);
    ap_str_tolower(uri.hostname);
    if (uri.port != 0 && uri.port == proxy.port_of_scheme(uri.scheme)) uri.port = 0;
    uri.port_str = uri.port != 0 ? apr_psprintf(p, "%u", static_cast<unsigned>(uri.port)) : nullptr;
    char* const text = apr_uri_unparse(p, &uri, APR_URI_UNP_REVEALPASSWORD);
    for (std::size_t length = std::strlen(text); length > 0 && text[length - 1] == '/'; --length) text[length - 1] = '\0';
    return text;
}

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

bool applies(apr_pool_t* p, const ap_conf_vector_t* section, const Name& name) noexcept {
    const auto* const dir = static_cast<const proxy_dir_conf*>(ap_get_module_config(section, proxy.proxy_module));
    if (dir == nullptr || dir->p == nullptr) return false;
    if (dir->r != nullptr) return ap_regexec(dir->r, name.url, 0, nullptr, 0) == 0;
    if (dir->p_is_fnmatch != 0) return apr_fnmatch(dir->p, name.url, 0) == APR_SUCCESS;
    const Name wanted = parsed(p, dir->p);
    return std::strcmp(wanted.url, name.url) == 0 && std::strcmp(wanted.uds_path, name.uds_path) == 0;
}

bool uses_our_directives(const ap_conf_vector_t* section) noexcept {
    const DirConfig* const dir = dir_config(section);
    return dir != nullptr && dir->section.set != 0;
}

Name name_of(apr_pool_t* p, const proxy_worker& worker) noexcept {
    return {worker.s->uds_path, normalized(p, worker.s->name_ex)};
}

bool applies_to_balancer(apr_pool_t* p, const ap_conf_vector_t* section, const proxy_balancer* balancer) noexcept {
    return balancer != nullptr && (section == balancer->section_config ||
                                   applies(p, section, {"", normalized(p, balancer->s->name)}));
}

bool applies_to_worker(apr_pool_t* p, const ap_conf_vector_t* section, const proxy_balancer* balancer,
                       const proxy_worker& worker) noexcept {
    const bool is_own_section = section == worker.section_config &&
                                (balancer == nullptr || section != balancer->section_config);
    return is_own_section || applies(p, section, name_of(p, worker));
}

ap_conf_vector_t** sections_of(const server_rec* s) noexcept {
    return reinterpret_cast<ap_conf_vector_t**>(proxy_conf(s)->sec_proxy->elts);
}

}  // namespace

Settings settings_of(apr_pool_t* temporary, const server_rec* server, const proxy_balancer* balancer,
                     const proxy_worker& worker) noexcept {
    Settings settings = server_settings(server);
    ap_conf_vector_t** const sections = sections_of(server);
    const int count = proxy_conf(server)->sec_proxy->nelts;
    for (int i = 0; i < count; ++i) {
        if (uses_our_directives(sections[i]) && applies_to_balancer(temporary, sections[i], balancer)) {
            overlay(settings, dir_config(sections[i])->section);
        }
    }
    for (int i = 0; i < count; ++i) {
        // A pattern that has already matched the balancer ("*") is no refinement of the member.
        if (uses_our_directives(sections[i]) && applies_to_worker(temporary, sections[i], balancer, worker) &&
            !applies_to_balancer(temporary, sections[i], balancer)) {
            overlay(settings, dir_config(sections[i])->section);
        }
    }
    return settings;
}

bool can_have_breaker(const proxy_worker& worker) noexcept {
    if ((worker.s->status & PROXY_WORKER_GENERIC) != 0) return false;
    const char* host = std::strstr(worker.s->name_ex, "://");
    for (host = host != nullptr ? host + 3 : ""; *host != '\0' && *host != '/'; ++host) {
        if (*host == '$') return false;
    }
    return true;
}

const ap_directive_t* unused_section(apr_pool_t* temporary, server_rec* main_server, int skip) noexcept {
    for (server_rec* s = main_server; s != nullptr; s = s->next) {
        ap_conf_vector_t** const sections = sections_of(s);
        for (int i = 0; i < proxy_conf(s)->sec_proxy->nelts; ++i) {
            if (!uses_our_directives(sections[i])) continue;
            bool is_inherited = false;
            for (int m = 0; s != main_server && m < proxy_conf(main_server)->sec_proxy->nelts; ++m) {
                is_inherited = is_inherited || sections_of(main_server)[m] == sections[i];
            }
            if (is_inherited) continue;
            bool is_used = false;
            for_each_member(main_server, [&](server_rec*, proxy_balancer* balancer, proxy_worker& worker) noexcept {
                is_used = is_used || applies_to_balancer(temporary, sections[i], balancer) ||
                          applies_to_worker(temporary, sections[i], balancer, worker);
            });
            if (is_used || skip-- > 0) continue;
            const Settings& settings = dir_config(sections[i])->section;
            for (const ap_directive_t* where : settings.where) {
                if (where != nullptr) return where->parent != nullptr ? where->parent : where;
            }
        }
    }
    return nullptr;
}

}  // namespace cb::httpd
