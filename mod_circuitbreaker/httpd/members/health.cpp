#include "health.hpp"

#include <algorithm>

#include "httpd/runtime.hpp"
#include "names.hpp"
#include "shm/health.hpp"

namespace cb::httpd {
namespace {

/// Can mod_proxy_hcheck check the member? It walks through balancers only, and takes `hcmethod=` of other workers
/// without a word.
bool may_be_checked(const Breaker& breaker) noexcept {
    return breaker.key->method != NONE && *breaker.balancer != '\0' && runtime.has_health_checks;
}

bool is_check_under_way(const Breaker& breaker) noexcept {
    return may_be_checked(breaker) && __atomic_load_n(&breaker.key->updated, __ATOMIC_RELAXED) == 0;
}

/// Does it? `hcmethod=` alone does not say so: balancer-manager sets it in virtual hosts that mod_proxy_hcheck does not
/// walk through, and mod_proxy_hcheck makes no checks until a wall clock that was set back has caught up. (One check
/// after the other, a check that hangs holds up all others: ProxyHCTPsize 0, or a child that ends.)
bool is_checked(const Breaker& breaker, const shm::Slot& slot, std::uint64_t word) noexcept {
    if (!may_be_checked(breaker)) return false;
    constexpr core::Millis kPatience = 5 * core::kMillisPerSecond;
    const auto interval = static_cast<core::Millis>(breaker.key->interval / 1000);
    if (shm::time_since_check(slot, word, now()) < 2 * interval + kPatience) return true;
    bool is_any_under_way = false;
    runtime.registry->for_each(
        [&](const Breaker& each) noexcept { is_any_under_way = is_any_under_way || is_check_under_way(each); });
    return is_any_under_way;
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
    if (wanted == core::HealthCheck::off || !may_be_checked(breaker)) return;
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
                 "circuit breaker: member %s: may be probed now: it has passed a health check since it opened",
                 LogName(breaker.identity).text);
}

bool is_awaiting_check(const Breaker& breaker, const shm::Slot& slot) noexcept {
    if (!core::holds_probes(breaker.policy.health_check)) return false;
    const std::uint64_t word = slot.word.load(std::memory_order_acquire);
    return core::state_of(word) == core::State::open && !shm::has_passed_check(slot, word) &&
           is_checked(breaker, slot, word);
}

void doubt_check_under_way(const Breaker& breaker, shm::Slot& slot) noexcept {
    if (__atomic_load_n(&breaker.key->updated, __ATOMIC_ACQUIRE) == 0) shm::doubt_checks(slot);
}

core::Millis time_to_check(const Breaker& breaker) noexcept {
    const proxy_worker_shared& worker = *breaker.key;
    const apr_time_t ended = __atomic_load_n(&worker.updated, __ATOMIC_RELAXED);
    const apr_time_t left = ended + worker.interval - apr_time_now();
    if (ended == 0 || left <= 0) return 0;
    return static_cast<core::Millis>(std::min(left, worker.interval) / 1000);  // the wall clock may have been set back
}

}  // namespace cb::httpd
