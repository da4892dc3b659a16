#include "failover.hpp"

#include <algorithm>

#include "httpd/call/client_doing.hpp"
#include "httpd/choose/ask.hpp"
#include "httpd/runtime.hpp"
#include "shm/retries.hpp"

namespace cb::httpd {
namespace {

constexpr core::Millis kBudgetSpan = 10 * core::kMillisPerSecond;  // the budget counts the retries of this time

const core::Failover& wanted(const RequestState& state) noexcept {
    return policy_for(state.r, *state.call.target.breaker, Directive::failover).failover;
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
    return proxy_dir_config(state.r).error_override != 0 && strcmp(state.call.target.worker->s->scheme, "fcgi") == 0;
}

bool is_at_start(const request_rec* r) noexcept {
    return r->sent_bodyct == 0 && r->eos_sent == 0 && r->bytes_sent == 0;
}

/// With nofailover a session stays where it is bound.
bool is_bound(const RequestState& state) noexcept {
    return state.balancer->s->sticky_force != 0 && apr_table_get(state.r->notes, "session-route") != nullptr;
}

bool may_call_again(RequestState& state) noexcept {
    const Failover& failover = state.failover;
    if (failover.before == nullptr || state.call.seen.has_interim || state.r->connection->aborted) return false;
    if (is_request_bad(state)) return false;
    if (failover.keeps_body && !is_body_kept(state)) return false;  // it was longer than that
    const core::Failover& policy = wanted(state);
    const core::Millis limit = policy.timeout > 0 ? policy.timeout : member_timeout(state.r, *failover.first);
    return now() - failover.began_at < limit && is_another_allowed(state);
}

/// Does a ProxyRemote apply to a member of the balancer? mod_proxy looks for it once, before the first call. A call to
/// another member would go through the wrong proxy, so there is none.
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
    const core::Millis window = state.call.target.breaker->policy.window.span;  // 0: the last so many calls
    const core::Millis span = window > 0 ? std::min(window, kBudgetSpan) : kBudgetSpan;
    if (window > span) calls = calls * span / window;
    const std::uint64_t allowed = core::allowed_retries(wanted(state), calls, span);
    return shm::take_retry(*state.call.target.slot, slots, count, span, allowed, now());
}

/// Will the next member get the whole body of the request? Yes if nothing of it was read, if it is kept, or if the
/// handler has read it before it connected, and still has it. Other handlers lose what they have read.
bool has_body_still(const RequestState& state, int rv) noexcept {
    if (state.body == nullptr || state.body->size == 0 || is_body_kept(state)) return true;
    const bool prefetches = state.call.target.is_http || strcmp(state.call.target.worker->s->scheme, "fcgi") == 0;
    return prefetches && rv == HTTP_SERVICE_UNAVAILABLE;
}

}  // namespace

bool is_body_kept(const RequestState& state) noexcept {
    return state.failover.keeps_body && state.body != nullptr && state.body->keeps;
}

void begin_try(RequestState& state) noexcept {
    Failover& failover = state.failover;
    const Call& call = state.call;
    ++failover.tries;
    if (failover.calls++ == 0) {
        failover.began_at = call.target.started;
        failover.first = call.target.worker;
    }
    failover.before = nullptr;
    if (state.balancer == nullptr || !call.target.breaker->is_enforcing()) return;
    if (runtime.registry->members(*state.balancer).size() < 2) return;
    const core::Failover& policy = wanted(state);
    const bool is_wanted =
        policy.mode == core::FailoverMode::all || (policy.mode == core::FailoverMode::probes && call.is_probe());
    if (!is_wanted || policy.budget == 0 || failover.tries >= static_cast<int>(policy.tries)) return;
    if (!is_at_start(state.r) || is_bound(state) || sends_error_page_itself(state) || has_remote(state)) return;
    // Keep the body from the first call on, or never: an earlier call may have read part of it.
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
    // The client's doing is never made again, whatever a rule says.
    if (outcome == core::Outcome::client) return false;
    if (outcome == core::Outcome::upload && !(is_body_kept(state) && state.body->is_whole())) return false;
    const bool is_failed =
        verdict == core::Verdict::failure || verdict == core::Verdict::fatal || outcome == core::Outcome::stale;
    // Without a connection nothing was sent, so the method does not matter.
    const bool may_be_made_again = is_idempotent(state.r) || outcome == core::Outcome::connect;
    return is_failed && may_be_made_again && may_call_again(state) && take_retry(state);
}

bool may_go_on(const RequestState& state, int rv, core::Outcome outcome, int attempts) noexcept {
    if (state.balancer == nullptr || !state.call.target.breaker->is_enforcing()) return false;
    const bool is_local = outcome == core::Outcome::local && rv == HTTP_SERVICE_UNAVAILABLE;
    if (outcome != core::Outcome::connect && !is_local) return false;
    if (has_remote(state) || !has_body_still(state, rv)) return false;
    return state.balancer->s->max_attempts_set != 0 && attempts <= state.balancer->s->max_attempts;
}

}  // namespace cb::httpd
