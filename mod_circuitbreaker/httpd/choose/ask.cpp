#include "ask.hpp"

#include <algorithm>
#include <cstring>

#include "httpd/members/health.hpp"
#include "httpd/request/environment.hpp"
#include "httpd/runtime.hpp"
#include "ramp.hpp"
#include "read_ahead.hpp"
#include "session.hpp"
#include "shm/early.hpp"
#include "shm/refusal.hpp"

namespace cb::httpd {
namespace {

/// Is the member marked as in error, in a way that mod_proxy would not clear when it looks (ap_proxy_retry_worker)? A
/// member with a breaker has IGNORE_ERRORS, which clears the mark; for others it lasts until `retry=` has passed.
bool is_in_error(const proxy_worker_shared& worker) noexcept {
    return (worker.status & PROXY_WORKER_IN_ERROR) != 0 && (worker.status & PROXY_WORKER_IGNORE_ERRORS) == 0 &&
           apr_time_now() <= worker.error_time + worker.retry;
}

bool is_bound_to(const RequestState& state, const proxy_worker_shared& worker) noexcept {
    const Session session = find_session(state.r, *state.balancer, state.balancer_url);
    return is_bound(session, runtime.registry->members(*state.balancer), worker);
}

bool lets_through(RequestState& state, const proxy_worker& worker) noexcept {
    const Breaker* const breaker = runtime.registry->find(worker);
    if (breaker == nullptr || !breaker->is_enforcing()) return true;
    shm::Slot& slot = *breaker->slot.load(std::memory_order_acquire);
    const core::Word word = core::unpack(slot.word.load(std::memory_order_seq_cst));
    switch (word.state) {
        case core::State::closed:
        case core::State::forced_closed:
            return true;
        case core::State::recovering:
            return shm::peek(slot, breaker->policy, runtime.process, ramp_ticket(state, *breaker, slot)) !=
                   core::Decision::refuse;
        case core::State::open:
        case core::State::half_open:
            return core::probe_room(word, breaker->policy, now()) > 0 && may_probe(state, *breaker, slot);
        case core::State::forced_open:
            break;
    }
    return false;
}

}  // namespace

bool has_member_of_its_own(const RequestState& state) noexcept {
    if (state.balancer->s->sticky_force == 0) return false;
    const Session session = find_session(state.r, *state.balancer, state.balancer_url);
    if (session.value == nullptr) return false;
    const Members members = runtime.registry->members(*state.balancer);
    return std::any_of(members.begin(), members.end(), [&](const proxy_worker* worker) noexcept {
        return std::strcmp(worker->s->route, session.route) == 0;
    });
}

bool is_barred_for(const RequestState& state, const proxy_worker_shared& worker) noexcept {
    if (is_barred(worker)) return true;
    return (worker.status & PROXY_WORKER_DRAIN) != 0 && !is_bound_to(state, worker);
}

bool is_usable(const RequestState& state, const proxy_worker& worker) noexcept {
    if (is_in_error(*worker.s) || is_barred_for(state, *worker.s)) return false;
    return !has_member_of_its_own(state) || is_bound_to(state, *worker.s);
}

bool may_probe(const RequestState& state, const Breaker& breaker, const shm::Slot& slot) noexcept {
    request_rec* const r = state.r;
    if (is_awaiting_check(breaker, slot) || !may_carry_probe(state, breaker, slot)) return false;
    const Settings* const said = said_for_request(r, Directive::probe_if);
    const ap_expr_info_t* const expr = said != nullptr ? said->probe_if : breaker.probe_if;
    if (expr == nullptr) return true;
    const core::State present = core::state_of(slot.word.load(std::memory_order_acquire));
    if (present != core::State::open && present != core::State::half_open) return false;
    const ForExpressions environment(state);
    const char* error = nullptr;
    return ap_expr_exec(r, expr, &error) > 0;
}

shm::Refusal refusal_of(RequestState& state, Breaker& breaker, shm::Slot& slot) noexcept {
    if (!breaker.is_enforcing()) return shm::Refusal::none;  // Observe: admit() counts what would have been refused
    shm::RampTicket* const ticket = ramp_ticket(state, breaker, slot);
    if (ticket == nullptr) return shm::Refusal::none;  // closed: the usual case
    heed_health_check(breaker, slot);
    const core::Decision decision = shm::peek(slot, breaker.policy, runtime.process, ticket);
    const bool is_refused =
        decision == core::Decision::refuse || (decision == core::Decision::probe && !may_probe(state, breaker, slot));
    if (!is_refused) return shm::Refusal::none;
    return shm::refusal_in(core::state_of(slot.word.load(std::memory_order_relaxed)));
}

bool can_be_last_resort(const RequestState& state, const proxy_worker& worker) noexcept {
    if (runtime.registry->members(*state.balancer).size() < 2 || state.balancer->s->forcerecovery == 0) return false;
    return is_usable(state, worker);
}

bool is_last_resort(RequestState& state, const proxy_worker& worker) noexcept {
    Breaker* const breaker = runtime.registry->find(worker);
    if (breaker == nullptr || !breaker->is_enforcing()) return false;
    shm::Slot& slot = *breaker->slot.load(std::memory_order_acquire);
    return shm::may_probe_early(slot, breaker->policy, runtime.process) && can_be_last_resort(state, worker) &&
           may_probe(state, *breaker, slot);
}

bool is_another_allowed(RequestState& state) noexcept {
    bool has_last_resort = false;
    for (const proxy_worker* const worker : runtime.registry->members(*state.balancer)) {
        if (worker == state.call.target.worker) continue;
        if ((worker->s->status & PROXY_WORKER_DRAIN) != 0) continue;  // gets its own sessions only
        const auto* const end = state.tried + state.tried_count;
        if (std::find(state.tried, state.tried + state.tried_count, worker) != end) continue;
        if (is_usable(state, *worker) && lets_through(state, *worker)) return true;
        has_last_resort = has_last_resort || is_last_resort(state, *worker);
    }
    return has_last_resort;
}

}  // namespace cb::httpd
