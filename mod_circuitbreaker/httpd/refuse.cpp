#include "refuse.hpp"

#include <algorithm>

#include "environment.hpp"
#include "health.hpp"
#include "probe_marks.hpp"
#include "ramp.hpp"
#include "runtime.hpp"

namespace cb::httpd {
namespace {

constexpr core::Millis kNever = ~core::Millis{0};

/// Time until the member may be probed, or take a request again; kNever while an operator holds it open.
core::Millis time_to_probe(const shm::Slot& slot) noexcept {
    const core::Word word = core::unpack(slot.word.load(std::memory_order_relaxed));
    if (word.state == core::State::forced_open) return kNever;
    return word.state == core::State::open ? core::open_remaining(word, runtime.process.clock.now()) : 0;
}

int refuse_with(request_rec* r, shm::Refusal refusal, core::Millis wait, bool with_retry_after) noexcept {
    RequestState& state = *request_state(r, true);
    tell_refusal(state, name(refusal));
    if (with_retry_after && wait != kNever) {
        const core::Millis seconds = std::max<core::Millis>((wait + 999) / 1000, 1);
        state.retry_after = apr_psprintf(r->pool, "%" APR_UINT64_T_FMT, seconds);
        apr_table_setn(r->err_headers_out, "Retry-After", state.retry_after);
    }
    return HTTP_SERVICE_UNAVAILABLE;
}

}  // namespace

void count_refusal(const Breaker& breaker, shm::Slot& slot, shm::Refusal refusal) noexcept {
    auto& counters = breaker.is_enforcing() ? slot.totals.refused : slot.totals.would_refuse;
    counters[static_cast<std::size_t>(refusal)].fetch_add(1, std::memory_order_relaxed);
}

shm::Refusal refusal_of(RequestState& state, Breaker& breaker, shm::Slot& slot) noexcept {
    if (!breaker.is_enforcing()) return shm::Refusal::none;  // Observe: admit() asks, and counts what would have been
    shm::RampTicket* const ticket = ramp_ticket(state, breaker, slot);
    if (ticket == nullptr) return shm::Refusal::none;  // closed: the usual case
    core::Decision decision = shm::peek(slot, breaker.policy, runtime.process, ticket);
    if (decision == core::Decision::refuse && breaker.policy.early_probe) {
        heed_health_check(breaker, slot);
        decision = shm::peek(slot, breaker.policy, runtime.process, ticket);
    }
    const bool is_refused =
        decision == core::Decision::refuse || (decision == core::Decision::probe && !may_probe(state, breaker, slot));
    if (!is_refused) return shm::Refusal::none;
    return shm::refusal_in(core::state_of(slot.word.load(std::memory_order_relaxed)));
}

int refuse(request_rec* r, const Mask& mask) noexcept {
    shm::Refusal refusal = shm::Refusal::open;
    core::Millis earliest = kNever;
    bool is_first = true;
    bool with_retry_after = true;
    for (int i = 0; i < mask.count(); ++i) {
        if (mask.refusal(i) == shm::Refusal::none) continue;
        Breaker* const breaker = runtime.registry->find(*mask.member(i));
        if (breaker == nullptr) continue;
        const core::Millis wait = time_to_probe(*breaker->slot.load(std::memory_order_acquire));
        if (!is_first && wait >= earliest) continue;
        is_first = false;
        earliest = wait;
        refusal = mask.refusal(i);
        with_retry_after = wants_retry_after(r, *breaker);
    }
    if (is_first) return HTTP_SERVICE_UNAVAILABLE;  // only members that were tried before: no refusal of ours
    return refuse_with(r, refusal, earliest, with_retry_after);
}

int refuse_member(request_rec* r, const Breaker& breaker, const shm::Slot& slot, shm::Refusal refusal) noexcept {
    return refuse_with(r, refusal, time_to_probe(slot), wants_retry_after(r, breaker));
}

const char* name(shm::Refusal refusal) noexcept {
    switch (refusal) {
        case shm::Refusal::none:
            return "none";
        case shm::Refusal::open:
            return "open";
        case shm::Refusal::half_open:
            return "half-open";
        case shm::Refusal::ramp:
            return "ramp";
        case shm::Refusal::forced_open:
            return "forced-open";
        case shm::Refusal::max_concurrent:
            return "max-concurrent";
    }
    return "unknown";
}

}  // namespace cb::httpd
