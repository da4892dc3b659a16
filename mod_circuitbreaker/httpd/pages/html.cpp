#include "html.hpp"

#include <algorithm>

#include <cstring>

#include "style.hpp"
#include "words.hpp"

namespace cb::httpd {
namespace {

/// With more members than that, those that are well have their details on a page of their own.
constexpr std::uint32_t kManyMembers = 100;

struct Census {
    std::uint32_t in_state[core::kStates] = {};
    std::uint32_t out = 0;
    std::uint32_t observed = 0;  // would be out, if CircuitBreaker were On
    std::uint32_t recovering = 0;
    std::uint32_t members = 0;
};

Census census_of(const MemberList& members) noexcept {
    Census census;
    for (std::uint32_t i = 0; i < members.count; ++i) {
        const core::State state = state_of_member(members.index[i]);
        ++census.in_state[static_cast<std::size_t>(state)];
        ++census.members;
        (mode_of_member(members.index[i]) == core::Mode::observe ? census.observed : census.out) +=
            is_out(state) ? 1U : 0U;
        census.recovering += state == core::State::recovering ? 1U : 0U;
    }
    return census;
}

/// 32 hexadecimal digits, for this response only; "" without randomness, and then the page has neither style nor
/// script.
const char* draw_nonce(apr_pool_t* p) noexcept {
    unsigned char bytes[16];
    if (apr_generate_random_bytes(bytes, sizeof bytes) != APR_SUCCESS) return "";
    char* const text = static_cast<char*>(apr_palloc(p, 2 * sizeof bytes + 1));
    ap_bin2hex(bytes, sizeof bytes, text);
    return text;
}

void set_headers(request_rec* r, const char* nonce) noexcept {
    ap_set_content_type(r, "text/html; charset=utf-8");
    apr_table_setn(r->headers_out, "Content-Security-Policy",
                   apr_psprintf(r->pool,
                                "default-src 'none'; style-src 'nonce-%s'; script-src 'nonce-%s'; connect-src 'self'; "
                                "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
                                nonce, nonce));
    // An action is taken from this page only if it says where it comes from.
    apr_table_setn(r->headers_out, "Referrer-Policy", "same-origin");
}

void write_head(const HtmlOut& out, const Census& census, const PageOptions& options, const char* nonce) noexcept {
    out.put(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"robots\" content=\"noindex\">\n");
    if (options.refresh > 0) {
        out.print("<noscript><meta http-equiv=\"refresh\" content=\"%u\"></noscript>\n", options.refresh);
    }
    if (census.out > 0) {
        out.print("<title>%u out: circuit breakers</title>\n", census.out);
    } else {
        out.put("<title>Circuit breakers</title>\n");
    }
    out.put("<link rel=\"icon\" href=\"data:,\">\n");
    out.print("<style nonce=\"%s\">", nonce);
    out.put(kStyle);
    out.print("</style></head>\n<body data-refresh=\"%u\">\n", options.refresh);
}

void write_header(const HtmlOut& out, const request_rec* r, const PageOptions& options) noexcept {
    const apr_time_t now = apr_time_now();
    out.put("<header><h1>Circuit breakers</h1>\n<span class=\"quiet\">of ");
    out.text(ap_get_server_name(const_cast<request_rec*>(r)));  // httpd's parameter is not const
    out.print(", as of <time datetime=\"%s\">%s</time> (the server's clock); ", utc_text(out.p, now),
              local_text(out.p, now));
    const bool is_one = options.member != nullptr;
    const char* const same = is_one ? apr_pstrcat(out.p, "&amp;member=", options.member, nullptr) : "";
    if (options.refresh > 0) {
        out.print("every %u s, <a href=\"?refresh=0%s\">stop</a>", options.refresh, same);
    } else {
        out.print("<a href=\"?refresh=%u%s\">follow</a>", PageOptions{}.refresh, same);
    }
    out.print(" &#183; <a href=\"?format=json%s\">JSON</a> &#183; <a href=\"?auto%s\">text</a>", same, same);
    if (is_one) out.put(" &#183; <a href=\"?\">all members</a>");
    out.put("</span></header>\n");
}

void write_counts(const HtmlOut& out, const Census& census) noexcept {
    out.put("<ul class=\"counts\">");
    for (std::uint32_t i = 0; i < core::kStates; ++i) {
        const auto state = static_cast<core::State>(i);
        if (census.in_state[i] == 0 && state != core::State::closed) continue;
        out.print("<li><b>%u</b>", census.in_state[i]);
        write_state(out, state);
        out.put("</li>");
    }
    out.put("</ul>\n");
}

/// Who is not well, first of all.
void write_trouble(const HtmlOut& out, const MemberList& members, const Census& census) noexcept {
    if (census.members == 0) {
        out.put(
            "<p class=\"notice\">No member has a circuit breaker: <code>CircuitBreaker On</code> (or Observe) "
            "gives it one.</p>\n");
        return;
    }
    if (census.out + census.observed + census.recovering == 0) {
        out.print("<p class=\"notice\">%s</p>\n",
                  census.members == 1 ? "The member takes its traffic." : "All members take their traffic.");
        return;
    }
    out.print("<div class=\"notice%s\">%u of %u members %s out", census.out > 0 ? " bad" : "", census.out,
              census.members, census.out == 1 ? "is" : "are");
    if (census.recovering > 0) out.print(", %u recovering", census.recovering);
    if (census.observed > 0) out.print(", %u would be out if it were not only observed", census.observed);
    out.put(":<ul>\n");
    const auto is_in_trouble = [](core::State state) noexcept {
        return is_out(state) || state == core::State::recovering;
    };
    auto* const index = static_cast<std::uint32_t*>(apr_palloc(out.p, members.count * sizeof(std::uint32_t)));
    const auto* const end = std::copy_if(members.index, members.index + members.count, index,
                                         [&](std::uint32_t i) noexcept { return is_in_trouble(state_of_member(i)); });
    const MemberList troubled{index, static_cast<std::uint32_t>(end - index)};
    for_each_member(troubled, [&](const MemberSnapshot& member) noexcept {
        if (!is_in_trouble(member.state())) return;
        out.put("<li>");
        write_state(out, member.state());
        out.print(" <a class=\"name\" href=\"#m-%s\">", member.id);
        out.text(member.name);
        out.put("</a>");
        if (*member.balancer != '\0') {
            out.put(" of ");
            out.text(member.balancer);
        }
        out.print(": for <b>%s</b> (since ", span_text(out.p, member.in_state_for()));
        write_time(out, member, member.since);
        out.print("), %s; ", reason_phrase(out.p, member.reason, member.policy));
        const char* const outage = outage_text(out.p, member);
        out.print("%s%s<b>%s</b>", outage, *outage != '\0' ? "; " : "", outlook(out.p, member));
        if (member.is_observing()) out.put(" <span class=\"tag\">observing: refuses nothing</span>");
        out.put("</li>\n");
    });
    out.put("</ul></div>\n");
}

/// Begins what the member belongs to, if that is not what the last one belonged to.
class Groups {
  public:
    explicit Groups(const HtmlOut& out) noexcept : out_(out) {}

