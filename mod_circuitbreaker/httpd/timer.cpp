#include "timer.hpp"

#include <mod_watchdog.h>

#include "httpd/members/health.hpp"
#include "httpd/members/registry.hpp"
#include "runtime.hpp"
#include "shm/notice.hpp"

namespace cb::httpd {
namespace {

constexpr core::Millis kInterval = 100;  // mod_watchdog's shortest

extern "C" apr_status_t on_watchdog(int state, void*, apr_pool_t*) noexcept {
    if (state != AP_WATCHDOG_STATE_RUNNING) return APR_SUCCESS;
    static core::Millis last_search = 0;
    if (runtime.registry != nullptr && now() - last_search >= core::kMillisPerSecond) {
        last_search = now();
        runtime.registry->know_all_members();  // those added at run time
    }
    look_at_time(kInterval);
    return APR_SUCCESS;
}

/// In the child that makes the health checks from now on, just before mod_proxy_hcheck begins: callbacks are called in
/// the reverse of the order in which they were registered.
extern "C" apr_status_t on_health_checks(int state, void*, apr_pool_t*) noexcept {
    if (state != AP_WATCHDOG_STATE_STARTING || runtime.registry == nullptr) return APR_SUCCESS;
    runtime.registry->know_all_members();
    runtime.registry->for_each_bound(doubt_check_under_way);
    return APR_SUCCESS;
}

/// Has mod_watchdog call that function in one child at a time. False if it can't.
bool call_back(apr_pool_t* pconf, const char* name, core::Millis interval,
               ap_watchdog_callback_fn_t* callback) noexcept {
    auto* const get_instance = APR_RETRIEVE_OPTIONAL_FN(ap_watchdog_get_instance);
    auto* const register_callback = APR_RETRIEVE_OPTIONAL_FN(ap_watchdog_register_callback);
    if (get_instance == nullptr || register_callback == nullptr) return false;
    ap_watchdog_t* watchdog = nullptr;
    constexpr int kInChild = 0;
    constexpr int kSingleton = 1;
    if (get_instance(&watchdog, name, kInChild, kSingleton, pconf) != APR_SUCCESS) return false;
    return register_callback(watchdog, static_cast<apr_interval_time_t>(interval) * 1000, nullptr, callback) ==
           APR_SUCCESS;
}

}  // namespace

void start_timer(apr_pool_t* pconf) noexcept {
    if (!runtime.wants_timer || runtime.registry == nullptr) return;
    runtime.has_timer = call_back(pconf, "_circuitbreaker_", kInterval, on_watchdog);
    if (!runtime.has_health_checks) return;
    (void)call_back(pconf, "_proxy_hcheck_", core::kDay, on_health_checks);  // its own thread's (HCHECK_WATHCHDOG_NAME)
}

void look_at_time(core::Millis interval) noexcept {
    if (!runtime.segment.is_valid()) return;
    if (runtime.registry != nullptr) {
        runtime.registry->for_each_bound(heed_health_check);
    }
    for (std::uint32_t i = 0; i < runtime.segment.header->capacity; ++i) {
        if (!runtime.segment.is_ready(i)) continue;
        shm::Slot& slot = runtime.segment.slots[i];
        const Breaker* const breaker = runtime.registry != nullptr ? runtime.registry->at(i) : nullptr;
        if (breaker != nullptr && is_awaiting_check(*breaker, slot)) continue;  // nobody knows when it may be probed
        shm::announce_probe(slot, shm::noted_policy(slot), runtime.process, interval);
    }
}

}  // namespace cb::httpd
