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
    if (state == AP_WATCHDOG_STATE_RUNNING) look_at_time(kInterval);
    return APR_SUCCESS;
}

bool is_needed() noexcept {
    bool is_any = false;
    if (runtime.registry == nullptr) return false;
    runtime.registry->for_each([&](const Breaker& breaker) noexcept {
        is_any = is_any || breaker.policy.open_time.notice > 0 || breaker.policy.health_check != core::HealthCheck::off;
    });
    return is_any;
}

}  // namespace

void start_timer(apr_pool_t* pconf) noexcept {
    if (!is_needed()) return;
    auto* const get_instance = APR_RETRIEVE_OPTIONAL_FN(ap_watchdog_get_instance);
    auto* const register_callback = APR_RETRIEVE_OPTIONAL_FN(ap_watchdog_register_callback);
    if (get_instance == nullptr || register_callback == nullptr) return;
    ap_watchdog_t* watchdog = nullptr;
    constexpr int kInChild = 0;
    constexpr int kSingleton = 1;
    if (get_instance(&watchdog, "_circuitbreaker_", kInChild, kSingleton, pconf) != APR_SUCCESS) return;
    const apr_status_t status =
        register_callback(watchdog, static_cast<apr_interval_time_t>(kInterval) * 1000, nullptr, on_watchdog);
    runtime.has_timer = status == APR_SUCCESS;
}

void look_at_time(core::Millis interval) noexcept {
    if (!runtime.segment.is_valid()) return;
    for (std::uint32_t i = 0; i < runtime.segment.header->capacity; ++i) {
        if (!runtime.segment.is_ready(i)) continue;
        shm::Slot& slot = runtime.segment.slots[i];
        shm::announce_probe(slot, shm::noted_policy(slot), runtime.process, interval);
    }
    if (runtime.registry == nullptr) return;
    runtime.registry->for_each([](const Breaker& breaker) noexcept {
        shm::Slot* const slot = breaker.slot.load(std::memory_order_acquire);
        if (slot != nullptr) heed_health_check(breaker, *slot);
    });
}

}  // namespace cb::httpd
