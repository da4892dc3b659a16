#include "manager.hpp"

#include <cstring>

#include "figures.hpp"
#include "httpd/runtime.hpp"
#include "section.hpp"

namespace cb::httpd {
namespace {

constexpr const char* kFilter = "CIRCUITBREAKER_MANAGER";
constexpr const char* kHtmlEnd = "</body>";
constexpr const char* kXmlEnd = "</httpd:manager>";
constexpr apr_size_t kTail = 64;  // the page's end is within so many bytes

struct Kept {
    apr_bucket_brigade* page = nullptr;  // until its end has come
};

/// Calls `visit(member)` for every breaker of this virtual host's balancers, those added at run time included.
template <class Visit>
void for_each_breaker(const request_rec* r, Visit visit) noexcept {
    runtime.registry->know_all_members();
    const proxy_server_conf* const conf = proxy_conf(r->server);
    auto* const balancers = reinterpret_cast<proxy_balancer*>(conf->balancers->elts);
    for (int b = 0; b < conf->balancers->nelts; ++b) {
        for (const proxy_worker* const worker : runtime.registry->members(balancers[b])) {
            const Breaker* const breaker = runtime.registry->find(*worker);
            if (breaker == nullptr) continue;
            MemberSnapshot member;
            const std::uint32_t index = runtime.segment.index_of(*breaker->slot.load(std::memory_order_acquire));
            if (read_member(member, index)) visit(member);
        }
    }
}

void write_html_section(request_rec* r, const HtmlOut& out) noexcept {
    const Controls controls = controls_of_server(r);
    bool is_begun = false;
    for_each_breaker(r, [&](const MemberSnapshot& member) noexcept {
        if (!is_begun) begin_section(out, controls);
        is_begun = true;
        write_section_row(out, member, controls);
    });
    if (is_begun) end_section(out);
}

void write_xml_section(const request_rec* r, const HtmlOut& out) noexcept {
    out.put("  <cb:breakers xmlns:cb='urn:mod_circuitbreaker:1'>\n");
    for_each_breaker(r, [&](const MemberSnapshot& member) noexcept {
        out.print("    <cb:breaker>\n      <cb:id>%s</cb:id>\n      <cb:balancer>", member.id);
        out.text(member.balancer);
        out.put("</cb:balancer>\n      <cb:worker>");
        out.text(member.name);
        out.print("</cb:worker>\n      <cb:mode>%s</cb:mode>\n      <cb:state>%s</cb:state>\n",
                  mode_name(member.policy.mode), core::name(member.state()));
        for_each_number(Form::xml, member, [&](const Key& key, const char*, std::uint64_t value) noexcept {
            out.print("      <cb:%s>%" APR_UINT64_T_FMT "</cb:%s>\n", key.name, value, key.name);
        });
        out.put("    </cb:breaker>\n");
    });
    out.put("  </cb:breakers>\n");
}

/// Where in the page the last `mark` stands; the sentinel if it isn't at the page's end.
apr_bucket* find_end(apr_bucket_brigade* page, const char* mark) noexcept {
    apr_off_t size = 0;
    if (apr_brigade_length(page, 1, &size) != APR_SUCCESS || size <= 0) return APR_BRIGADE_SENTINEL(page);
    const apr_off_t begin = size > static_cast<apr_off_t>(kTail) ? size - static_cast<apr_off_t>(kTail) : 0;
    apr_bucket* at = nullptr;
    if (apr_brigade_partition(page, begin, &at) != APR_SUCCESS) return APR_BRIGADE_SENTINEL(page);
    char tail[kTail + 1] = {};
    apr_size_t length = 0;
    for (apr_bucket* b = at; b != APR_BRIGADE_SENTINEL(page); b = APR_BUCKET_NEXT(b)) {
        const char* data = nullptr;
        apr_size_t read = 0;
        if (APR_BUCKET_IS_METADATA(b)) continue;
        if (apr_bucket_read(b, &data, &read, APR_BLOCK_READ) != APR_SUCCESS || length + read > kTail) break;
        std::memcpy(tail + length, data, read);
        length += read;
    }
    const char* found = nullptr;
    for (const char* next = tail; (next = std::strstr(next, mark)) != nullptr; ++next)
        found = next;
    if (found == nullptr || apr_brigade_partition(page, begin + (found - tail), &at) != APR_SUCCESS) {
        return APR_BRIGADE_SENTINEL(page);
    }
    return at;
}

void add_section(request_rec* r, apr_bucket_brigade* page) noexcept {
    const bool is_xml = r->content_type != nullptr && std::strstr(r->content_type, "xml") != nullptr;
    apr_bucket* const end = find_end(page, is_xml ? kXmlEnd : kHtmlEnd);
    if (end == APR_BRIGADE_SENTINEL(page)) return;
    apr_bucket_brigade* const section = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    const HtmlOut out{section, nullptr, r->pool};
    is_xml ? write_xml_section(r, out) : write_html_section(r, out);
    while (!APR_BRIGADE_EMPTY(section)) {
        apr_bucket* const b = APR_BRIGADE_FIRST(section);
        APR_BUCKET_REMOVE(b);
        APR_BUCKET_INSERT_BEFORE(end, b);
    }
    apr_table_unset(r->headers_out, "Content-Length");
}

bool has_end(apr_bucket_brigade* bb) noexcept {
    for (apr_bucket* b = APR_BRIGADE_FIRST(bb); b != APR_BRIGADE_SENTINEL(bb); b = APR_BUCKET_NEXT(b)) {
        if (APR_BUCKET_IS_EOS(b)) return true;
    }
    return false;
}

extern "C" apr_status_t manager_filter(ap_filter_t* f, apr_bucket_brigade* bb) noexcept {
    auto& kept = *static_cast<Kept*>(f->ctx);
    if (!has_end(bb)) return ap_save_brigade(f, &kept.page, &bb, f->r->pool);
    if (kept.page != nullptr) APR_BRIGADE_PREPEND(bb, kept.page);
    if (f->r->status == HTTP_OK) add_section(f->r, bb);
    ap_filter_t* const next = f->next;
    ap_remove_output_filter(f);
    return ap_pass_brigade(next, bb);
}

}  // namespace

void register_manager_filter() noexcept {
    ap_register_output_filter(kFilter, manager_filter, nullptr, AP_FTYPE_RESOURCE);
}

extern "C" void cb_on_insert_filter(request_rec* r) noexcept {
    if (r->handler == nullptr || std::strcmp(r->handler, "balancer-manager") != 0 || runtime.registry == nullptr)
        return;
    ap_add_output_filter(kFilter, apr_pcalloc(r->pool, sizeof(Kept)), r, r->connection);
}

}  // namespace cb::httpd
