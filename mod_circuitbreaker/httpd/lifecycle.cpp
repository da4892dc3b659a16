#include "lifecycle.hpp"

#include <unistd.h>

#include "httpd/call/call.hpp"
#include "httpd/call/watch.hpp"
#include "httpd/choose/select.hpp"
#include "httpd/config/policies.hpp"
#include "httpd/config/virtual_hosts.hpp"
#include "httpd/events/event_log.hpp"
#include "httpd/members/error_state.hpp"
#include "httpd/pages/actions.hpp"
#include "parent.hpp"
#include "runtime.hpp"
#include "shm/segment.hpp"

namespace cb::httpd {

constinit Runtime runtime;

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
        if (where == nullptr || named == nullptr || apr_isalpha(named[strlen(kDirectiveNames[i])])) continue;
        text =
            apr_psprintf(p, "%s%s\"%s %s\" on line %d of %s", text != nullptr ? text : "", text != nullptr ? ", " : "",
                         where->directive, where->args, where->line_num, where->filename);
    }
    return text != nullptr ? text : "by default";
}

bool report_contradictions(apr_pool_t* ptemp, server_rec* main_server) noexcept {
    bool is_fine = true;
    PolicyReader policies(ptemp, ptemp);
    for_each_member(main_server, [&](server_rec* s, proxy_balancer* balancer, proxy_worker& worker) noexcept {
        if (!is_fine || !can_have_breaker(worker)) return;
        const Settings settings = policies.settings_of(s, balancer, worker);
        const char* const what =
            core::contradiction(settings.policy, runtime.has_fatal_for_requests || has_fatal(settings.rules));
        if (what == nullptr) return;
        is_fine = false;
        ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_ERR, 0, s, "mod_circuitbreaker: member %s%s%s: %s (set: %s)",
                     worker.s->name_ex, balancer != nullptr ? " of " : "", balancer != nullptr ? balancer->s->name : "",
                     what, places_text(ptemp, settings, what));
    });
    return is_fine;
}

bool report_wrong_fallbacks(apr_pool_t* ptemp, server_rec* main_server) noexcept {
    for (int i = 0; i < runtime.fallbacks->nelts; ++i) {
        const NamedFallback& fallback = APR_ARRAY_IDX(runtime.fallbacks, i, const NamedFallback);
        if (proxy.get_balancer(ptemp, proxy_conf(fallback.server), fallback.name, 0) != nullptr) continue;
        ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_ERR, 0, fallback.server,
                     "mod_circuitbreaker: %s line %d: %s %s: there is no such balancer. Name one that this server has, "
                     "with <Proxy \"%s\"> and its BalancerMembers",
                     fallback.where->filename, fallback.where->line_num, fallback.where->directive,
                     fallback.where->args, fallback.name);
        return false;
    }
    bool is_fine = true;
    PolicyReader policies(ptemp, ptemp);
    for_each_member(main_server, [&](server_rec* s, proxy_balancer* balancer, proxy_worker& worker) noexcept {
        if (!is_fine || balancer == nullptr || !can_have_breaker(worker)) return;
        const Settings settings = policies.settings_of(s, balancer, worker);
        if (settings.fallback == nullptr || ap_cstr_casecmp(settings.fallback, balancer->s->name) != 0) return;
        // What stands at the server applies to the fallback itself too; only in a section of its own it is a slip.
        const ap_directive_t* const where = settings.where[static_cast<std::uint32_t>(Directive::fallback)];
        if (where->parent == nullptr || ap_cstr_casecmpn(where->parent->directive, "<Proxy", 6) != 0) return;
        is_fine = false;
        ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_ERR, 0, s,
                     "mod_circuitbreaker: %s line %d: %s %s: a balancer can't be its own fallback; name another one",
                     where->filename, where->line_num, where->directive, where->args);
    });
    return is_fine;
}

void warn_of_members_without(apr_pool_t* ptemp, server_rec* main_server) noexcept {
    PolicyReader policies(ptemp, ptemp);
    for_each_member(main_server, [&](server_rec* s, proxy_balancer* balancer, proxy_worker& worker) noexcept {
        if (can_have_breaker(worker) || policies.settings_of(s, balancer, worker).policy.mode == core::Mode::off)
            return;
        ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, s,
                     "mod_circuitbreaker: %s has no breaker: its host is not known before the request. Declare each "
                     "backend with <Proxy \"URL\" enablereuse=on> to give it one",
                     worker.s->name_ex);
    });
    for (int i = 0;; ++i) {
        const auto [where, remedy] = unused_section(ptemp, main_server, i);
        if (where == nullptr) break;
        ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, main_server,
                     "mod_circuitbreaker: %s line %d: %s %s applies to no member, so its directives have no effect. %s",
                     where->filename, where->line_num, where->directive, where->args, remedy);
    }
}

bool has_balancers(const server_rec* main_server) noexcept {
    for (const server_rec* s = main_server; s != nullptr; s = s->next) {
        if (proxy_conf(s)->balancers->nelts > 0) return true;
    }
    return false;
}

std::uint32_t columns_wanted() noexcept {
    int daemons = 0;
    if (ap_mpm_query(AP_MPMQ_HARD_LIMIT_DAEMONS, &daemons) != APR_SUCCESS || daemons < 1) daemons = 256;
    // Room for children that have ended and are not yet cleared.
    return static_cast<std::uint32_t>(daemons) + static_cast<std::uint32_t>(daemons) / 4 + 16;
}

