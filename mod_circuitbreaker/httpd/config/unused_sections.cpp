#include "unused_sections.hpp"

#include "sections.hpp"
#include "walk.hpp"

namespace cb::httpd {
namespace {

constexpr const char* kRemedyNaming = "Name a balancer or a member as it stands in ProxyPass or BalancerMember";
constexpr const char* kRemedyMoving =
    "What it names belongs to the main server, for all virtual hosts: put it there, outside all virtual hosts";
// What declares a member that it names.
constexpr const char* kRemedyBeside = ", or give this <Proxy> a parameter (enablereuse=on) that declares one";
constexpr const char* kRemedyInside =
    ", or write \"ProxySet enablereuse=on\" into this <Proxy>, which declares one (httpd takes the brackets for a "
    "pattern's, and no parameter beside them)";

bool is_among(const apr_array_header_t* sections, const ap_conf_vector_t* section) noexcept {
    for (int i = 0; i < sections->nelts; ++i) {
        if (APR_ARRAY_IDX(sections, i, const ap_conf_vector_t*) == section) return true;
    }
    return false;
}

bool names_member_of(apr_pool_t* p, const Section& section, server_rec* main_server, server_rec* s) noexcept {
    bool is_any = false;
    for_each_own_member(main_server, s, [&](proxy_balancer* balancer, proxy_worker& worker) noexcept {
        if (is_any) return;
        const NamedMember member(p, balancer, worker);
        is_any = member.is_named_by_balancer(section) || member.is_named_itself(section);
    });
    return is_any;
}

const char* remedy_naming(apr_pool_t* p, const SectionName& name) noexcept {
    if (name.is_pattern()) return kRemedyNaming;
    return apr_pstrcat(p, kRemedyNaming, name.is_pattern_to_httpd() ? kRemedyInside : kRemedyBeside, nullptr);
}

/// The directive that opens the section.
const ap_directive_t* place_of(const Section& section) noexcept {
    for (const ap_directive_t* where : section.settings().where) {
        if (where != nullptr) return where->parent != nullptr ? where->parent : where;
    }
    return nullptr;
}

}  // namespace

void warn_of_unused_sections(apr_pool_t* temporary, server_rec* main_server) noexcept {
    const apr_array_header_t* const of_main = proxy_conf(main_server)->sec_proxy;
    for (server_rec* s = main_server; s != nullptr; s = s->next) {
        const apr_array_header_t* const sections = sections_of(temporary, s);
        for (int i = 0; i < sections->nelts; ++i) {
            const Section& section = APR_ARRAY_IDX(sections, i, const Section);
            const bool is_inherited = s != main_server && is_among(of_main, section.config);
            if (is_inherited || names_member_of(temporary, section, main_server, s)) continue;
            // A virtual host's section does not reach a balancer that the virtual host only inherits.
            const bool is_of_main = s != main_server && names_member_of(temporary, section, main_server, main_server);
            const ap_directive_t* const where = place_of(section);
            if (where == nullptr) continue;
            ap_log_error(
                APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, main_server,
                "mod_circuitbreaker: %s line %d: %s %s applies to no member, so its directives have no effect. %s",
                where->filename, where->line_num, where->directive, where->args,
                is_of_main ? kRemedyMoving : remedy_naming(temporary, section.name));
        }
    }
}

}  // namespace cb::httpd
