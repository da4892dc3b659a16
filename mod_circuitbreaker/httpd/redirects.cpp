#include "redirects.hpp"

#include "environment.hpp"

namespace cb::httpd {
int cb_on_create_request(request_rec* r) noexcept {
    RequestState* const state = r->prev != nullptr ? request_state(r->prev, false) : nullptr;
    if (state != nullptr) show_environment(*state);
    return OK;
}

int cb_on_handler(request_rec* r) noexcept {
    if (r->prev == nullptr && r->main == nullptr) return DECLINED;
    apr_table_t* const inherited = take_inherited(r);
    if (inherited == nullptr) return DECLINED;
    RequestState& state = *request_state(r, true);
    state.inherited = inherited;
    show_environment_at_answer(state);
    return DECLINED;
}

int cb_on_log_transaction(request_rec* r) noexcept {
    RequestState* const state = request_state(r, false);
    if (state != nullptr) log_environment(r, state->told, state->inherited);
    return OK;
}

}  // namespace cb::httpd
