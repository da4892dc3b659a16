// What the module keeps of one request: the choice of a member, and the call that is being made.
//
// Purpose: shared by everything that handles a request. It lives in the request's pool.
// Thread safety: belongs to the thread that handles the request.
// Invariants: at most one permit at a time. A cleanup on the request's pool gives it back if nothing else did
// (call.cpp).
#ifndef CIRCUITBREAKER_HTTPD_REQUEST_REQUEST_HPP
#define CIRCUITBREAKER_HTTPD_REQUEST_REQUEST_HPP

#include "call_parts.hpp"
#include "httpd/members/registry.hpp"
#include "request_body.hpp"
#include "snapshot.hpp"

namespace cb::httpd {

/// The calls of one request, as CircuitBreakerFailover sees them.
struct Failover {
    const Snapshot* before = nullptr;     // nullptr: the answer of the present call goes to the client in any case
    bool keeps_body = false;              // the body is kept, so that the request can be sent again
    const proxy_worker* first = nullptr;  // member of the first call
    core::Millis began_at = 0;
    int calls = 0;
    int tries = 0;  // of these, the calls that had a connection to their member
};
struct Ramp;  // ramp.cpp

/// A call that the request has made before its present one.
struct EarlierCall {
    const EarlierCall* before;  // nullptr: it was the first
    const char* member;
    const char* verdict;
    bool is_probe;
    bool is_observed;
};

/// The values of CIRCUIT_BREAKER_*, of the last call or of the refusal; nullptr: not set. See `environment`.
struct Told {
    const char* member = nullptr;  // of a call
    const char* state = nullptr;
    const char* verdict = nullptr;
    const char* rejected = nullptr;
    const char* fallback = nullptr;
    const EarlierCall* earlier = nullptr;  // the last one before this call
    bool is_probe = false;
    bool is_observed = false;  // the breaker is in Observe
    bool is_shown = false;     // they are in the environment

    [[nodiscard]] bool has_call() const noexcept { return member != nullptr || earlier != nullptr; }
};

/// Of the refusals that a request has met, the one that ends first.
struct Refused {
    shm::Refusal why = shm::Refusal::none;  // none: it has met none
    core::Millis wait = 0;
    bool with_retry_after = false;
};

struct RequestState {
    request_rec* r = nullptr;
    proxy_server_conf* conf = nullptr;
    proxy_balancer* balancer = nullptr;  // the real one; nullptr for a worker without
    const char* balancer_url = nullptr;  // *url before a member was chosen
    proxy_worker** tried = nullptr;      // members that have been called for this request
    int tried_count = 0;
    bool has_gone_on = false;                   // or was to: after a call that failed, another member was looked for
    proxy_worker** failed = nullptr;            // members without a breaker that have failed this request
    const proxy_balancer* failed_of = nullptr;  // the balancer of `failed`
    int failed_count = 0;
    RequestBody* body = nullptr;         // nullptr: the request has none
    Ramp* ramps = nullptr;               // the request's tickets for recovering members
    const char* probe_header = nullptr;  // set in headers_in for this attempt
    bool is_marked = false;              // as a probe
    bool is_fallback = false;            // the balancer is the fallback of the one that refused
    bool is_nested = false;              // we are running mod_proxy's own hook
    bool is_abandoned_at_end = false;    // the cleanup that gives the permit back is registered
    Refused refused;
    Told told;
    apr_table_t* inherited = nullptr;   // CIRCUIT_BREAKER_* of the request that this one was made of
    const char* retry_after = nullptr;  // the Retry-After that a refusal has put into err_headers_out
    Call call;
    Failover failover;
};

/// The state of this request. If there is none, makes one (`is_wanted`) or returns nullptr.
[[nodiscard]] RequestState* request_state(request_rec* r, bool is_wanted) noexcept;

/// The policy with the value of that directive for this request: from a <Location>, <Directory>, <Files> or <If> that
/// sets it, or else the member's.
[[nodiscard]] inline const core::Policy& policy_for(const request_rec* r, const Breaker& breaker,
                                                    Directive directive) noexcept {
    const Settings* const said = said_for_request(r, directive);
    return said != nullptr ? said->policy : breaker.policy;
}

/// Adds an output filter next to the handler, before those of other modules.
ap_filter_t* add_first_filter(request_rec* r, ap_filter_rec_t* filter, void* context) noexcept;

/// CircuitBreakerSettle for this request (see policy_for).
[[nodiscard]] core::Millis settle_time(const request_rec* r, const Breaker& breaker) noexcept;
/// How long mod_proxy waits for a silent member (`timeout=`, ProxyTimeout, Timeout), ms.
[[nodiscard]] core::Millis member_timeout(const request_rec* r, const proxy_worker& worker) noexcept;
/// CircuitBreakerBodyLimit for this request.
[[nodiscard]] std::uint32_t body_limit(const RequestState& state) noexcept;
/// A field of the member's answer. (ap_scan_script_header_err: FastCGI's and SCGI's are in err_headers_out.)
[[nodiscard]] inline const char* answer_field(const request_rec* r, const char* name) noexcept {
    const char* const value = apr_table_get(r->headers_out, name);
    return value != nullptr ? value : apr_table_get(r->err_headers_out, name);
}
[[nodiscard]] bool wants_retry_after(const request_rec* r, const Breaker& breaker) noexcept;

}  // namespace cb::httpd

#endif
