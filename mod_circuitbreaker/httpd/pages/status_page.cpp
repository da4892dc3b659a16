#include "status_page.hpp"

#include <cstdlib>
#include <cstring>

#include "html.hpp"
#include "json.hpp"
#include "text.hpp"

namespace cb::httpd {
namespace {

/// The words of the query; names and values are ours, so nothing has to be decoded.
struct Query {
    const char* format = "";
    const char* member = nullptr;
    const char* refresh = nullptr;
    bool is_auto = false;
    bool has_action = false;
};

Query read_query(const request_rec* r) noexcept {
    Query query;
    if (r->args == nullptr) return query;
    char* rest = nullptr;
    for (char* word = apr_strtok(apr_pstrdup(r->pool, r->args), "&", &rest); word != nullptr;
         word = apr_strtok(nullptr, "&", &rest)) {
        char* const equals = std::strchr(word, '=');
        const char* const value = equals != nullptr ? equals + 1 : "";
        if (equals != nullptr) *equals = '\0';
        if (std::strcmp(word, "format") == 0) query.format = value;
        if (std::strcmp(word, "member") == 0) query.member = value;
        if (std::strcmp(word, "refresh") == 0) query.refresh = value;
        if (std::strcmp(word, "auto") == 0) query.is_auto = true;
        if (std::strcmp(word, "action") == 0) query.has_action = true;
    }
    return query;
}

/// Seconds, at most an hour; 0 for whatever else is written.
unsigned refresh_of(const char* text) noexcept {
    const unsigned long seconds = apr_isdigit(*text) ? std::strtoul(text, nullptr, 10) : 0;
    return seconds <= 3600 ? static_cast<unsigned>(seconds) : 3600;
}

}  // namespace

extern "C" int cb_on_status(request_rec* r) noexcept {
    if (r->handler == nullptr || std::strcmp(r->handler, "circuitbreaker-status") != 0) return DECLINED;
    ap_allow_standard_methods(r, REPLACE_ALLOW, M_GET, M_POST, -1);
    apr_table_setn(r->err_headers_out, "Cache-Control", "no-store");  // also of what is refused or not found
    if (r->method_number == M_POST) return do_action(r);
    if (r->method_number != M_GET) return HTTP_METHOD_NOT_ALLOWED;
    const Query query = read_query(r);
    if (query.has_action) return refuse_action(r, "it was asked for by GET");
    MemberList members;
    std::uint32_t one = 0;
    if (query.member == nullptr) {
        members = list_members(r->pool);
    } else {
        if (!find_member(query.member, one)) return HTTP_NOT_FOUND;
        members = {&one, 1};
    }
    apr_table_setn(r->headers_out, "X-Content-Type-Options", "nosniff");
    const Controls controls = own_controls(r);
    if (query.is_auto) {
        write_text(r, members);
    } else if (std::strcmp(query.format, "json") == 0) {
        write_json(r, members, controls.token);
    } else {
        PageOptions options;
        options.controls = controls;
        options.member = query.member;
        if (query.refresh != nullptr) options.refresh = refresh_of(query.refresh);
        write_html(r, members, options);
    }
    return OK;
}

}  // namespace cb::httpd
