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
    for (std::size_t length = std::strlen(text); length > 0 && text[length - 1] == '/'; --length)
        text[length - 1] = '\0';
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

/// A <Proxy> section that uses our directives.
struct Section {
    const ap_conf_vector_t* config;
    const proxy_dir_conf* dir;
    Name name;

    [[nodiscard]] const Settings& settings() const noexcept { return dir_config(config)->section; }
    [[nodiscard]] bool applies(const Name& to) const noexcept {
        if (dir->r != nullptr) return ap_regexec(dir->r, to.url, 0, nullptr, 0) == 0;
        if (dir->p_is_fnmatch != 0) return apr_fnmatch(dir->p, to.url, 0) == APR_SUCCESS;
        return std::strcmp(name.url, to.url) == 0 && std::strcmp(name.uds_path, to.uds_path) == 0;
    }
};

apr_array_header_t* sections_of(apr_pool_t* p, const server_rec* s) noexcept {
    const apr_array_header_t* const all = proxy_conf(s)->sec_proxy;
    apr_array_header_t* const ours = apr_array_make(p, 4, sizeof(Section));
    for (int i = 0; i < all->nelts; ++i) {
        const auto* const config = APR_ARRAY_IDX(all, i, const ap_conf_vector_t*);
        const DirConfig* const settings = dir_config(config);
        const auto* const dir = static_cast<const proxy_dir_conf*>(ap_get_module_config(config, proxy.proxy_module));
        if (settings == nullptr || settings->section.set == 0 || dir == nullptr || dir->p == nullptr) continue;
        APR_ARRAY_PUSH(ours, Section) = {config, dir, parsed(p, dir->p)};
    }
    return ours;
}

/// A member with its names as sections write them.
struct Member {
    const proxy_balancer* balancer;  // nullptr: none
    const proxy_worker* worker;
    Name balancer_name;
    Name worker_name;

    Member(apr_pool_t* p, const proxy_balancer* b, const proxy_worker& w) noexcept
        : balancer(b),
          worker(&w),
          balancer_name{"", b != nullptr ? normalized(p, b->s->name) : ""},
          worker_name{w.s->uds_path, normalized(p, w.s->name_ex)} {}

    [[nodiscard]] bool is_named_by_balancer(const Section& section) const noexcept {
        return balancer != nullptr && (section.config == balancer->section_config || section.applies(balancer_name));
    }
    [[nodiscard]] bool is_named_itself(const Section& section) const noexcept {
        return section.config == worker->section_config || section.applies(worker_name);
    }
};

}  // namespace

void PolicyReader::read_sections_of(const server_rec* server) noexcept {
    if (server == server_) return;
    sections_ = sections_of(pool_, server);
    server_ = server;
}

bool PolicyReader::may_have_breakers(const server_rec* server) noexcept {
    read_sections_of(server);
    bool is_any = server_settings(server).policy.mode != core::Mode::off;
    for (int i = 0; i < sections_->nelts; ++i) {
        const Settings& settings = APR_ARRAY_IDX(sections_, i, const Section).settings();
        is_any = is_any || (settings.has(Directive::mode) && settings.policy.mode != core::Mode::off);
    }
    return is_any;
}

Settings PolicyReader::settings_of(const server_rec* server, const proxy_balancer* balancer,
                                   const proxy_worker& worker) noexcept {
    read_sections_of(server);
    Settings settings = server_settings(server);
    if (sections_->nelts == 0) return settings;
    const Member member(pool_, balancer, worker);
    for (int i = 0; i < sections_->nelts; ++i) {
        const Section& section = APR_ARRAY_IDX(sections_, i, const Section);
        if (member.is_named_by_balancer(section)) overlay(kept_, settings, section.settings());
    }
    for (int i = 0; i < sections_->nelts; ++i) {
        const Section& section = APR_ARRAY_IDX(sections_, i, const Section);
        // A pattern that has already matched the balancer ("*") is no refinement of the member.
        if (!member.is_named_by_balancer(section) && member.is_named_itself(section)) {
            overlay(kept_, settings, section.settings());
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
    const int inherited = proxy_conf(main_server)->sec_proxy->nelts;
    for (server_rec* s = main_server; s != nullptr; s = s->next) {
        const apr_array_header_t* const sections = sections_of(temporary, s);
        for (int i = 0; i < sections->nelts; ++i) {
            const Section& section = APR_ARRAY_IDX(sections, i, const Section);
            const apr_array_header_t* const of_main = proxy_conf(main_server)->sec_proxy;
            bool is_inherited = false;
            for (int m = 0; s != main_server && m < inherited; ++m) {
                is_inherited = is_inherited || APR_ARRAY_IDX(of_main, m, const ap_conf_vector_t*) == section.config;
            }
            if (is_inherited) continue;
            bool is_used = false;
            for_each_member(main_server, [&](server_rec* of, proxy_balancer* balancer, proxy_worker& worker) noexcept {
                // A virtual host's section does not reach a balancer that the virtual host only inherits.
                if (is_used || (s != main_server && of != s)) return;
                const Member member(temporary, balancer, worker);
                is_used = member.is_named_by_balancer(section) || member.is_named_itself(section);
            });
            if (is_used || skip-- > 0) continue;
            for (const ap_directive_t* where : section.settings().where) {
                if (where != nullptr) return where->parent != nullptr ? where->parent : where;
            }
        }
    }
    return nullptr;
}

}  // namespace cb::httpd
