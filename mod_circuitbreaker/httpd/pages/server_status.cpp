#include "server_status.hpp"

#include "figures.hpp"
#include "section.hpp"
#include "words.hpp"

namespace cb::httpd {
namespace {

/// In the manner of mod_proxy's own lines: `ProxyBalancer[0]Name: ...`.
void write_lines(request_rec* r, unsigned number, const MemberSnapshot& member) noexcept {
    const auto text = [&](const char* key, const char* value) noexcept {
        ap_rprintf(r, "CircuitBreaker[%u]%s: %s\n", number, key, ap_escape_logitem(r->pool, value));
    };
    text("Member", member.name);
    text("Balancer", member.balancer);
    text("Vhost", member.vhost);
    text("State", core::name(member.state()));
    for_each_number(Form::status, member, [&](const Key& key, const char*, std::uint64_t value) noexcept {
        ap_rprintf(r, "CircuitBreaker[%u]%s: %" APR_UINT64_T_FMT "\n", number, key.name, value);
    });
}

void write_short(request_rec* r, const MemberList& members) noexcept {
    std::uint32_t out = 0;
    for (std::uint32_t i = 0; i < members.count; ++i)
        out += is_out(state_of_member(members.index[i])) ? 1U : 0U;
    ap_rprintf(r, "CircuitBreaker Members: %u\nCircuitBreaker Out: %u\n", members.count, out);
    unsigned number = 0;
    for_each_member(members, [&](const MemberSnapshot& member) noexcept { write_lines(r, number++, member); });
}

void write_list_item(const HtmlOut& out, const MemberSnapshot& member) noexcept {
    out.put("<dt>");
    out.text(member.name);
    if (*member.balancer != '\0') {
        out.put(" of ");
        out.text(member.balancer);
    }
    out.print("</dt><dd>%s for %s, %s. %s</dd>\n", core::name(member.state()), span_text(out.p, member.in_state_for()),
              reason_phrase(out.p, member.reason, member.policy), outlook(out.p, member));
}

extern "C" int on_status_hook(request_rec* r, int flags) noexcept {
    const MemberList members = list_members(r->pool);
    if (members.count == 0) return DECLINED;
    if ((flags & AP_STATUS_SHORT) != 0) {
        write_short(r, members);
        return OK;
    }
    const bool is_table = (flags & AP_STATUS_NOTABLE) == 0;
    const HtmlOut out{apr_brigade_create(r->pool, r->connection->bucket_alloc), r->output_filters, r->pool};
    out.put("<hr />\n");
    is_table ? begin_section(out, Controls{}) : out.put("<h2>Circuit breakers</h2>\n<dl>\n");
    for_each_member(members, [&](const MemberSnapshot& member) noexcept {
        is_table ? write_section_row(out, member, Controls{}) : write_list_item(out, member);
    });
    is_table ? end_section(out) : out.put("</dl>\n");
    (void)ap_pass_brigade(r->output_filters, out.bb);  // after what mod_status has buffered
    return OK;
}

}  // namespace

void register_status_hook() noexcept {
    APR_OPTIONAL_HOOK(ap, status_hook, on_status_hook, nullptr, nullptr, APR_HOOK_MIDDLE);
}

}  // namespace cb::httpd
