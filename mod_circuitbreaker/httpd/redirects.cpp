#include "redirects.hpp"

#include "environment.hpp"

namespace cb::httpd {
namespace {

/// The requests that come after this one in the chain, then those before it: the nearest that `has` what is looked for.
template <class Predicate>
const Told* nearest(const request_rec* r, Predicate has) noexcept {
    const auto told = [](request_rec* other) noexcept -> const Told* {
        const RequestState* const state = request_state(other, false);
        return state != nullptr ? &state->told : nullptr;
    };
    for (request_rec* other = r->next; other != nullptr; other = other->next) {
        if (const Told* const found = told(other); found != nullptr && has(*found)) return found;
    }
    for (request_rec* other = r->prev; other != nullptr; other = other->prev) {
        if (const Told* const found = told(other); found != nullptr && has(*found)) return found;
    }
    return nullptr;
}

/// What stands in the log for this request of the chain: its own call and refusal, or else those of another one.
Told told_of_chain(const request_rec* r, const Told& own) noexcept {
    Told all = own;
    if (own.member == nullptr) {
        const Told* const other = nearest(r, [](const Told& told) noexcept { return told.member != nullptr; });
        if (other != nullptr) all = *other;
        all.rejected = own.rejected;
        all.fallback = own.fallback;
    }
    if (own.member == nullptr && own.fallback == nullptr) {
        const Told* const other = nearest(r, [](const Told& told) noexcept { return told.fallback != nullptr; });
        if (other != nullptr) all.fallback = other->fallback;
    }
    if (own.rejected == nullptr) {
        const Told* const other = nearest(r, [](const Told& told) noexcept { return told.rejected != nullptr; });
        if (other != nullptr) all.rejected = other->rejected;
    }
    return all;
}

}  // namespace

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
    for (request_rec* each = r; each != nullptr; each = each->next) {
        const RequestState* const state = request_state(each, false);
        const Told told = told_of_chain(each, state != nullptr ? state->told : Told{});
        log_environment(each, told, state != nullptr ? state->inherited : nullptr);
    }
    return OK;
}

}  // namespace cb::httpd
