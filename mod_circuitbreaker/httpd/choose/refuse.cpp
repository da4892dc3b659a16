#include "refuse.hpp"

#include <algorithm>

#include "ask.hpp"
#include "httpd/members/health.hpp"
#include "httpd/request/environment.hpp"
#include "httpd/runtime.hpp"
#include "shm/refusal.hpp"

namespace cb::httpd {
namespace {

constexpr core::Millis kNever = ~core::Millis{0};

/// `wait`: until the member may be probed, or take a request again; kNever while an operator holds it open.
void note(RequestState& state, const Breaker& breaker, shm::Refusal refusal, core::Millis wait) noexcept {
    Refused& refused = state.refused;
    if (refused.why != shm::Refusal::none && wait >= refused.wait) return;
    refused = {refusal, wait, wants_retry_after(state.r, breaker)};
}

core::Millis wait_for(shm::Slot& slot, const Breaker& breaker, bool early) noexcept {
    const core::State state = core::state_of(slot.word.load(std::memory_order_relaxed));
    if (state == core::State::forced_open) return kNever;
    if (!is_awaiting_check(breaker, slot)) {
        return shm::time_to_probe(slot, breaker.policy, runtime.process, early);
    }
    early = early || core::ends_open_time(breaker.policy.health_check);  // the check ends the open time
    return std::max(shm::time_to_probe(slot, breaker.policy, runtime.process, early), time_to_check(breaker));
}

}  // namespace

void count_refusal(const Breaker& breaker, shm::Slot& slot, shm::Refusal refusal) noexcept {
    auto& counters = breaker.is_enforcing() ? slot.totals.refused : slot.totals.would_refuse;
    counters[static_cast<std::size_t>(refusal)].fetch_add(1, std::memory_order_relaxed);
}

void count_refusals(const Mask& mask) noexcept {
    for (std::size_t i = 0; i < mask.count(); ++i) {
        const shm::Refusal why = mask.refusal(i);
        Breaker* const breaker = why != shm::Refusal::none ? runtime.registry->find(mask.member(i)) : nullptr;
        if (breaker != nullptr) count_refusal(*breaker, *breaker->slot.load(std::memory_order_acquire), why);
    }
}

void note_refusals(RequestState& state, const Mask& mask) noexcept {
    for (std::size_t i = 0; i < mask.count(); ++i) {
        const shm::Refusal refusal = mask.refusal(i);
        if (refusal == shm::Refusal::none) continue;
        Breaker* const breaker = runtime.registry->find(mask.member(i));
        if (breaker == nullptr) continue;
        shm::Slot& slot = *breaker->slot.load(std::memory_order_acquire);
        note(state, *breaker, refusal, wait_for(slot, *breaker, can_be_last_resort(state, mask.member(i))));
    }
}

void note_refusal(RequestState& state, const Breaker& breaker, shm::Slot& slot, shm::Refusal refusal) noexcept {
    note(state, breaker, refusal, wait_for(slot, breaker, false));
}

int refuse(RequestState& state) noexcept {
    const Refused& refused = state.refused;
    // There is no reason if all members were tried before, or if a fallback has none.
    if (refused.why == shm::Refusal::none) return HTTP_SERVICE_UNAVAILABLE;
    tell_refusal(state, name(refused.why));
    if (refused.with_retry_after && refused.wait != kNever) {
        const core::Millis seconds = std::max<core::Millis>((refused.wait + 999) / 1000, 1);
        state.retry_after = apr_psprintf(state.r->pool, "%" APR_UINT64_T_FMT, seconds);
        apr_table_setn(state.r->err_headers_out, "Retry-After", state.retry_after);
    }
    return HTTP_SERVICE_UNAVAILABLE;
}

}  // namespace cb::httpd
