#include "select.hpp"

#include <algorithm>

#include "ask.hpp"
#include "fallback.hpp"
#include "httpd/call/call.hpp"
#include "httpd/call/probe_marks.hpp"
#include "httpd/runtime.hpp"
#include "mask.hpp"
#include "ramp.hpp"
#include "read_ahead.hpp"
#include "refuse.hpp"

namespace cb::httpd {
namespace {

/// The least time for the upload of a probe that began before its body was here, whatever the open time.
constexpr core::Millis kLeastTimeForUpload = 5 * core::kMillisPerSecond;

/// The breaker of a call to that worker, if it has one. A request may name a unix domain socket for a worker that has
/// none of its own; for a balancer's members it can't, as mod_proxy_balancer makes the URL anew.
Breaker* find_breaker(const RequestState& state, const proxy_worker& worker) noexcept {
    const char* const socket = state.balancer == nullptr ? apr_table_get(state.r->notes, "uds_path") : nullptr;
    return runtime.registry->find(worker, socket);
}

/// Takes the permit for a call to `worker`. Refusal::none if it may be made (with or without a breaker).
/// `is_last_resort`: there is no other member.
shm::Refusal take_permit(RequestState& state, proxy_worker& worker, bool is_last_resort) noexcept {
    state.call.target.breaker = nullptr;  // that of the previous call, if there was one
    unmark_request(state);
    if (state.body != nullptr) {
        state.body->probe = nullptr;
        state.body->due_at = 0;
    }
    Breaker* const breaker = find_breaker(state, worker);
    if (breaker == nullptr) return shm::Refusal::none;
    shm::Slot& slot = *breaker->slot.load(std::memory_order_acquire);
    const core::Millis span = lease_span(state.r, *breaker, worker);
    const shm::Admission admission =
        shm::admit(slot, breaker->policy, runtime.process, in_flight(slot), may_probe(state, *breaker, slot), span,
                   ramp_ticket(state, *breaker, slot), is_last_resort);
    if (admission.refusal != shm::Refusal::none) {
        if (breaker->is_enforcing()) return admission.refusal;
        count_refusal(*breaker, slot, admission.refusal);
    }
    begin_call(state, *breaker, slot, worker, admission.permit);
    const bool is_probe = admission.permit.kind == shm::PermitKind::probe;
    // In Observe nothing changes for a client.
    if (state.body != nullptr && is_probe && breaker->is_enforcing()) {
        state.body->probe = &state.call.target.permit;
        if (!state.body->is_whole()) {
            state.body->due_at =
                admission.permit.taken_at + std::max(breaker->policy.open_time.base, kLeastTimeForUpload);
        }
    }
    mark_request(state, *breaker, slot, is_probe);
    return shm::Refusal::none;
}

/// Waits until as much of the request's body is here as a permit for that member needs. OK, or the status of a request
/// error.
int wait_for_body(const RequestState& state, const proxy_worker& worker) noexcept {
    const Breaker* const breaker = state.body != nullptr ? find_breaker(state, worker) : nullptr;
    return breaker != nullptr ? read_ahead(state, *breaker, *breaker->slot.load(std::memory_order_acquire)) : OK;
}

/// Room for every member of the balancer once.
proxy_worker** list_of_members(const RequestState& state) noexcept {
    // Members may be added while we choose; there are never more than this.
    const auto most = static_cast<std::size_t>(state.balancer->max_workers);
    const std::size_t room = most + runtime.registry->members(*state.balancer).size() + 1;
    return static_cast<proxy_worker**>(apr_palloc(state.r->pool, room * sizeof(proxy_worker*)));
}

/// Adds a member to a list of them, once.
void add(proxy_worker** members, int& count, proxy_worker* worker) noexcept {
    if (std::find(members, members + count, worker) == members + count) members[count++] = worker;
}

void note_tried(RequestState& state, proxy_worker* worker) noexcept {
    if (state.tried == nullptr) state.tried = list_of_members(state);
    add(state.tried, state.tried_count, worker);
    state.has_gone_on = true;
}

/// `worker` has failed the request, and mod_proxy chooses again.
void note_failed(RequestState& state, proxy_worker* worker) noexcept {
    if (state.failed_of != state.balancer) {
        state.failed = list_of_members(state);
        state.failed_of = state.balancer;
        state.failed_count = 0;
    }
    add(state.failed, state.failed_count, worker);
}

/// No member is left. If the request was to go on after a call that failed, that call's answer stands: no refusal.
int give_up(RequestState& state, const Mask& mask) noexcept {
    if (state.has_gone_on) return HTTP_SERVICE_UNAVAILABLE;
    note_refusals(state, mask);
    return refuse(state);
}

/// mod_proxy's own choice, through the hook that we are called by.
int run_choice(RequestState& state, proxy_worker** worker, proxy_balancer** balancer, char** url) noexcept {
    state.is_nested = true;
    const int rv = proxy.run_pre_request(worker, balancer, state.r, state.conf, url);
    state.is_nested = false;
    return rv;
}

/// No member is left to ask.
constexpr int kNobody = -100;

/// Lets mod_proxy choose until a permit can be taken. Each round has one member less, or is the last, so this ends.
/// With `last_resort` it goes on with the open members, one after the other.
int choose_among(RequestState& state, Mask& mask, bool last_resort, proxy_worker** worker, proxy_balancer** balancer,
                 char** url) noexcept {
    for (;;) {
        *worker = nullptr;
        if (mask.has_nobody_left(state) && !(last_resort && mask.show_last_resort(state))) return kNobody;
        proxy_balancer view = *state.balancer;
        *balancer = mask.is_empty() ? state.balancer : mask.apply(view);
        const int rv = run_choice(state, worker, balancer, url);
        *balancer = state.balancer;
        if (rv != OK || *worker == nullptr) {
            if (rv != HTTP_SERVICE_UNAVAILABLE || mask.is_empty()) return rv;
            // nofailover: the session's own member is out, and no other member may have the request.
            if (mask.last_resort() == nullptr) return give_up(state, mask);
            mask.hide_last_resort();
            continue;
        }
        if (const int status = wait_for_body(state, **worker); status != OK) {
            *worker = nullptr;
            return status;
        }
        const shm::Refusal refusal = take_permit(state, **worker, mask.last_resort() == *worker);
        if (refusal == shm::Refusal::none) return OK;
        // Another process was faster. Choose again without this member, from the original URL.
        if (!mask.hide(**worker, refusal)) {  // the mask does not know it: it was added meanwhile
            *worker = nullptr;
            return give_up(state, mask);
        }
        *url = apr_pstrdup(state.r->pool, state.balancer_url);
    }
}

/// Chooses among the members of the fallback. If the fallback refuses too, among the possible last resorts of both.
int choose_with_fallback(RequestState& state, Mask& own, const BeforeFallback& before, proxy_worker** worker,
                         proxy_balancer** balancer, char** url) noexcept {
    sync_members(*state.balancer, state.r->server, state.conf);
    Mask mask(state);
    int rv = choose_among(state, mask, false, worker, balancer, url);
    if (rv == kNobody) {
        leave_fallback(state, before, url);
        rv = choose_among(state, own, true, worker, balancer, url);
        if (rv == kNobody) note_refusals(state, own);
    }
    if (rv == kNobody && take_fallback_of_balancer(state, url)) {
        rv = choose_among(state, mask, true, worker, balancer, url);
    }
    count_refusals(mask);
    return rv == kNobody ? give_up(state, mask) : rv;
}

int choose(RequestState& state, Mask& mask, proxy_worker** worker, proxy_balancer** balancer, char** url) noexcept {
    int rv = choose_among(state, mask, false, worker, balancer, url);
    if (rv == kNobody) {
        const BeforeFallback before(state);
        if (!has_member_of_its_own(state) && take_fallback_of_balancer(state, url)) {
            rv = choose_with_fallback(state, mask, before, worker, balancer, url);
        } else {
            rv = choose_among(state, mask, true, worker, balancer, url);
            if (rv == kNobody) rv = give_up(state, mask);
        }
    }
    count_refusals(mask);
    return rv;
}

/// Chooses among the members of state.balancer, as they are now.
int choose_anew(RequestState& state, proxy_worker** worker, proxy_balancer** balancer, char** url) noexcept {
    sync_members(*state.balancer, state.r->server, state.conf);
    Mask mask(state);
    return choose(state, mask, worker, balancer, url);
}

bool names_balancer(const char* url) noexcept {
    return ap_cstr_casecmpn(url, BALANCER_PREFIX, sizeof(BALANCER_PREFIX) - 1) == 0;
}

/// A worker without a balancer: mod_proxy looks it up after the hooks, so we do it here.
int admit_plain_worker(RequestState& state, proxy_worker** worker, proxy_balancer** balancer, char** url) noexcept {
    const int rv = run_choice(state, worker, balancer, url);
    if (rv != DECLINED || *balancer != nullptr) return rv;
    *worker = proxy.get_worker_ex(state.r->pool, nullptr, state.conf, *url, AP_PROXY_WORKER_NO_UDS);
    if (*worker == nullptr) return DECLINED;  // the generic worker, or none: mod_proxy's business
    Breaker* const breaker = find_breaker(state, **worker);
    if (breaker == nullptr) return OK;
    shm::Slot& slot = *breaker->slot.load(std::memory_order_acquire);
    shm::Refusal refusal = refusal_of(state, *breaker, slot);
    if (refusal == shm::Refusal::none) {
        if (const int status = wait_for_body(state, **worker); status != OK) return status;
        refusal = take_permit(state, **worker, false);
        if (refusal == shm::Refusal::none) return OK;
    }
    count_refusal(*breaker, slot, refusal);
    *worker = nullptr;
    if (breaker->is_enforcing() && take_fallback_of_worker(state, *breaker, url)) {
        note_refusal(state, *breaker, slot, refusal);
        return choose_anew(state, worker, balancer, url);
    }
    note_refusal(state, *breaker, slot, refusal);
    return refuse(state);
}

}  // namespace

int take_member(RequestState& state, proxy_worker** worker, proxy_balancer** balancer, char** url) noexcept {
    request_rec* const r = state.r;
    state.is_fallback = false;
    state.refused = {};
    if (state.body == nullptr) state.body = watch_body(r);
    proxy_balancer* chosen = *balancer;
    if (chosen == nullptr && names_balancer(*url)) {
        chosen = proxy.get_balancer(r->pool, state.conf, *url, 1);
        if (chosen == nullptr) return DECLINED;
    }
    if (chosen == nullptr) {
        state.balancer = nullptr;
        return admit_plain_worker(state, worker, balancer, url);
    }
    sync_members(*chosen, r->server, state.conf);
    state.balancer = chosen;
    state.balancer_url = *url;
    if (*balancer != nullptr && *worker != nullptr) note_failed(state, *worker);
    Mask mask(state);
    if (!mask.has_breakers()) return DECLINED;
    return choose(state, mask, worker, balancer, url);
}

int take_another(RequestState& state, proxy_worker& failed, proxy_worker** worker, char** url) noexcept {
    note_tried(state, &failed);
    state.refused = {};
    *url = apr_pstrdup(state.r->pool, state.balancer_url);
    proxy_balancer* balancer = state.balancer;
    return choose_anew(state, worker, &balancer, url);
}

}  // namespace cb::httpd
