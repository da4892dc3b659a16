#include "actions.hpp"

#include <cstring>

#include "httpd/config/host_names.hpp"
#include "httpd/members/names.hpp"
#include "httpd/runtime.hpp"
#include "origin.hpp"
#include "shm/member.hpp"

namespace cb::httpd {
namespace {

constexpr apr_size_t kMaxBody = 4096;
constexpr apr_size_t kMaxFields = 8;
constexpr apr_size_t kMaxValue = 128;

struct Action {
    const char* name;
    const char* label;
    core::EventKind kind;
};
constexpr Action kActions[] = {
    {"force-open", "Force open", core::EventKind::force_open},
    {"force-closed", "Force closed", core::EventKind::force_closed},
    {"reset", "Reset", core::EventKind::reset},
    {"automatic", "Back to automatic", core::EventKind::automatic},
};

const Action* action_named(const char* name) noexcept {
    for (const Action& action : kActions) {
        if (std::strcmp(action.name, name) == 0) return &action;
    }
    return nullptr;
}

bool makes_sense(const Action& action, core::State state) noexcept {
    const bool is_forced = state == core::State::forced_open || state == core::State::forced_closed;
    switch (action.kind) {
        case core::EventKind::force_open:
            return state != core::State::forced_open;
        case core::EventKind::force_closed:
            return state != core::State::forced_closed;
        case core::EventKind::automatic:
            return is_forced;
        default:
            return true;
    }
}

/// In a time that does not tell how much of it is right.
bool is_token(const char* wanted, const char* given) noexcept {
    if (wanted == nullptr || std::strlen(given) != std::strlen(wanted)) return false;
    unsigned differences = 0;
    for (std::size_t i = 0; wanted[i] != '\0'; ++i)
        differences |= static_cast<unsigned>(static_cast<unsigned char>(wanted[i] ^ given[i]));
    return differences == 0;
}

struct Fields {
    const char* action = "";
    const char* member = "";
    const char* token = "";
};

const char* value_text(apr_pool_t* p, apr_bucket_brigade* value) noexcept {
    char* const text = static_cast<char*>(apr_pcalloc(p, kMaxValue + 1));
    apr_size_t size = kMaxValue;
    return apr_brigade_flatten(value, text, &size) == APR_SUCCESS ? text : "";
}

int read_fields(request_rec* r, Fields& fields) noexcept {
    apr_array_header_t* pairs = nullptr;
    const int result = ap_parse_form_data(r, nullptr, &pairs, kMaxFields, kMaxBody);
    if (result != OK) return result;
    for (int i = 0; i < pairs->nelts; ++i) {
        const ap_form_pair_t& pair = APR_ARRAY_IDX(pairs, i, const ap_form_pair_t);
        if (std::strcmp(pair.name, "action") == 0) fields.action = value_text(r->pool, pair.value);
        if (std::strcmp(pair.name, "member") == 0) fields.member = value_text(r->pool, pair.value);
        if (std::strcmp(pair.name, "token") == 0) fields.token = value_text(r->pool, pair.value);
    }
    return OK;
}

Control control_of(const request_rec* r) noexcept {
    const Settings* const said = said_for_request(r, Directive::control);
    return said != nullptr ? said->control : Control{};
}

/// Back to where the button was: a page of this host, as was checked before.
int go_back(request_rec* r, const char* member) noexcept {
    const char* page = path_of_url(apr_table_get(r->headers_in, "Referer"));
    page = page != nullptr ? apr_pstrmemdup(r->pool, page, std::strcspn(page, "#"))
                           : ap_os_escape_path(r->pool, r->uri, 1);
    apr_table_setn(r->headers_out, "Location", apr_pstrcat(r->pool, page, "#m-", member, nullptr));
    return HTTP_SEE_OTHER;
}

}  // namespace

void draw_action_token() noexcept {
    shm::Atomic64(&token)[2] = runtime.segment.header->token;
    if (token[0].load(std::memory_order_relaxed) != 0 || token[1].load(std::memory_order_relaxed) != 0) return;
    std::uint64_t drawn[2] = {};
    if (apr_generate_random_bytes(reinterpret_cast<unsigned char*>(drawn), sizeof drawn) != APR_SUCCESS) return;
    for (std::size_t i = 0; i < 2; ++i)
        token[i].store(drawn[i], std::memory_order_relaxed);  // children are forked later
}

const char* action_token(apr_pool_t* p) noexcept {
    if (!runtime.segment.is_valid()) return nullptr;
    const std::uint64_t high = runtime.segment.header->token[0].load(std::memory_order_relaxed);
    const std::uint64_t low = runtime.segment.header->token[1].load(std::memory_order_relaxed);
    if (high == 0 && low == 0) return nullptr;
    return apr_psprintf(p, "%016" APR_UINT64_T_HEX_FMT "%016" APR_UINT64_T_HEX_FMT, high, low);
}

Controls own_controls(const request_rec* r) noexcept {
    // "?": this page, under whatever name the browser knows it.
    const Control control = control_of(r);
    return control.is_on && is_for_host(r, control.hosts) ? Controls{"?", action_token(r->pool)} : Controls{};
}

void write_action_form(const HtmlOut& out, const MemberSnapshot& member, const Controls& controls) noexcept {
    out.put("<form method=\"post\" action=\"");
    out.text(controls.url);
    out.print(
        "\"><input type=\"hidden\" name=\"token\" value=\"%s\">"
        "<input type=\"hidden\" name=\"member\" value=\"%s\">",
        controls.token, member.id);
    for (const Action& action : kActions) {
        if (!makes_sense(action, member.state())) continue;
        out.print("\n<button name=\"action\" value=\"%s\" id=\"%s-%s\"", action.name, action.name, member.id);
        if (action.kind == core::EventKind::automatic) {
            out.put(" class=\"main\"");
        } else {
            out.print(" data-ask=\"%s: ", action.label);
            out.text(member.name);
            out.put("?\"");
        }
        out.print(">%s</button>", action.label);
    }
    out.put("</form>\n");
}

int refuse_action(const request_rec* r, const char* why) noexcept {
    ap_log_rerror(APLOG_MARK, APLOG_WARNING, 0, r, "circuit breaker: an action on the status page was refused: %s",
                  why);
    return HTTP_FORBIDDEN;
}

int do_action(request_rec* r) noexcept {
    const Control control = control_of(r);
    if (!control.is_on) return refuse_action(r, "CircuitBreakerControl is not On here");
    if (!is_for_host(r, control.hosts)) {
        const char* const host = r->hostname != nullptr ? r->hostname : "";
        return refuse_action(
            r, apr_psprintf(r->pool, "CircuitBreakerControl names no host=%s, under which it came", host));
    }
    if (!is_same_host(apr_table_get(r->headers_in, "Host"), apr_table_get(r->headers_in, "Origin"),
                      apr_table_get(r->headers_in, "Referer"))) {
        return refuse_action(r, "neither Origin nor Referer is a page of this host");
    }
    Fields fields;
    if (const int result = read_fields(r, fields); result != OK) return result;
    if (!is_token(action_token(r->pool), fields.token)) {
        return refuse_action(r, *fields.token == '\0' ? "there is no token" : "the token is wrong");
    }
    const Action* const action = action_named(fields.action);
    if (action == nullptr) return refuse_action(r, "there is no such action");
    std::uint32_t index = 0;
    const Breaker* const breaker = find_member(fields.member, index) ? breaker_at(index) : nullptr;
    if (breaker == nullptr) return refuse_action(r, "there is no such member");
    const bool is_changed = shm::operate(runtime.segment.slots[index], breaker->policy, runtime.process, action->kind);
    ap_log_rerror(APLOG_MARK, APLOG_NOTICE, 0, r, "circuit breaker: member %s: %s by %s from %s%s",
                  LogName(breaker->identity).text, action->name, r->user != nullptr ? r->user : "an unnamed user",
                  r->useragent_ip, is_changed ? "" : ": nothing to change");
    return go_back(r, fields.member);
}

}  // namespace cb::httpd
