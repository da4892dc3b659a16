#include "request.hpp"

#include <new>

namespace cb::httpd {

RequestState* request_state(request_rec* r, bool is_wanted) noexcept {
    auto* state = static_cast<RequestState*>(ap_get_module_config(r->request_config, &circuitbreaker_module));
    if (state != nullptr || !is_wanted) return state;
    state = new (apr_palloc(r->pool, sizeof(RequestState))) RequestState();
    state->r = r;
    ap_set_module_config(r->request_config, &circuitbreaker_module, state);
    return state;
}

ap_filter_t* add_first_filter(request_rec* r, ap_filter_rec_t* filter, void* context) noexcept {
    auto* const first = static_cast<ap_filter_t*>(apr_pcalloc(r->pool, sizeof(ap_filter_t)));
    first->frec = filter;
    first->ctx = context;
    first->r = r;
    first->c = r->connection;
    first->next = r->output_filters;
    r->output_filters = first;
    return first;
}

core::Millis settle_time(const request_rec* r, const Breaker& breaker) noexcept {
    return policy_for(r, breaker, Directive::settle).settle;
}

core::Millis member_timeout(const request_rec* r, const proxy_worker& worker) noexcept {
    return static_cast<core::Millis>(timeout_of(r->server, *worker.s) / 1000);
}

std::uint32_t body_limit(const RequestState& state) noexcept {
    return policy_for(state.r, *state.call.target.breaker, Directive::body_limit).body_limit;
}

bool wants_retry_after(const request_rec* r, const Breaker& breaker) noexcept {
    return policy_for(r, breaker, Directive::retry_after).retry_after;
}

}  // namespace cb::httpd
