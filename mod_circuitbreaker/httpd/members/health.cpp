#include "health.hpp"

#include "httpd/runtime.hpp"
#include "shm/health.hpp"

namespace cb::httpd {
namespace {

/// Does mod_proxy_hcheck check the member? `hcmethod=` alone does not say so: a worker without a balancer may have it,
/// it comes back from a file (BalancerPersist) when mod_proxy_hcheck is gone, and balancer-manager sets it in virtual
/// hosts that mod_proxy_hcheck does not walk through. So a check must be under way, or must not be overdue.
bool is_checked(const Breaker& breaker) noexcept {
    const proxy_worker_shared& worker = *breaker.key;
    if (worker.method == NONE || *breaker.balancer == '\0' || !runtime.has_health_checks) return false;
    constexpr apr_interval_time_t kPatience = apr_time_from_sec(5);
    const apr_time_t ended = __atomic_load_n(&worker.updated, __ATOMIC_RELAXED);
    return ended == 0 || apr_time_now() < ended + 2 * worker.interval + kPatience;
}

/// What mod_proxy_hcheck has written of a member. It sets `updated` to 0, checks, notes a failure in `error_time` and
/// `fcount`, and sets `updated` to the same time. While the member has a flag of an error it notes no failure, but
/// clears the flag when checks pass. (A successful connection of a request clears `error_time`. So in Observe only
/// `fcount` tells of a failure.)
shm::LastCheck last_check(const proxy_worker_shared& worker) noexcept {
    constexpr unsigned kInError = PROXY_WORKER_HC_FAIL | PROXY_WORKER_IN_ERROR;
    const apr_time_t ended = __atomic_load_n(&worker.updated, __ATOMIC_ACQUIRE);
    return {static_cast<core::Millis>(ended / 1000),
            static_cast<std::uint32_t>(__atomic_load_n(&worker.fcount, __ATOMIC_RELAXED)),
            __atomic_load_n(&worker.error_time, __ATOMIC_RELAXED) != ended &&
                (__atomic_load_n(&worker.status, __ATOMIC_RELAXED) & kInError) == 0};
}

}  // namespace

void heed_health_check(const Breaker& breaker, shm::Slot& slot) noexcept {
    const core::HealthCheck wanted = breaker.policy.health_check;
    if (wanted == core::HealthCheck::off || !is_checked(breaker)) return;
    // A child of before a restart knows the checks of then.
    if (slot.epoch.load(std::memory_order_relaxed) > runtime.epoch) return;
    const std::uint64_t word = slot.word.load(std::memory_order_acquire);
    if (core::state_of(word) != core::State::open) return;
    const shm::LastCheck check = last_check(*breaker.key);
    if (!shm::note_check(slot, word, check, now()) || !check.has_passed || !core::ends_open_time(wanted)) return;
    // Not before `min`.
    if (core::open_remaining(core::unpack(word), now()) == 0) return;
    if (!shm::may_probe_early(slot, breaker.policy, runtime.process)) return;
    if (!shm::end_open_time(slot, breaker.policy, runtime.process, word)) return;
    ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, runtime.server,
                 "circuit breaker: member %s%s%s: may be probed now: it has passed a health check since it opened",
                 breaker.name, *breaker.balancer != '\0' ? " of " : "", breaker.balancer);
}

bool is_awaiting_check(const Breaker& breaker, const shm::Slot& slot) noexcept {
    if (!core::holds_probes(breaker.policy.health_check) || !is_checked(breaker)) return false;
    const std::uint64_t word = slot.word.load(std::memory_order_acquire);
    return core::state_of(word) == core::State::open && !shm::has_passed_check(slot, word);
}

void doubt_check_under_way(const Breaker& breaker, shm::Slot& slot) noexcept {
    if (__atomic_load_n(&breaker.key->updated, __ATOMIC_ACQUIRE) == 0) shm::doubt_checks(slot);
}

core::Millis time_to_check(const Breaker& breaker) noexcept {
    const proxy_worker_shared& worker = *breaker.key;
    const apr_time_t ended = __atomic_load_n(&worker.updated, __ATOMIC_RELAXED);
    const apr_time_t left = ended + worker.interval - apr_time_now();
    return ended != 0 && left > 0 ? static_cast<core::Millis>(left / 1000) : 0;
}

}  // namespace cb::httpd
