#include "check.hpp"

#include <cstring>

#include "httpd/runtime.hpp"
#include "parse.hpp"
#include "policies.hpp"
#include "unused_sections.hpp"
#include "virtual_hosts.hpp"
#include "walk.hpp"

namespace cb::httpd {
namespace {

/// Configuration is read twice at start; messages belong to one of the two readings, and to every restart.
bool is_second_reading() noexcept {
    return ap_state_query(AP_SQ_CONFIG_GEN) == 1;
}

/// The directives that the message names, as they were set, with file and line.
const char* places_text(apr_pool_t* p, const Settings& settings, const char* message) noexcept {
    const char* text = nullptr;
    for (std::uint32_t i = 0; i < kDirectives; ++i) {
        const ap_directive_t* const where = settings.where[i];
        // "CircuitBreaker" alone begins every name, so a name must end where it ends in the message.
        const char* const named = ap_strstr_c(message, kDirectiveNames[i]);
        if (where == nullptr || named == nullptr || apr_isalpha(named[std::strlen(kDirectiveNames[i])])) continue;
        text = with_place(p, text, *where);
    }
    return text != nullptr ? text : "by default";
}

/// Calls `visit(server, balancer or nullptr, worker, settings)` for every member that can have a breaker.
template <class Visit>
void for_each_breaker(apr_pool_t* temporary, server_rec* main_server, Visit visit) noexcept {
    PolicyReader policies(temporary, temporary);
    for_each_member(main_server, [&](server_rec* s, proxy_balancer* balancer, proxy_worker& worker) noexcept {
        if (can_have_breaker(worker)) visit(s, balancer, worker, policies.settings_of(s, balancer, worker));
    });
}

/// "URL of BALANCER", as messages name a member.
const char* member_text(apr_pool_t* p, const proxy_balancer* balancer, const proxy_worker& worker) noexcept {
    return balancer == nullptr ? worker.s->name_ex
                               : apr_pstrcat(p, worker.s->name_ex, " of ", balancer->s->name, nullptr);
}

/// For a message about the first of so many members.
const char* and_more_text(apr_pool_t* p, int members) noexcept {
    return members > 1 ? apr_psprintf(p, " and %d more", members - 1) : "";
}

bool has_no_contradictions(apr_pool_t* temporary, server_rec* main_server) noexcept {
    bool is_fine = true;
    for_each_breaker(
        temporary, main_server,
        [&](server_rec* s, const proxy_balancer* balancer, const proxy_worker& worker,
            const Settings& settings) noexcept {
            const char* const what =
                core::contradiction(settings.policy, runtime.has_fatal_for_requests || has_fatal(settings.rules));
            if (what == nullptr || !is_fine) return;
            is_fine = false;
            ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_ERR, 0, s, "mod_circuitbreaker: member %s: %s (set: %s)",
                         member_text(temporary, balancer, worker), what, places_text(temporary, settings, what));
        });
    return is_fine;
}

bool names_existing_fallbacks(apr_pool_t* temporary) noexcept {
    for (int i = 0; i < runtime.fallbacks->nelts; ++i) {
        const NamedFallback& fallback = APR_ARRAY_IDX(runtime.fallbacks, i, const NamedFallback);
        if (proxy.get_balancer(temporary, proxy_conf(fallback.server), fallback.name, 0) != nullptr) continue;
        ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_ERR, 0, fallback.server,
                     "mod_circuitbreaker: %s line %d: %s %s: there is no such balancer. Name one that this server has, "
                     "with <Proxy \"%s\"> and its BalancerMembers",
                     fallback.where->filename, fallback.where->line_num, fallback.where->directive,
                     fallback.where->args, fallback.name);
        return false;
    }
    return true;
}

bool names_other_balancers_as_fallbacks(apr_pool_t* temporary, server_rec* main_server) noexcept {
    bool is_fine = true;
    for_each_breaker(
        temporary, main_server,
        [&](server_rec* s, const proxy_balancer* balancer, const proxy_worker&, const Settings& settings) noexcept {
            if (!is_fine || balancer == nullptr || settings.fallback == nullptr) return;
            if (ap_cstr_casecmp(settings.fallback, balancer->s->name) != 0) return;
            // What stands at the server applies to the fallback itself too; only in a section of its own it is a slip.
            const ap_directive_t* const where = settings.place_of(Directive::fallback);
            if (where->parent == nullptr || ap_cstr_casecmpn(where->parent->directive, "<Proxy", 6) != 0) return;
            is_fine = false;
            ap_log_error(
                APLOG_MARK, APLOG_STARTUP | APLOG_ERR, 0, s,
                "mod_circuitbreaker: %s line %d: %s %s: a balancer can't be its own fallback; name another one",
                where->filename, where->line_num, where->directive, where->args);
        });
    return is_fine;
}

void warn_of_members_without(apr_pool_t* temporary, server_rec* main_server) noexcept {
    PolicyReader policies(temporary, temporary);
    for_each_member(main_server, [&](server_rec* s, proxy_balancer* balancer, proxy_worker& worker) noexcept {
        if (can_have_breaker(worker) || policies.settings_of(s, balancer, worker).policy.mode == core::Mode::off)
            return;
        ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, s,
                     "mod_circuitbreaker: %s has no breaker: its host is not known before the request. Declare each "
                     "backend with <Proxy \"URL\" enablereuse=on> to give it one",
                     worker.s->name_ex);
    });
}

