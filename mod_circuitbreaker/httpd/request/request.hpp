// What we keep of one request: the choice of a member and the call that is being made.
//
// Purpose: shared by all that handle a request; lives in the request's pool.
// Thread safety: belongs to the thread that handles the request.
// Invariants: at most one permit at a time; a cleanup on the request's pool gives it back if nothing else did
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
    const Snapshot* before = nullptr;     // nullptr: the present call's answer goes to the client, whatever it is
    bool keeps_body = false;              // so that the request may be sent again
    const proxy_worker* first = nullptr;  // member of the first call
    core::Millis began_at = 0;
    int calls = 0;
    int tries = 0;  // of these, the ones with a connection to their member
};
struct Ramp;  // ramp.cpp

/// What CIRCUIT_BREAKER_* say of the last call, or of the refusal; nullptr: nothing. See `environment`.
struct Told {
    const char* member = nullptr;  // of a call
    const char* state = nullptr;
    const char* verdict = nullptr;
    const char* rejected = nullptr;
    const char* fallback = nullptr;
    bool is_probe = false;
    bool is_observed = false;  // the call, by a breaker that changes nothing
    bool is_shown = false;     // the environment has it
};

/// The refusal that ends first of those that a request has met.
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
    proxy_worker** tried = nullptr;      // members that have had this request, or refused it when asked
    int tried_count = 0;
    proxy_worker** failed = nullptr;            // its members without a breaker that have failed the request
    const proxy_balancer* failed_of = nullptr;  // that balancer
    int failed_count = 0;
    RequestBody* body = nullptr;         // nullptr: the request has none
    Ramp* ramps = nullptr;               // of the members that were recovering when they were asked
    const char* probe_header = nullptr;  // set in headers_in for this attempt
    bool is_marked = false;              // as a probe
    bool is_fallback = false;            // the balancer is another one's fallback
    bool is_nested = false;              // we are running mod_proxy's own hook
    bool is_abandoned_at_end = false;    // the cleanup is registered that gives the permit back
    Refused refused;
    Told told;
    apr_table_t* inherited = nullptr;   // of CIRCUIT_BREAKER_*, from the request that this one was made of
    const char* retry_after = nullptr;  // what a refusal has put into err_headers_out
    Call call;
    Failover failover;
};

/// The state of this request; made when asked for first. nullptr if `is_wanted` is false and there is none.
[[nodiscard]] RequestState* request_state(request_rec* r, bool is_wanted) noexcept;

/// What holds of that directive for this request: a <Location>'s word or the like, or else the member's policy.
[[nodiscard]] inline const core::Policy& policy_for(const request_rec* r, const Breaker& breaker,
                                                    Directive directive) noexcept {
    const Settings* const said = said_for_request(r, directive);
    return said != nullptr ? said->policy : breaker.policy;
}

/// Next to the handler, before the filters of others on the way to the client.
ap_filter_t* add_first_filter(request_rec* r, ap_filter_rec_t* filter, void* context) noexcept;

/// The policy's value unless a <Location>, <Directory>, <Files> or <If> of this request says otherwise.
[[nodiscard]] core::Millis settle_time(const request_rec* r, const Breaker& breaker) noexcept;
/// Time that mod_proxy gives a silent member before it gives up (`timeout=`, ProxyTimeout, Timeout), ms.
[[nodiscard]] core::Millis member_timeout(const request_rec* r, const proxy_worker& worker) noexcept;
/// CircuitBreakerBodyLimit, likewise.
[[nodiscard]] std::uint32_t body_limit(const RequestState& state) noexcept;
/// A field of the member's answer. (ap_scan_script_header_err: FastCGI's and SCGI's are in err_headers_out.)
[[nodiscard]] inline const char* answer_field(const request_rec* r, const char* name) noexcept {
    const char* const value = apr_table_get(r->headers_out, name);
    return value != nullptr ? value : apr_table_get(r->err_headers_out, name);
}
[[nodiscard]] bool wants_retry_after(const request_rec* r, const Breaker& breaker) noexcept;

}  // namespace cb::httpd

#endif
