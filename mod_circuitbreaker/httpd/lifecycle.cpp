#include "lifecycle.hpp"

#include <unistd.h>

#include "httpd/attempts.hpp"
#include "httpd/call/watch.hpp"
#include "httpd/config/check.hpp"
#include "httpd/events/event_log.hpp"
#include "httpd/events/events.hpp"
#include "httpd/members/error_state.hpp"
#include "httpd/members/registry.hpp"
#include "httpd/pages/actions.hpp"
#include "parent.hpp"
#include "runtime.hpp"
#include "shm/segment.hpp"
#include "timer.hpp"

namespace cb::httpd {
namespace {

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

extern "C" {

int cb_on_pre_config(apr_pool_t* pconf, apr_pool_t*, apr_pool_t*) noexcept {
    runtime = Runtime{};
    runtime.fallbacks = apr_array_make(pconf, 4, sizeof(NamedFallback));
    const char* const missing = resolve_proxy_api();
    if (missing == nullptr) {
        // Hooks of mod_proxy can only be joined now that it is loaded; httpd sorts all hooks again after this one.
        register_attempt_hooks();
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
    return check_configuration(ptemp, s) ? OK : HTTP_INTERNAL_SERVER_ERROR;
}

int cb_on_post_config(apr_pool_t* pconf, apr_pool_t*, apr_pool_t* ptemp, server_rec* s) noexcept {
    if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG) return OK;  // the first of two readings
    runtime.server = s;
    runtime.has_health_checks = ap_find_linked_module("mod_proxy_hcheck.c") != nullptr;
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
    start_timer(pconf);
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
