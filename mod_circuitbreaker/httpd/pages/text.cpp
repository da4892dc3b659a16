#include "text.hpp"

#include "figures.hpp"

namespace cb::httpd {
namespace {

/// A line must not end before it ends.
const char* one_line(request_rec* r, const char* text) noexcept {
    char* const copy = apr_pstrdup(r->pool, text);
    for (char* at = copy; *at != '\0'; ++at) {
        if (apr_iscntrl(*at)) *at = '?';
    }
    return copy;
}

void put_member(request_rec* r, const MemberSnapshot& member) noexcept {
    ap_rprintf(r, "Member: %s\n", one_line(r, member.name));
    ap_rprintf(r, "Balancer: %s\n", one_line(r, member.balancer));
    ap_rprintf(r, "Vhost: %s\n", one_line(r, member.vhost));
    ap_rprintf(r, "Id: %s\n", member.id);
    ap_rprintf(r, "Mode: %s\n", member.breaker != nullptr ? mode_name(member.policy.mode) : "unknown");
    ap_rprintf(r, "State: %s\n", core::name(member.state()));
    ap_rprintf(r, "Reason: %s\n", core::name(member.reason));
    for_each_number(Form::text, member, [&](const Key& key, const char* label, std::uint64_t value) noexcept {
        ap_rvputs(r, key.name, label != nullptr ? "-" : "", label != nullptr ? label : "", nullptr);
        ap_rprintf(r, ": %" APR_UINT64_T_FMT "\n", value);
    });
    ap_rputs("\n", r);
}

}  // namespace

void write_text(request_rec* r, const MemberList& members) noexcept {
    ap_set_content_type(r, "text/plain; charset=utf-8");
    for_each_member(members, [&](const MemberSnapshot& member) noexcept { put_member(r, member); });
}

}  // namespace cb::httpd
