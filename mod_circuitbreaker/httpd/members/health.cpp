#include "health.hpp"

#include "httpd/runtime.hpp"
#include "shm/health.hpp"

namespace cb::httpd {
namespace {

/// What mod_proxy_hcheck has written of a member. It sets `updated` to 0, checks, notes a failure in `error_time`, and
/// sets `updated` to the same time. While the member has a flag of an error it notes no failure, but clears the flag
/// when checks pass. Its counters say nothing of a member that passes all the time.
shm::LastCheck last_check(const proxy_worker_shared& worker) noexcept {
    constexpr unsigned kInError = PROXY_WORKER_HC_FAIL | PROXY_WORKER_IN_ERROR;
    const apr_time_t ended = __atomic_load_n(&worker.updated, __ATOMIC_ACQUIRE);
    return {static_cast<core::Millis>(ended / 1000),
            __atomic_load_n(&worker.error_time, __ATOMIC_RELAXED) < ended &&
                (__atomic_load_n(&worker.status, __ATOMIC_RELAXED) & kInError) == 0};
}

}  // namespace

void heed_health_check(const Breaker& breaker, shm::Slot& slot) noexcept {
    const core::HealthCheck wanted = breaker.policy.health_check;
    const proxy_worker_shared& worker = *breaker.key;
    if (wanted == core::HealthCheck::off || worker.method == NONE) return;
    const std::uint64_t word = slot.word.load(std::memory_order_acquire);
    if (core::state_of(word) != core::State::open) return;
    const shm::LastCheck check = last_check(worker);
    if (!shm::note_check(slot, word, check, now()) || !check.has_passed || !core::ends_open_time(wanted)) return;
    // Not before `min`.
    if (core::open_remaining(core::unpack(word), now()) == 0) return;
    if (!shm::may_probe_early(slot, breaker.policy, runtime.process)) return;
    if (!shm::operate(slot, breaker.policy, runtime.process, core::EventKind::end_open_time)) return;
    ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, runtime.server,
                 "circuit breaker: member %s%s%s: may be probed now: it has passed a health check since it opened",
                 breaker.name, *breaker.balancer != '\0' ? " of " : "", breaker.balancer);
}

bool is_awaiting_check(const Breaker& breaker, const shm::Slot& slot) noexcept {
    if (!core::holds_probes(breaker.policy.health_check) || breaker.key->method == NONE) return false;
    const std::uint64_t word = slot.word.load(std::memory_order_acquire);
    return core::state_of(word) == core::State::open && !shm::has_passed_check(slot, word);
}

core::Millis time_to_check(const Breaker& breaker) noexcept {
    const proxy_worker_shared& worker = *breaker.key;
    const apr_time_t ended = __atomic_load_n(&worker.updated, __ATOMIC_RELAXED);
    const apr_time_t left = ended + worker.interval - apr_time_now();
    return ended != 0 && left > 0 ? static_cast<core::Millis>(left / 1000) : 0;
}

}  // namespace cb::httpd
