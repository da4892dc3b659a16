#include "environment.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

namespace cb::httpd {
namespace {

ap_filter_rec_t* answer_filter;

/// Who looks at the variables: whatever works on the answer, our own expressions, or the log.
enum class Reader : std::uint8_t { answer, expressions, log };

/// That call, or the one before it that the reader may see: of a breaker in Observe, nothing shows in the answer.
const EarlierCall* visible(const EarlierCall* call, Reader reader) noexcept {
    while (call != nullptr && call->is_observed && reader == Reader::answer)
        call = call->before;
    return call;
}

/// Rules are about the present call, everybody else about the request.
const char* probe_of(const Told& told, Reader reader) noexcept {
    bool is_any = told.is_probe;
    if (reader == Reader::expressions) return is_any ? "1" : nullptr;
    for (const EarlierCall* call = visible(told.earlier, reader); call != nullptr; call = visible(call->before, reader))
        is_any = is_any || call->is_probe;
    return is_any ? "1" : nullptr;
}

/// Calls `put` for each piece of CIRCUIT_BREAKER_ATTEMPTS, from the last to the first.
template <class Put>
void for_each_piece(const Told& told, Reader reader, Put put) noexcept {
    bool is_last = true;
    const auto put_call = [&](const char* member, const char* verdict, bool is_probe) noexcept {
        if (!is_last) put(std::string_view(", "));
        is_last = false;
        if (verdict != nullptr) put(std::string_view(verdict)), put(std::string_view(" "));
        if (is_probe) put(std::string_view(" probe"));
        put(std::string_view(member));
    };
    if (told.member != nullptr) put_call(told.member, told.verdict, told.is_probe);
    for (const EarlierCall* call = visible(told.earlier, reader); call != nullptr; call = visible(call->before, reader))
        put_call(call->member, call->verdict, call->is_probe);
}

/// "http://a probe failure:503, http://b success"; nullptr: no call.
const char* attempts_of(apr_pool_t* p, const Told& told, Reader reader) noexcept {
    std::size_t length = 0;
    for_each_piece(told, reader, [&](std::string_view piece) noexcept { length += piece.size(); });
    if (length == 0) return nullptr;
    auto* const text = static_cast<char*>(apr_palloc(p, length + 1));
    char* at = text + length;
    *at = '\0';
    for_each_piece(told, reader, [&](std::string_view piece) noexcept {
        at -= piece.size();
        std::memcpy(at, piece.data(), piece.size());
    });
    return text;
}

struct Variable {
    const char* name;
    const char* (*value)(const request_rec*, const Told&, Reader) noexcept;
    bool is_of_call;
};

constexpr const char* kVerdict = "CIRCUIT_BREAKER_VERDICT";
constexpr const char* kAttempts = "CIRCUIT_BREAKER_ATTEMPTS";

template <const char* Told::*Member>
const char* told_value(const request_rec*, const Told& told, Reader) noexcept {
    return told.*Member;
}

constexpr Variable kVariables[] = {
    {"CIRCUIT_BREAKER_MEMBER", told_value<&Told::member>, true},
    {"CIRCUIT_BREAKER_STATE", told_value<&Told::state>, true},
    {kVerdict, told_value<&Told::verdict>, true},
    {"CIRCUIT_BREAKER_PROBE",
     [](const request_rec*, const Told& told, Reader reader) noexcept { return probe_of(told, reader); }, true},
    // Of one call it would say nothing that the others don't: it is not worth its memory until there is a log.
    {kAttempts,
     [](const request_rec* r, const Told& told, Reader reader) noexcept -> const char* {
         const bool is_wanted = reader == Reader::log || visible(told.earlier, reader) != nullptr;
         return is_wanted ? attempts_of(r->pool, told, reader) : nullptr;
     },
     true},
    {"CIRCUIT_BREAKER_REJECTED", told_value<&Told::rejected>, false},
    {"CIRCUIT_BREAKER_FALLBACK", told_value<&Told::fallback>, false},
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

void put(const request_rec* r, const Told& told, const apr_table_t* inherited, Reader reader) noexcept {
    apr_table_t* const environment = r->subprocess_env;
    for_each_entry(inherited,
                   [&](const char* key, const char* value) noexcept { apr_table_setn(environment, key, value); });
    for (const Variable& variable : kVariables) {
        if (variable.is_of_call && told.is_observed && reader == Reader::answer) continue;
        const char* const value = variable.value(r, told, reader);
        if (value != nullptr) apr_table_setn(environment, variable.name, value);
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
    put(state.r, state.told, state.inherited, Reader::answer);
}

void hide_environment(RequestState& state) noexcept {
    if (!state.told.is_shown) return;
    state.told.is_shown = false;
    take_out(state.r->subprocess_env, state.inherited);
}

void log_environment(request_rec* r, const Told& told, const apr_table_t* inherited) noexcept {
    put(r, told, inherited, Reader::log);
}

void log_attempts(request_rec* r, const Told& told) noexcept {
    if (const char* const text = attempts_of(r->pool, told, Reader::log); text != nullptr)
        apr_table_setn(r->subprocess_env, kAttempts, text);
}

void remember_call(RequestState& state) noexcept {
    Told& told = state.told;
    if (told.member == nullptr) return;
    told.earlier = new (apr_palloc(state.r->pool, sizeof(EarlierCall)))
        EarlierCall{told.earlier, told.member, told.verdict, told.is_probe, told.is_observed};
    told.member = told.state = told.verdict = nullptr;
    told.is_probe = told.is_observed = false;
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
    if (state.told.earlier != nullptr) take_out(state.r->subprocess_env, state.inherited);
    put(state.r, state.told, state.inherited, Reader::expressions);
}

ForExpressions::~ForExpressions() {
    if (!state_.told.is_shown) {
        take_out(state_.r->subprocess_env, state_.inherited);
    } else if (state_.told.is_observed || state_.told.earlier != nullptr) {
        take_out(state_.r->subprocess_env, state_.inherited);
        put(state_.r, state_.told, state_.inherited, Reader::answer);
    }
}

void register_environment_filter() noexcept {
    answer_filter =
        ap_register_output_filter("CIRCUITBREAKER_ANSWER", on_answer, nullptr, static_cast<ap_filter_type>(0));
}

}  // namespace cb::httpd
