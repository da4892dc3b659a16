#include "policies.hpp"

#include <cstring>

#include "section_name.hpp"
#include "walk.hpp"

namespace cb::httpd {
namespace {

/// A <Proxy> section that uses our directives.
struct Section {
    const ap_conf_vector_t* config;
    SectionName name;

    [[nodiscard]] const Settings& settings() const noexcept { return dir_config(config)->section; }
    [[nodiscard]] bool applies(const Name& to) const noexcept { return name.applies(to); }
};

apr_array_header_t* sections_of(apr_pool_t* p, const server_rec* s) noexcept {
    const apr_array_header_t* const all = proxy_conf(s)->sec_proxy;
    apr_array_header_t* const ours = apr_array_make(p, 4, sizeof(Section));
    for (int i = 0; i < all->nelts; ++i) {
        const auto* const config = APR_ARRAY_IDX(all, i, const ap_conf_vector_t*);
        const DirConfig* const settings = dir_config(config);
        const auto* const dir = static_cast<const proxy_dir_conf*>(ap_get_module_config(config, proxy.proxy_module));
        if (settings == nullptr || settings->section.set == 0 || dir == nullptr || dir->p == nullptr) continue;
        APR_ARRAY_PUSH(ours, Section) = {config, SectionName(p, *dir)};
    }
    return ours;
}

/// What helps a section that applies to no member.
constexpr const char* kRemedyNaming = "Name a balancer or a member as it stands in ProxyPass or BalancerMember";
constexpr const char* kRemedyMoving =
    "What it names belongs to the main server, for all virtual hosts: put it there, outside all virtual hosts";
// What declares a member that it names.
constexpr const char* kRemedyBeside = ", or give this <Proxy> a parameter (enablereuse=on) that declares one";
constexpr const char* kRemedyInside =
    ", or write \"ProxySet enablereuse=on\" into this <Proxy>, which declares one (httpd takes the brackets for a "
    "pattern's, and no parameter beside them)";

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

UnusedSection unused_section(apr_pool_t* temporary, server_rec* main_server, int skip) noexcept {
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
            bool is_of_main = false;
            for_each_member(main_server, [&](server_rec* of, proxy_balancer* balancer, proxy_worker& worker) noexcept {
                // A virtual host's section does not reach a balancer that the virtual host only inherits.
                if (is_used || (of != s && of != main_server)) return;
                const Member member(temporary, balancer, worker);
                const bool is_named = member.is_named_by_balancer(section) || member.is_named_itself(section);
                (s == main_server || of == s ? is_used : is_of_main) |= is_named;
            });
            if (is_used || skip-- > 0) continue;
            for (const ap_directive_t* where : section.settings().where) {
                if (where == nullptr) continue;
                const SectionName& name = section.name;
                const char* const more = name.is_pattern()            ? ""
                                         : name.is_pattern_to_httpd() ? kRemedyInside
                                                                      : kRemedyBeside;
                return {where->parent != nullptr ? where->parent : where,
                        is_of_main ? kRemedyMoving : apr_pstrcat(temporary, kRemedyNaming, more, nullptr)};
            }
        }
    }
    return {};
}

}  // namespace cb::httpd
