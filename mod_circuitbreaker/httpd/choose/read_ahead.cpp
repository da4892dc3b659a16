#include "read_ahead.hpp"

#include "httpd/runtime.hpp"

namespace cb::httpd {
namespace {

/// What mod_proxy_http reads before it connects (MAX_MEM_SPOOL in mod_proxy_http.c).
constexpr apr_off_t kFirstPart = 16384;

/// May the body be read before the member is asked? Not with another transfer coding: mod_proxy refuses that before it
/// reads the body (AH01093, AH10396). Not if the client waits for a `100 Continue`: the member has to send that.
bool may_be_read(const request_rec* r) noexcept {
    const char* const coding = apr_table_get(r->headers_in, "Transfer-Encoding");
    return r->expecting_100 == 0 && (coding == nullptr || ap_cstr_casecmp(coding, "chunked") == 0);
}

/// Is it impossible to read the whole body before the member is asked? It is longer than CircuitBreakerProbeBody, or
/// may not be read yet.
bool is_too_long(const RequestState& state, const Breaker& breaker) noexcept {
    const auto most = static_cast<apr_off_t>(breaker.policy.probe_body);
    return !may_be_read(state.r) || announced_length(state.r) > most || state.body->size >= most;
}

bool is_probed_now(const shm::Slot& slot) noexcept {
    const core::State state = core::state_of(slot.word.load(std::memory_order_acquire));
    return state == core::State::open || state == core::State::half_open;
}

}  // namespace

bool may_carry_probe(const RequestState& state, const Breaker& breaker, const shm::Slot& slot) noexcept {
    if (state.body == nullptr || state.body->is_whole() || !is_too_long(state, breaker)) return true;
    // Relaxed: a time for this estimate alone.
    const core::Millis probed_at = slot.probed_at.load(std::memory_order_relaxed);
    const core::Word word = core::unpack(slot.word.load(std::memory_order_acquire));
    return core::has_waited_in_vain(word, breaker.policy, probed_at, now());
}

int read_ahead(const RequestState& state, const Breaker& breaker, const shm::Slot& slot) noexcept {
    if (state.body == nullptr || !breaker.is_enforcing() || !may_be_read(state.r)) return OK;
    RequestBody& body = *state.body;
    bool is_here = breaker.policy.max_concurrent == 0 || fetch_body(state.r, body, kFirstPart);
    if (is_here && !body.is_whole() && is_probed_now(slot) && !is_too_long(state, breaker)) {
        is_here = fetch_body(state.r, body, static_cast<apr_off_t>(breaker.policy.probe_body));
    }
    return is_here ? OK : ap_map_http_request_error(body.failure, HTTP_BAD_REQUEST);  // as ap_proxy_read_input does
}

}  // namespace cb::httpd
