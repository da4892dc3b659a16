#include "health.hpp"

#include "httpd/runtime.hpp"

namespace cb::httpd {
namespace {

/// What mod_proxy_hcheck has written of a member. It sets `updated` to 0, checks, notes a failure in `error_time`, and
/// sets `updated` to the same time. Its flag and its counters say nothing of a member that passes all the time.
struct LastCheck {
    apr_time_t ended;  // 0: one is under way
    bool has_passed;

    explicit LastCheck(const proxy_worker_shared& worker) noexcept
        : ended(__atomic_load_n(&worker.updated, __ATOMIC_ACQUIRE)),
          has_passed(__atomic_load_n(&worker.error_time, __ATOMIC_RELAXED) < ended &&
                     (__atomic_load_n(&worker.status, __ATOMIC_RELAXED) & PROXY_WORKER_HC_FAIL) == 0) {}
};

constexpr std::uint32_t kTimeBits = 64 - core::kGenerationBits;  // ms since 1970, in 44 bits

/// generation:20 | end of the last check:44, ms; 0: one was under way.
std::uint64_t note_of(std::uint32_t generation, const LastCheck& check) noexcept {
    const auto milliseconds = static_cast<std::uint64_t>(check.ended / 1000);
    return std::uint64_t{generation} << kTimeBits | (milliseconds & ((std::uint64_t{1} << kTimeBits) - 1));
}

}  // namespace

void heed_health_check(Breaker& breaker, shm::Slot& slot) noexcept {
    if (!breaker.policy.early_probe) return;
    const proxy_worker_shared& worker = *breaker.key;
    if (worker.method == NONE) return;
    const core::Word word = core::unpack(slot.word.load(std::memory_order_acquire));
    if (word.state != core::State::open || core::open_remaining(word, now()) == 0) return;
    const LastCheck check(worker);
    // Relaxed: one word, compared with nothing else.
    std::uint64_t before = breaker.last_check.load(std::memory_order_relaxed);
    const bool is_first_look = before >> kTimeBits != word.generation;
    const bool was_under_way = before << core::kGenerationBits == 0;  // at the first look: it may have begun before
    const std::uint64_t note = note_of(word.generation, check);
    if (!is_first_look && (check.ended == 0 || note == before)) return;
    // Not before `min`; the check is looked at again then.
    const bool is_too_soon = !shm::may_probe_early(slot, breaker.policy, runtime.process);
    if (is_too_soon && !is_first_look && !was_under_way && check.has_passed) return;
    if (!breaker.last_check.compare_exchange_strong(before, note, std::memory_order_relaxed)) return;
    if (is_first_look || was_under_way || !check.has_passed) return;
    if (!shm::operate(slot, breaker.policy, runtime.process, core::EventKind::end_open_time)) return;
    ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, runtime.server,
                 "circuit breaker: member %s%s%s: may be probed now: it has passed a health check since it opened",
                 breaker.name, *breaker.balancer != '\0' ? " of " : "", breaker.balancer);
}

}  // namespace cb::httpd