bool open_shared_state(server_rec* s, std::uint32_t members) noexcept {
    const shm::Opened opened = shm::open_segment(s->process->pool, 2 * members + 64, columns_wanted());
    if (opened.origin == shm::Origin::failed) {
        ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_CRIT, opened.status, s,
                     "mod_circuitbreaker: no shared memory (%" APR_SIZE_T_FMT " bytes) for the circuit breakers",
                     opened.size);
        return false;
    }
    if (opened.origin == shm::Origin::replaced) {
        ap_log_error(
            APLOG_MARK, APLOG_NOTICE, 0, s,
            "mod_circuitbreaker: the shared memory of an earlier version was replaced; all breakers start closed");
    }
    runtime.segment = opened.segment;
    runtime.process = {opened.segment.clock(), static_cast<std::uint32_t>(getpid()), log_observer()};
    runtime.epoch = opened.segment.header->epoch.fetch_add(1, std::memory_order_seq_cst) + 1;
    return true;
}

}  // namespace

shm::InFlight in_flight(const shm::Slot& slot) noexcept {
    if (runtime.column == shm::kNoColumn) return {};
    shm::Atomic32* const row = runtime.segment.row(runtime.segment.index_of(slot));
    // All columns, not those used so far: a child that registers between this look and our own count would be missed.
    return {row + runtime.column, row, runtime.segment.header->columns};
}

extern "C" {

int cb_on_pre_config(apr_pool_t* pconf, apr_pool_t*, apr_pool_t*) noexcept {
    runtime = Runtime{};
    runtime.fallbacks = apr_array_make(pconf, 4, sizeof(NamedFallback));
    const char* const missing = resolve_proxy_api();
    if (missing == nullptr) {
        // Hooks of mod_proxy can only be joined now that it is loaded; httpd sorts all hooks again after this one.
        register_select_hook();
        register_call_hooks();
        register_watch_hooks();
        return OK;
    }
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_ERR, 0, nullptr,
                 strcmp(missing, "proxy_module") == 0
                     ? "mod_circuitbreaker needs mod_proxy, which is not loaded: add \"LoadModule proxy_module "
                       "modules/mod_proxy.so\" (on Debian: a2enmod proxy)"
                     : "mod_circuitbreaker needs httpd 2.4.71 or newer: its mod_proxy lacks a function");
    return HTTP_INTERNAL_SERVER_ERROR;
}

int cb_on_check_config(apr_pool_t*, apr_pool_t*, apr_pool_t* ptemp, server_rec* s) noexcept {
    if (has_balancers(s)) {
        if (ap_find_linked_module("mod_proxy_balancer.c") == nullptr) {
            if (!is_second_reading()) {
                ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, s,
                             "mod_circuitbreaker: balancers are configured, but mod_proxy_balancer is not loaded: only "
                             "workers without a balancer can be used. Add \"LoadModule proxy_balancer_module "
                             "modules/mod_proxy_balancer.so\"");
            }
        } else if (ap_lookup_provider(AP_SLOTMEM_PROVIDER_GROUP, "shm", AP_SLOTMEM_PROVIDER_VERSION) == nullptr) {
            ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_ERR, 0, s,
                         "mod_circuitbreaker: mod_proxy_balancer needs mod_slotmem_shm, which is not loaded: add "
                         "\"LoadModule slotmem_shm_module modules/mod_slotmem_shm.so\"");
            return HTTP_INTERNAL_SERVER_ERROR;
        }
    }
    if (!report_wrong_fallbacks(ptemp, s) || !report_contradictions(ptemp, s)) return HTTP_INTERNAL_SERVER_ERROR;
    if (!is_second_reading()) {
        warn_of_members_without(ptemp, s);
        warn_of_virtual_hosts(ptemp, s);
    }
    return OK;
}

int cb_on_post_config(apr_pool_t* pconf, apr_pool_t*, apr_pool_t* ptemp, server_rec* s) noexcept {
    if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG) return OK;  // the first of two readings
    runtime.server = s;
    const std::uint32_t members = count_members(ptemp, s);
    if (members == 0 && !shm::existing_segment(s->process->pool).is_valid()) return OK;
    if (!open_shared_state(s, members) || !open_event_log(pconf, s)) return HTTP_INTERNAL_SERVER_ERROR;
    draw_action_token();
    std::uint32_t without = 0;
    runtime.registry = Registry::build(pconf, ptemp, s, runtime.segment, runtime.epoch, without);
    if (without > 0) {
        ap_log_error(
            APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, s,
            "mod_circuitbreaker: %u member(s) run without a breaker: the table of %u slots is full. Stop and start "
            "httpd to make it larger (a restart keeps the table)",
            without, runtime.segment.header->capacity);
    }
    clear_missed_children();
    shm::free_unused(runtime.segment, runtime.process.pid);
    give_back_error_states_at_exit(pconf);
    if (members == 0) runtime.registry = nullptr;
    return OK;
}

void cb_on_child_init(apr_pool_t*, server_rec*) noexcept {
    if (!runtime.segment.is_valid()) return;
    runtime.process.pid = static_cast<std::uint32_t>(getpid());
    bool is_stale = false;
    runtime.column = shm::register_child(runtime.segment, runtime.process.pid, runtime.epoch, is_stale);
    if (!is_stale || runtime.registry == nullptr) return;
    runtime.registry->forget_slots();
    ap_log_error(APLOG_MARK, APLOG_WARNING, 0, runtime.server,
                 "mod_circuitbreaker: this child runs without breakers: %s",
                 runtime.column == shm::kNoColumn ? "more children than there was room for when httpd was started"
                                                  : "it was started before the last restart and comes too late");
}

}  // extern "C"

}  // namespace cb::httpd