/// mod_proxy's error state is out of force where a breaker acts, and with it the time after which it would try again.
void tell_of_retry_without_effect(apr_pool_t* temporary, server_rec* main_server) noexcept {
    for_each_breaker(temporary, main_server,
                     [&](server_rec* s, const proxy_balancer* balancer, const proxy_worker& worker,
                         const Settings& settings) noexcept {
                         if (!worker.s->retry_set || settings.policy.mode != core::Mode::on) return;
                         ap_log_error(
                             APLOG_MARK, APLOG_STARTUP | APLOG_INFO, 0, s,
                             "mod_circuitbreaker: member %s: retry= has no effect, because its CircuitBreaker is On: "
                             "CircuitBreakerOpenTime says when it is tried again",
                             member_text(temporary, balancer, worker));
                     });
}

/// Rules with the condition `slow` where CircuitBreakerSlowCall is Off.
void warn_of_slow_rules(apr_pool_t* temporary, server_rec* main_server) noexcept {
    int members = 0;
    const char* of_first = " for any member";
    const ap_directive_t* where = nullptr;
    bool is_any_limited = false;
    for_each_breaker(temporary, main_server,
                     [&](const server_rec*, const proxy_balancer* balancer, const proxy_worker& worker,
                         const Settings& settings) noexcept {
                         if (settings.policy.mode == core::Mode::off) return;
                         const bool is_limited = settings.policy.slow_call.threshold > 0;
                         is_any_limited = is_any_limited || is_limited;
                         const VerdictRule* const slow = slow_rule(settings.rules, settings.probe_rules);
                         if (is_limited || slow == nullptr || members++ > 0) return;
                         of_first =
                             apr_pstrcat(temporary, " for member ", member_text(temporary, balancer, worker), nullptr);
                         where = slow->where;
                     });
    if (members == 0 && !is_any_limited) where = runtime.slow_rule_for_requests;
    if (where == nullptr) return;
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, main_server,
                 "mod_circuitbreaker: %s never holds%s%s, as CircuitBreakerSlowCall is Off there: set it, or remove "
                 "the rule",
                 with_place(temporary, nullptr, *where), of_first, and_more_text(temporary, members));
}

/// A response that goes on for longer than CircuitBreakerSettle is judged before its end.
void warn_of_late_limits(apr_pool_t* temporary, server_rec* main_server) noexcept {
    if (runtime.has_settle_for_requests) return;  // which may be longer
    int members = 0;
    const char* first = nullptr;
    for_each_breaker(
        temporary, main_server,
        [&](const server_rec*, const proxy_balancer* balancer, const proxy_worker& worker,
            const Settings& settings) noexcept {
            const core::SlowCall& limit = settings.policy.slow_call;
            const bool is_late = limit.until_end && limit.threshold >= settings.policy.settle;
            if (settings.policy.mode == core::Mode::off || limit.threshold == 0 || !is_late || members++ > 0) return;
            first = apr_pstrcat(temporary, with_place(temporary, nullptr, *settings.place_of(Directive::slow_call)),
                                " looks no further than CircuitBreakerSettle ",
                                duration_text(temporary, settings.policy.settle), " for member ",
                                member_text(temporary, balancer, worker), nullptr);
        });
    if (first == nullptr) return;
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, main_server,
                 "mod_circuitbreaker: %s%s: raise CircuitBreakerSettle above that time, or lower it", first,
                 and_more_text(temporary, members));
}

bool has_balancers(const server_rec* main_server) noexcept {
    for (const server_rec* s = main_server; s != nullptr; s = s->next) {
        if (proxy_conf(s)->balancers->nelts > 0) return true;
    }
    return false;
}

/// What balancers need beside mod_proxy.
bool has_modules(const server_rec* main_server) noexcept {
    if (!has_balancers(main_server)) return true;
    if (ap_find_linked_module("mod_proxy_balancer.c") == nullptr) {
        if (!is_second_reading()) {
            ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, main_server,
                         "mod_circuitbreaker: balancers are configured, but mod_proxy_balancer is not loaded: only "
                         "workers without a balancer can be used. Add \"LoadModule proxy_balancer_module "
                         "modules/mod_proxy_balancer.so\"");
        }
        return true;
    }
    if (ap_lookup_provider(AP_SLOTMEM_PROVIDER_GROUP, "shm", AP_SLOTMEM_PROVIDER_VERSION) != nullptr) return true;
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_ERR, 0, main_server,
                 "mod_circuitbreaker: mod_proxy_balancer needs mod_slotmem_shm, which is not loaded: add "
                 "\"LoadModule slotmem_shm_module modules/mod_slotmem_shm.so\"");
    return false;
}

}  // namespace

bool check_configuration(apr_pool_t* temporary, server_rec* main_server) noexcept {
    if (!has_modules(main_server) || !names_existing_fallbacks(temporary) ||
        !names_other_balancers_as_fallbacks(temporary, main_server) || !has_no_contradictions(temporary, main_server)) {
        return false;
    }
    if (!is_second_reading()) {
        warn_of_members_without(temporary, main_server);
        warn_of_slow_rules(temporary, main_server);
        warn_of_late_limits(temporary, main_server);
        warn_of_unused_sections(temporary, main_server);
        warn_of_virtual_hosts(temporary, main_server);
        tell_of_retry_without_effect(temporary, main_server);
    }
    return true;
}

}  // namespace cb::httpd
