#include "failover.hpp"

#include <algorithm>

#include "httpd/call/client_doing.hpp"
#include "httpd/call/probe_marks.hpp"
#include "httpd/choose/mask.hpp"
#include "httpd/choose/ramp.hpp"
#include "httpd/choose/select.hpp"
#include "httpd/request/environment.hpp"
#include "httpd/request/request_body.hpp"
#include "httpd/runtime.hpp"
#include "shm/retries.hpp"

namespace cb::httpd {
namespace {

constexpr core::Millis kBudgetSpan = 10 * core::kMillisPerSecond;  // retries of the last so much count

core::Millis now() noexcept {
    return runtime.process.clock.now();
}

const core::Failover& wanted(const RequestState& state) noexcept {
    return policy_for(state.r, *state.call.breaker, Directive::failover).failover;
}

/// RFC 9110 9.2.2.
bool is_idempotent(const request_rec* r) noexcept {
    switch (r->method_number) {
        case M_GET:  // HEAD too
        case M_OPTIONS:
        case M_TRACE:
        case M_PUT:
        case M_DELETE:
            return true;
        default:
            return false;
    }
}

/// FCGI with ProxyErrorOverride sends the error page itself, past every filter.
bool sends_error_page_itself(const RequestState& state) noexcept {
    return proxy_dir_config(state.r).error_override != 0 && strcmp(state.call.worker->s->scheme, "fcgi") == 0;
}

bool is_at_start(const request_rec* r) noexcept {
    return r->sent_bodyct == 0 && r->eos_sent == 0 && r->bytes_sent == 0;
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

/// A look only: no permit is taken, and a ramp is asked as it will be again, once for each member.
bool is_another_allowed(RequestState& state) noexcept {
    bool has_last_resort = false;
    for (const proxy_worker* const worker : runtime.registry->members(*state.balancer)) {
        if (worker == state.call.worker) continue;
        if ((worker->s->status & PROXY_WORKER_DRAIN) != 0) continue;  // gets its own sessions only
        const bool is_tried =
            std::find(state.tried, state.tried + state.tried_count, worker) != state.tried + state.tried_count;
        if (is_tried) continue;
        if (is_usable(state, *worker) && lets_through(state, *worker)) return true;
        has_last_resort = has_last_resort || is_last_resort(state, *worker);
    }
    return has_last_resort;
}

/// With nofailover a session stays where it is bound.
bool is_bound(const RequestState& state) noexcept {
    return state.balancer->s->sticky_force != 0 && apr_table_get(state.r->notes, "session-route") != nullptr;
}

bool may_call_again(RequestState& state) noexcept {
    const Failover& failover = state.failover;
    if (failover.before == nullptr || state.call.has_interim || state.r->connection->aborted) return false;
    if (is_request_bad(state)) return false;
    if (failover.keeps_body && !is_body_kept(state)) return false;  // it was longer than that
    const core::Failover& policy = wanted(state);
    const core::Millis limit = policy.timeout > 0 ? policy.timeout : member_timeout(state.r, *failover.first);
    return now() - failover.began_at < limit && is_another_allowed(state);
}

bool take_retry(RequestState& state) noexcept {
    const Members members = runtime.registry->members(*state.balancer);
    const auto count = static_cast<std::uint32_t>(members.size());
    auto** const slots = static_cast<shm::Slot**>(apr_pcalloc(state.r->pool, count * sizeof(shm::Slot*)));
    std::uint64_t calls = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        Breaker* const breaker = runtime.registry->find(*members[i]);
        if (breaker == nullptr) continue;
        slots[i] = breaker->slot.load(std::memory_order_acquire);
        calls += shm::sums_now(*slots[i], breaker->policy, runtime.process).calls;
    }
    const core::Millis window = state.call.breaker->policy.window.span;  // 0: the last so many calls
    const core::Millis span = window > 0 ? std::min(window, kBudgetSpan) : kBudgetSpan;
    if (window > span) calls = calls * span / window;
    const std::uint64_t allowed = core::allowed_retries(wanted(state), calls, span);
    return shm::take_retry(*state.call.slot, slots, count, span, allowed, now());
}

}  // namespace

bool is_body_kept(const RequestState& state) noexcept {
    return state.failover.keeps_body && state.body != nullptr && state.body->keeps;
}

bool has_remote(const RequestState& state) noexcept {
    const apr_array_header_t* const remotes = state.conf->proxies;
    for (int i = 0; i < remotes->nelts; ++i) {
        const auto& remote = APR_ARRAY_IDX(remotes, i, proxy_remote);
        if (remote.use_regex != 0 || strcmp(remote.scheme, "*") == 0) return true;
        if (strchr(remote.scheme, ':') == nullptr) continue;  // that is never the scheme of a balancer's URL
        for (const proxy_worker* const worker : runtime.registry->members(*state.balancer)) {
            const char* const name = worker->s->name_ex;
            if (ap_cstr_casecmpn(name, remote.scheme, std::min(strlen(name), strlen(remote.scheme))) == 0) return true;
        }
    }
    return false;
}

void begin_try(RequestState& state) noexcept {
    Failover& failover = state.failover;
    const Call& call = state.call;
    ++failover.tries;
    if (failover.calls++ == 0) {
        failover.began_at = call.started;
        failover.first = call.worker;
    }
    failover.before = nullptr;
    if (state.balancer == nullptr || !call.breaker->is_enforcing()) return;
    if (runtime.registry->members(*state.balancer).size() < 2) return;
    const core::Failover& policy = wanted(state);
    const bool is_wanted =
        policy.mode == core::FailoverMode::all || (policy.mode == core::FailoverMode::probes && call.is_probe());
    if (!is_wanted || policy.budget == 0 || failover.tries >= static_cast<int>(policy.tries)) return;
    if (!is_at_start(state.r) || is_bound(state) || sends_error_page_itself(state) || has_remote(state)) return;
    // From the first call on, or never: an earlier one may have read some of it already.
    if (state.body != nullptr && !failover.keeps_body) {
        if (failover.calls > 1) return;
        failover.keeps_body = keep_body(state.r, *state.body, static_cast<apr_off_t>(body_limit(state)));
        if (!failover.keeps_body) return;
    }
    failover.before = take_snapshot(state.r);
}

bool may_withhold(RequestState& state) noexcept {
    return is_idempotent(state.r) && may_call_again(state);
}

bool withhold(RequestState& state, core::Outcome outcome, core::Verdict verdict) noexcept {
    if (state.failover.before == nullptr) return false;
    // Whatever a rule makes of it: it is the client's doing.
    if (outcome == core::Outcome::client) return false;
    if (outcome == core::Outcome::upload && !(is_body_kept(state) && state.body->is_whole())) return false;
    const bool is_failed =
        verdict == core::Verdict::failure || verdict == core::Verdict::fatal || outcome == core::Outcome::stale;
    // Whatever the method: nothing was sent.
    const bool may_be_made_again = is_idempotent(state.r) || outcome == core::Outcome::connect;
    return is_failed && may_be_made_again && may_call_again(state) && take_retry(state);
}

bool go_elsewhere(RequestState& state, proxy_worker** worker, char** url) noexcept {
    Failover& failover = state.failover;
    shm::Slot& failed = *state.call.slot;
    const Snapshot* const after = failover.before != nullptr ? take_snapshot(state.r) : nullptr;
    apr_table_t* const headers_in = state.r->headers_in;
    const Told told = state.told;
    hide_environment(state);
    state.told = Told{.rejected = told.rejected, .fallback = told.fallback};
    if (after != nullptr) put_back(state.r, *failover.before);
    if (is_body_kept(state)) {
        rewind_body(state.r, *state.body, headers_in);
    } else if (state.body != nullptr) {
        state.r->headers_in = headers_in;  // mod_proxy_fcgi has what it has read of the body, and noted its length here
    }
    proxy_worker* next = nullptr;
    char* next_url = nullptr;
    if (choose_another(state, **worker, &next, &next_url) != OK) {
        hide_environment(state);  // what a refusal has told
        if (after != nullptr) put_back(state.r, *after);
        state.told = told;
        return false;
    }
    failed.totals.failovers.fetch_add(1, std::memory_order_relaxed);
    *worker = next;
    *url = next_url;
    return true;
}

}  // namespace cb::httpd