    void enter(const MemberSnapshot& member) noexcept {
        const std::uint64_t vhost = member.breaker != nullptr ? member.breaker->identity.vhost : 0;
        const bool is_other_vhost = !is_open_ || vhost != vhost_;
        if (!is_other_vhost && std::strcmp(balancer_, member.balancer) == 0) return;
        leave();
        if (is_other_vhost) {
            out_.put("<h2>");
            out_.text(member.breaker != nullptr ? member.vhost : "No longer configured");
            out_.put("</h2>\n");
        }
        out_.put("<section class=\"group\"><h3>");
        out_.text(*member.balancer != '\0' ? member.balancer : "Workers without a balancer");
        out_.put("</h3>\n<table>");
        out_.put(kMemberColumns);
        out_.put("<tbody>\n");
        is_open_ = true;
        vhost_ = vhost;
        apr_cpystrn(balancer_, member.balancer, sizeof balancer_);
    }
    void leave() noexcept {
        if (is_open_) out_.put("</tbody></table></section>\n");
        is_open_ = false;
    }

  private:
    const HtmlOut& out_;
    bool is_open_ = false;
    std::uint64_t vhost_ = 0;
    char balancer_[shm::Identity::kBalancer] = "";
};

void write_footer(const HtmlOut& out, const char* nonce) noexcept {
    out.put("<footer><details id=\"states\"><summary>What the states mean</summary><dl>\n");
    constexpr struct {
        core::State state;
        const char* meaning;
    } kMeanings[] = {
        {core::State::closed, "the member takes its traffic"},
        {core::State::open, "it has failed and is refused, until it may be probed"},
        {core::State::half_open, "a few requests, the probes, find out whether it is well again"},
        {core::State::recovering, "it is well again and gets a growing share of its requests"},
        {core::State::forced_open, "an operator keeps it out"},
        {core::State::forced_closed, "an operator lets everything through, whatever happens"},
    };
    for (const auto& each : kMeanings) {
        out.put("<dt>");
        write_state(out, each.state);
        out.print("</dt><dd>%s</dd>\n", each.meaning);
    }
    out.print("</dl></details></footer>\n<script nonce=\"%s\">", nonce);
    out.put(kScript);
    out.put("</script>\n</body></html>\n");
}

}  // namespace

void write_html(request_rec* r, const MemberList& members, const PageOptions& options) noexcept {
    apr_pool_t* each = nullptr;  // a member's texts go with it
    if (apr_pool_create(&each, r->pool) != APR_SUCCESS) return;
    const char* const nonce = draw_nonce(r->pool);
    set_headers(r, nonce);
    apr_bucket_brigade* const bb = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    const HtmlOut out{bb, r->output_filters, each};
    const Census census = census_of(members);
    write_head(out, census, options, nonce);
    out.put("<div id=\"trouble\" role=\"status\"></div>\n<main>\n");
    write_header(out, r, options);
    if (census.members > 0) write_counts(out, census);
    write_trouble(out, members, census);
    Groups groups(out);
    for_each_member(members, [&](const MemberSnapshot& member) noexcept {
        groups.enter(member);
        write_member_rows(out, member, options, members.count <= kManyMembers || member.state() != core::State::closed);
        apr_pool_clear(each);
    });
    groups.leave();
    out.put("</main>\n");
    write_footer(out, nonce);
    (void)ap_pass_brigade(r->output_filters, bb);
}

}  // namespace cb::httpd
