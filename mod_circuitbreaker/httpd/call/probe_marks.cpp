#include "probe_marks.hpp"

#include "httpd/request/environment.hpp"

namespace cb::httpd {
namespace {

constexpr const char* kProbe = "CIRCUIT_BREAKER_PROBE";

/// mod_proxy removes the fields that the client's `Connection` names. Takes our header's name out of that list.
void keep_from_connection(apr_pool_t* p, apr_table_t* fields, const char* name) noexcept {
    const char* list = apr_table_get(fields, "Connection");
    if (list == nullptr || ap_find_list_item(p, list, name) == 0) return;
    const char* others = nullptr;
    while (const char* const item = ap_get_list_item(p, &list)) {
        if (ap_cstr_casecmp(item, name) == 0) continue;
        others = others != nullptr ? apr_pstrcat(p, others, ", ", item, nullptr) : item;
    }
    if (others != nullptr) {
        apr_table_setn(fields, "Connection", others);
    } else {
        apr_table_unset(fields, "Connection");
    }
}

/// The request's fields, also as they will be once the handler has begun to read a body that was read ahead
/// (mod_proxy_fcgi sends them then).
template <class Visit>
void for_each_table(const RequestState& state, Visit visit) noexcept {
    visit(state.r->headers_in);
    if (state.body != nullptr && state.body->fields_after != nullptr) visit(state.body->fields_after);
}

}  // namespace

void unmark_header(RequestState& state) noexcept {
    if (state.probe_header != nullptr) {
        for_each_table(state, [&](apr_table_t* fields) noexcept { apr_table_unset(fields, state.probe_header); });
    }
    state.probe_header = nullptr;
}

void unmark_request(RequestState& state) noexcept {
    if (!state.is_marked) return;
    state.is_marked = false;
    unmark_header(state);
    apr_table_unset(state.r->notes, kProbe);
}

void mark_request(RequestState& state, const Breaker& breaker, const shm::Slot& slot, bool is_probe) noexcept {
    request_rec* const r = state.r;
    remember_call(state);
    const core::State breaker_state = core::state_of(slot.word.load(std::memory_order_relaxed));
    state.told.member = breaker.name;
    state.told.is_probe = is_probe;
    state.told.state = core::name(breaker_state);
    state.told.is_observed = !breaker.is_enforcing();
    const bool has_header = breaker.probe_header != nullptr && breaker.is_enforcing();
    if (has_header) {
        for_each_table(state, [&](apr_table_t* fields) noexcept { apr_table_unset(fields, breaker.probe_header); });
    }
    if (!is_probe) return;
    state.is_marked = true;
    apr_table_setn(r->notes, kProbe, "1");
    if (!has_header) return;
    for_each_table(state, [&](apr_table_t* fields) noexcept {
        keep_from_connection(r->pool, fields, breaker.probe_header);
        apr_table_setn(fields, breaker.probe_header, "1");
    });
    state.probe_header = breaker.probe_header;
}

void set_probe_timeout(Call& call, conn_rec* backend) noexcept {
    const core::Millis timeout = call.target.breaker->policy.probe_timeout;
    if (!call.is_probe() || !call.target.is_http || timeout == 0 || !call.target.breaker->is_enforcing()) return;
    apr_socket_t* const socket = ap_get_conn_socket(backend);
    if (socket == nullptr || apr_socket_timeout_get(socket, &call.target.own_timeout) != APR_SUCCESS) return;
    if (apr_socket_timeout_set(socket, static_cast<apr_interval_time_t>(timeout) * 1000) == APR_SUCCESS) {
        call.target.timed_socket = socket;
    }
}

void restore_timeout(Call& call) noexcept {
    if (call.target.timed_socket != nullptr) apr_socket_timeout_set(call.target.timed_socket, call.target.own_timeout);
    call.target.timed_socket = nullptr;
}

}  // namespace cb::httpd
