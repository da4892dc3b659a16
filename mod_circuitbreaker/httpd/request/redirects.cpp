#include "redirects.hpp"

#include "environment.hpp"

namespace cb::httpd {
namespace {

/// Looks through the requests after this one in the chain, then those before it. Returns the nearest for which `has` is
/// true.
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

/// The values in the log for this request of the chain: its own call and refusal, or else those of another request.
Told told_of_chain(const request_rec* r, const Told& own) noexcept {
    Told all = own;
    if (!own.has_call()) {
        const Told* const other = nearest(r, [](const Told& told) noexcept { return told.has_call(); });
        if (other != nullptr) all = *other;
        all.rejected = own.rejected;
        all.fallback = own.fallback;
    }
    if (!own.has_call() && own.fallback == nullptr) {
        const Told* const other = nearest(r, [](const Told& told) noexcept { return told.fallback != nullptr; });
        if (other != nullptr) all.fallback = other->fallback;
    }
    if (own.rejected == nullptr) {
        const Told* const other = nearest(r, [](const Told& told) noexcept { return told.rejected != nullptr; });
        if (other != nullptr) all.rejected = other->rejected;
    }
    return all;
}

ap_filter_rec_t* refusal_filter;

/// The field that a refusal in this chain has set, unless somebody has put another one there.
bool has_own_retry_after(const request_rec* r) noexcept {
    const char* const present = apr_table_get(r->err_headers_out, "Retry-After");
    if (present == nullptr) return false;
    const auto is_of = [&](request_rec* other) noexcept {
        const RequestState* const state = request_state(other, false);
        return state != nullptr && state->retry_after == present;
    };
    for (const request_rec* other = r; other != nullptr; other = other->next) {
        if (is_of(const_cast<request_rec*>(other))) return true;
    }
    for (request_rec* other = r->prev; other != nullptr; other = other->prev) {
        if (is_of(other)) return true;
    }
    return false;
}

void drop_retry_after(const request_rec* r) noexcept {
    if (r->status != HTTP_SERVICE_UNAVAILABLE && has_own_retry_after(r)) {
        apr_table_unset(r->err_headers_out, "Retry-After");
    }
}

/// The filter on the answer of an ErrorDocument's own request after a refusal.
extern "C" apr_status_t on_error_document(ap_filter_t* f, apr_bucket_brigade* bb) noexcept {
    ap_filter_t* const next = f->next;
    if (!APR_BRIGADE_EMPTY(bb)) {
        drop_retry_after(f->r);
        ap_remove_output_filter(f);
    }
    return ap_pass_brigade(next, bb);
}

}  // namespace

int cb_on_create_request(request_rec* r) noexcept {
    RequestState* const state = r->prev != nullptr ? request_state(r->prev, false) : nullptr;
    if (state != nullptr) show_environment(*state);
    return OK;
}

int cb_on_handler(request_rec* r) noexcept {
    if (r->prev == nullptr && r->main == nullptr) return DECLINED;
    if (has_own_retry_after(r)) add_first_filter(r, refusal_filter, nullptr);
    apr_table_t* const inherited = take_inherited(r);
    if (inherited == nullptr) return DECLINED;
    RequestState& state = *request_state(r, true);
    state.inherited = inherited;
    show_environment_at_answer(state);
    return DECLINED;
}

void cb_on_insert_error_filter(request_rec* r) noexcept {
    drop_retry_after(r);
}

int cb_on_log_transaction(request_rec* r) noexcept {
    const bool is_alone = r->prev == nullptr && r->next == nullptr;
    for (request_rec* each = r; each != nullptr; each = each->next) {
        const RequestState* const state = request_state(each, false);
        if (is_alone && state == nullptr) return OK;
        if (is_alone && state->told.is_shown && !state->told.is_observed && state->told.earlier == nullptr) {
            log_attempts(r, state->told);  // the usual case: all others are there
            return OK;
        }
        const Told told = told_of_chain(each, state != nullptr ? state->told : Told{});
        log_environment(each, told, state != nullptr ? state->inherited : nullptr);
    }
    return OK;
}

void register_redirect_filter() noexcept {
    refusal_filter =
        ap_register_output_filter("CIRCUITBREAKER_REFUSAL", on_error_document, nullptr, static_cast<ap_filter_type>(0));
}

}  // namespace cb::httpd
