#include "virtual_hosts.hpp"

#include <cstring>

#include "destinations.hpp"
#include "directives.hpp"
#include "policies.hpp"
#include "walk.hpp"

namespace cb::httpd {
namespace {

/// The section of a virtual host that the directive stands in; nullptr if that is not known.
const ap_directive_t* vhost_of(const ap_directive_t* directive) noexcept {
    while (directive != nullptr && ap_cstr_casecmp(directive->directive, "<VirtualHost") != 0)
        directive = directive->parent;
    return directive;
}

bool inherits(const server_rec* s, const proxy_balancer* balancer, const proxy_worker& worker) noexcept {
    const proxy_server_conf& conf = *proxy_conf(s);
    for (int i = 0; balancer != nullptr && i < conf.balancers->nelts; ++i) {
        if (reinterpret_cast<const proxy_balancer*>(conf.balancers->elts)[i].workers == balancer->workers) return true;
    }
    for (int i = 0; balancer == nullptr && i < conf.workers->nelts; ++i) {
        if (reinterpret_cast<const proxy_worker*>(conf.workers->elts)[i].s == worker.s) return true;
    }
    return false;
}

bool is_same_value(const ap_directive_t* a, const ap_directive_t* b) noexcept {
    return a != nullptr && b != nullptr && ap_cstr_casecmp(a->args, b->args) == 0;
}

/// A virtual host, and what it says to no effect.
class VirtualHost {
  public:
    VirtualHost(apr_pool_t* p, server_rec* main_server, server_rec* s) noexcept
        : pool_(p), main_server_(main_server), server_(s), settings_(server_settings(s)) {}

    void warn() noexcept {
        find_section();
        if (section_ == nullptr) return;
        find_members();
        find_directives();
        if (directives_ == nullptr) return;
        ap_log_error(
            APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, server_,
            "mod_circuitbreaker: the virtual host on line %d of %s: %s: no effect on %s of the main server, "
            "whose breakers have the main server's settings in all virtual hosts. To have an effect, this "
            "must stand in <Proxy \"%s\"> outside all virtual hosts%s",
            section_->line_num, section_->filename, directives_, names_, first_name_,
            for_requests_ == nullptr
                ? ""
                : apr_psprintf(pool_, "; a <Location> of the virtual host is a place for %s, too", for_requests_));
    }

  private:
    /// What the virtual host itself sets, and has not from the main server.
    [[nodiscard]] const ap_directive_t* own(std::uint32_t i) const noexcept {
        const ap_directive_t* const where = settings_.where[i];
        return where != server_settings(main_server_).where[i] ? where : nullptr;
    }

    void find_section() noexcept {
        for (std::uint32_t i = 0; section_ == nullptr && i < kDirectives; ++i) {
            if (own(i) != nullptr) section_ = vhost_of(own(i));
        }
    }

    /// Who defines a member of its own, or says where requests go, uses those of the main server that it sends them
    /// to. Who does neither may come to any of them, also by what it has inherited.
    void find_members() noexcept {
        for_each_own_member(main_server_, server_, [&](proxy_balancer*, proxy_worker& worker) noexcept {
            has_own_ = has_own_ || can_have_breaker(worker);
        });
        destinations_ = apr_array_make(pool_, 4, sizeof(Destination));
        find_destinations(pool_, server_, section_->first_child, destinations_);
    }

    [[nodiscard]] bool may_ask(const proxy_balancer* balancer, const proxy_worker& worker) const noexcept {
        if (!has_own_ && destinations_->nelts == 0) return true;
        for (int i = 0; i < destinations_->nelts; ++i) {
            const auto& to = APR_ARRAY_IDX(destinations_, i, Destination);
            const bool is_same = balancer != nullptr
                                     ? to.balancer != nullptr && to.balancer->workers == balancer->workers
                                     : to.worker != nullptr && to.worker->s == worker.s;
            if (is_same) return true;
        }
        return false;
    }

    void find_directives() noexcept {
        PolicyReader policies(pool_, pool_);
        bool is_listed[kDirectives] = {};
        for_each_own_member(main_server_, main_server_, [&](proxy_balancer* balancer, proxy_worker& worker) noexcept {
            if (!can_have_breaker(worker) || !inherits(server_, balancer, worker) || !may_ask(balancer, worker)) return;
            const Settings in_force = policies.settings_of(main_server_, balancer, worker);
            const core::Mode mode = in_force.policy.mode;
            if (mode == core::Mode::off && settings_.policy.mode == core::Mode::off) return;  // all is as it says
            bool is_any = false;
            for (std::uint32_t i = 0; i < kDirectives; ++i) {
                const bool is_mode = i == index_of(Directive::mode);
                const bool is_same = is_mode ? mode == settings_.policy.mode : is_same_value(own(i), in_force.where[i]);
                if (own(i) == nullptr || is_same) continue;
                is_any = true;
                if (!is_listed[i]) list(i);
                is_listed[i] = true;
            }
            if (is_any) list(balancer != nullptr ? balancer->s->name : worker.s->name_ex);
        });
    }

    void list(std::uint32_t i) noexcept {
        directives_ = with_place(pool_, directives_, *own(i));
        if (!is_for_requests(static_cast<Directive>(i))) return;
        for_requests_ = for_requests_ == nullptr ? kDirectiveNames[i]
                                                 : apr_pstrcat(pool_, for_requests_, ", ", kDirectiveNames[i], nullptr);
    }

    void list(const char* name) noexcept {
        if (last_name_ != nullptr && std::strcmp(last_name_, name) == 0) return;  // another member of the balancer
        names_ = names_ == nullptr ? name : apr_pstrcat(pool_, names_, ", ", name, nullptr);
        if (first_name_ == nullptr) first_name_ = name;
        last_name_ = name;
    }

    apr_pool_t* pool_;
    server_rec* main_server_;
    server_rec* server_;
    const Settings& settings_;
    const ap_directive_t* section_ = nullptr;
    bool has_own_ = false;
    apr_array_header_t* destinations_ = nullptr;
    const char* directives_ = nullptr;
    const char* for_requests_ = nullptr;
    const char* names_ = nullptr;
    const char* first_name_ = nullptr;
    const char* last_name_ = nullptr;
};

}  // namespace

void warn_of_virtual_hosts(apr_pool_t* temporary, server_rec* main_server) noexcept {
    apr_pool_t* scratch = nullptr;  // there may be many, and each reads the policies of all members
    if (apr_pool_create(&scratch, temporary) != APR_SUCCESS) return;
    for (server_rec* s = main_server->next; s != nullptr; s = s->next) {
        VirtualHost(scratch, main_server, s).warn();
        apr_pool_clear(scratch);
    }
    apr_pool_destroy(scratch);
}

}  // namespace cb::httpd
