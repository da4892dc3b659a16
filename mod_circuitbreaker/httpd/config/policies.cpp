#include "policies.hpp"

#include <cstring>

#include "sections.hpp"

namespace cb::httpd {

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
    const NamedMember member(pool_, balancer, worker);
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

}  // namespace cb::httpd
