#include "environment.hpp"

#include <algorithm>
#include <cstring>

namespace cb::httpd {
namespace {

ap_filter_rec_t* answer_filter;

struct Variable {
    const char* name;
    const char* (*value)(const Told&) noexcept;
    bool is_of_call;
};

constexpr const char* kVerdict = "CIRCUIT_BREAKER_VERDICT";

constexpr Variable kVariables[] = {
    {"CIRCUIT_BREAKER_MEMBER", [](const Told& told) noexcept { return told.member; }, true},
    {"CIRCUIT_BREAKER_STATE", [](const Told& told) noexcept { return told.state; }, true},
    {kVerdict, [](const Told& told) noexcept { return told.verdict; }, true},
    {"CIRCUIT_BREAKER_PROBE", [](const Told& told) noexcept -> const char* { return told.is_probe ? "1" : nullptr; },
     true},
    {"CIRCUIT_BREAKER_REJECTED", [](const Told& told) noexcept { return told.rejected; }, false},
    {"CIRCUIT_BREAKER_FALLBACK", [](const Told& told) noexcept { return told.fallback; }, false},
};

bool is_ours(const char* name) noexcept {
    constexpr const char* kPrefix = "REDIRECT_";
    const std::size_t length = std::strlen(kPrefix);
    while (std::strncmp(name, kPrefix, length) == 0)
        name += length;
    return std::any_of(std::begin(kVariables), std::end(kVariables),
                       [&](const Variable& variable) noexcept { return std::strcmp(variable.name, name) == 0; });
}

template <class Visit>
void for_each_entry(const apr_table_t* table, Visit visit) noexcept {
    if (table == nullptr) return;
    const apr_array_header_t* const entries = apr_table_elts(table);
    for (int i = 0; i < entries->nelts; ++i) {
        const auto& entry = APR_ARRAY_IDX(entries, i, const apr_table_entry_t);
        if (entry.key != nullptr) visit(entry.key, entry.val);
    }
}

void put(apr_table_t* environment, const Told& told, const apr_table_t* inherited, bool with_call) noexcept {
    for_each_entry(inherited,
                   [&](const char* key, const char* value) noexcept { apr_table_setn(environment, key, value); });
    for (const Variable& variable : kVariables) {
        const char* const value = variable.value(told);
        if (value != nullptr && (with_call || !variable.is_of_call)) apr_table_setn(environment, variable.name, value);
    }
}

void take_out(apr_table_t* environment, const apr_table_t* inherited) noexcept {
    for_each_entry(inherited, [&](const char* key, const char*) noexcept { apr_table_unset(environment, key); });
    for (const Variable& variable : kVariables)
        apr_table_unset(environment, variable.name);
}

extern "C" apr_status_t on_answer(ap_filter_t* f, apr_bucket_brigade* bb) noexcept {
    ap_filter_t* const next = f->next;
    if (!APR_BRIGADE_EMPTY(bb)) {
        show_environment(*static_cast<RequestState*>(f->ctx));
        ap_remove_output_filter(f);
    }
    return ap_pass_brigade(next, bb);
}

}  // namespace

void show_environment_at_answer(RequestState& state) noexcept {
    add_first_filter(state.r, answer_filter, &state);
}

void show_environment(RequestState& state) noexcept {
    if (state.told.is_shown) return;
    state.told.is_shown = true;
    put(state.r->subprocess_env, state.told, state.inherited, !state.told.is_observed);
}

void hide_environment(RequestState& state) noexcept {
    if (!state.told.is_shown) return;
    state.told.is_shown = false;
    take_out(state.r->subprocess_env, state.inherited);
}

void log_environment(request_rec* r, const Told& told, const apr_table_t* inherited) noexcept {
    put(r->subprocess_env, told, inherited, true);
}

void tell_verdict(RequestState& state, const char* verdict) noexcept {
    state.told.verdict = verdict;
    if (state.told.is_shown && !state.told.is_observed) apr_table_setn(state.r->subprocess_env, kVerdict, verdict);
}

void tell_refusal(RequestState& state, const char* reason) noexcept {
    state.told.rejected = reason;
    state.told.is_shown = false;  // the environment does not have this reason yet
    show_environment(state);      // no member is asked
}

apr_table_t* take_inherited(request_rec* r) noexcept {
    apr_table_t* inherited = nullptr;
    for_each_entry(r->subprocess_env, [&](const char* key, const char* value) noexcept {
        if (!is_ours(key)) return;
        if (inherited == nullptr) inherited = apr_table_make(r->pool, 4);
        apr_table_setn(inherited, key, value);
    });
    for_each_entry(inherited, [&](const char* key, const char*) noexcept { apr_table_unset(r->subprocess_env, key); });
    return inherited;
}

ForExpressions::ForExpressions(const RequestState& state) noexcept : state_(state) {
    put(state.r->subprocess_env, state.told, state.inherited, true);
}

ForExpressions::~ForExpressions() {
    if (!state_.told.is_shown) {
        take_out(state_.r->subprocess_env, state_.inherited);
    } else if (state_.told.is_observed) {
        take_out(state_.r->subprocess_env, state_.inherited);
        put(state_.r->subprocess_env, state_.told, state_.inherited, false);
    }
}

void register_environment_filter() noexcept {
    answer_filter =
        ap_register_output_filter("CIRCUITBREAKER_ANSWER", on_answer, nullptr, static_cast<ap_filter_type>(0));
}

}  // namespace cb::httpd
