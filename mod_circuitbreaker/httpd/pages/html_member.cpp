#include "html_member.hpp"

#include "figures.hpp"
#include "strip.hpp"
#include "words.hpp"

namespace cb::httpd {
namespace {

/// A share of 100 as a bar, with a mark where the breaker opens.
void write_bar(const HtmlOut& out, std::uint32_t percent, std::uint32_t limit) noexcept {
    out.print(
        "<svg class=\"bar\" viewBox=\"0 0 100 4\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
        "<rect class=\"share%s\" width=\"%u\" height=\"4\"/><rect class=\"limit\" x=\"%u\" width=\"2\" "
        "height=\"4\"/></svg>",
        percent >= limit ? " over" : "", percent, limit > 98 ? 98 : limit);
}

/// A share of the window's calls against its limit.
void write_rate(const HtmlOut& out, const MemberSnapshot& member, std::uint32_t part, std::uint32_t calls,
                std::uint32_t limit) noexcept {
    if (calls == 0) {
        out.print("&#8211;<span class=\"sub\">opens at %u %%</span>", limit);
        return;
    }
    const std::uint32_t minimum = member.policy.minimum_calls;
    out.print("%u %%", percent_of(part, calls));
    write_bar(out, percent_of(part, calls), limit);
    out.print("<span class=\"sub\">%u of %u calls; opens at %u %%", part, calls, limit);
    if (calls < minimum) out.print(" of %u or more", minimum);
    out.put("</span>");
}

void write_state_cell(const HtmlOut& out, const MemberSnapshot& member) noexcept {
    write_state(out, member.state());
    out.print(" <b>%s</b>", span_text(out.p, member.in_state_for()));
    if (member.word.level > 0) out.print(" <span class=\"tag\">level %u</span>", member.word.level);
    out.put("<span class=\"sub\">since ");
    write_time(out, member, member.since);
    out.print(": %s</span>", reason_phrase(out.p, member.reason, member.policy));
    const char* const outage = outage_text(out.p, member);
    if (*outage != '\0') out.print("<span class=\"sub\">%s</span>", outage);
    const char* const next = outlook(out.p, member);
    if (*next != '\0') out.print("<span class=\"sub next\"><b>%s</b></span>", next);
    if (core::is_too_cautious(member.too_cautious)) {
        out.print("<span class=\"sub\">too cautious: %s</span>",
                  core::OutageText(member.too_cautious, member.policy).text);
    }
}

void write_row(const HtmlOut& out, const MemberSnapshot& member) noexcept {
    const core::Policy& policy = member.policy;
    const bool is_calm = member.state() == core::State::closed && member.sums.failures == 0 &&
                         member.sums.slow_calls == 0 && member.word.consecutive == 0;
    const char* const mark = is_calm                                     ? " calm"
                             : member.is_out()                           ? " out"
                             : member.state() == core::State::recovering ? " recovering"
                                                                         : "";
    out.print("<tr class=\"member%s\" id=\"m-%s\"><td class=\"wide\"><span class=\"name\">", mark, member.id);
    out.text(member.name);
    out.put("</span>");
    if (member.is_observing())
        out.put("<span class=\"sub\"><span class=\"tag\">observing</span> refuses nothing</span>");
    if (member.breaker == nullptr) out.put("<span class=\"sub\">no longer configured</span>");
    out.put("</td><td class=\"wide\">");
    write_state_cell(out, member);
    out.put("</td><td data-label=\"Failures\">");
    if (policy.failure_rate > 0) {
        write_rate(out, member, member.sums.failures, member.sums.calls, policy.failure_rate);
        if (policy.failure_count > 0) out.print("<span class=\"sub\">or at %u failures</span>", policy.failure_count);
    } else if (policy.failure_count > 0) {
        out.print("%u<span class=\"sub\">of %u calls; opens at %u</span>", member.sums.failures, member.sums.calls,
                  policy.failure_count);
    } else {
        out.print("%u<span class=\"sub\">of %u calls; rate off</span>", member.sums.failures, member.sums.calls);
    }
    out.put("</td><td data-label=\"Slow calls\">");
    if (policy.slow_call.has_rate()) {
        write_rate(out, member, member.sums.slow_calls, member.sums.timed_calls, policy.slow_call.rate);
    } else {
        out.print("<span class=\"quiet\">%s</span>", policy.slow_call.threshold > 0 ? "rate off" : "off");
    }
    out.print("</td><td data-label=\"In a row\">%u", member.word.consecutive);
    if (policy.consecutive_failures > 0) out.print(" of %u", policy.consecutive_failures);
    out.print("</td><td data-label=\"Probes\">%u of %u", member.probes_in_flight(), policy.probes.concurrent);
    out.print("</td><td data-label=\"In flight\">%u", member.in_flight);
    if (policy.max_concurrent > 0) out.print(" of %u", policy.max_concurrent);
    out.print("</td><td data-label=\"Refused\">%" APR_UINT64_T_FMT, member.counts.all_refused());
    if (member.counts.all_would_refuse() > 0) {
        out.print("<span class=\"sub\">%" APR_UINT64_T_FMT " more in Observe</span>", member.counts.all_would_refuse());
    }
    out.put("</td><td class=\"strip-cell wide\" data-label=\"Last hour\">");
    write_strip(out, member);
    out.put("</td></tr>\n");
}

void write_failed_calls(const HtmlOut& out, const MemberSnapshot& member) noexcept {
    out.put("<div><h4>Last failing calls</h4>");
    if (member.failed_calls == 0) {
        out.put("<span class=\"quiet\">none</span></div>\n");
        return;
    }
    out.put(
        "<table><thead><tr><th scope=\"col\">When</th><th scope=\"col\">What</th><th scope=\"col\">Took</th>"
        "<th scope=\"col\">Call</th></tr></thead><tbody>");
    for (std::uint32_t i = member.failed_calls; i > 0; --i) {
        const shm::FailedCall& call = member.failed_call[i - 1];
        out.put("<tr><td class=\"when\">");
        write_time(out, member, call.at);
        out.print("</td><td>%s%s%s</td><td class=\"num\">%s</td><td>", outcome_text(out.p, call.outcome),
                  call.is_slow ? ", slow" : "", call.is_probe ? ", a probe" : "", span_text(out.p, call.latency));
        out.text(method_text(out.p, call.method));
        out.put(" <code>");
        out.text(call.path);
        out.put("</code></td></tr>");
    }
    out.put("</tbody></table></div>\n");
}

void write_changes(const HtmlOut& out, const MemberSnapshot& member) noexcept {
    constexpr std::uint32_t kShown = 12;
    out.put("<div><h4>Last changes</h4>");
    if (member.changes == 0) {
        out.put("<span class=\"quiet\">none</span></div>\n");
        return;
    }
    out.put(
        "<table><thead><tr><th scope=\"col\">When</th><th scope=\"col\">To</th><th scope=\"col\">Because</th>"
        "<th scope=\"col\">Level</th></tr></thead><tbody>");
    for (std::uint32_t i = member.changes; i > 0 && member.changes - i < kShown; --i) {
        const shm::HistoryEntry& change = member.change[i - 1];
        out.put("<tr><td class=\"when\">");
        write_time(out, member, change.at);
        out.print("</td><td class=\"when\">%s</td><td>%s</td><td class=\"num\">%u</td></tr>", core::name(change.to),
                  core::name(change.reason), change.level);
    }
    out.put("</tbody></table></div>\n");
}

void write_totals(const HtmlOut& out, const MemberSnapshot& member) noexcept {
    out.put("<div><h4>In all</h4><table><tbody>");
    for_each_number(Form::html, member, [&](const Key& key, const char* label, std::uint64_t value) noexcept {
        if (value == 0 && !key.shows_zero) return;
        const bool is_status = label != nullptr && apr_isdigit(*label);
        out.print("<tr><td>%s%s</td><td class=\"num\">%" APR_UINT64_T_FMT "</td></tr>",
                  is_status ? "answered " : key.name, label != nullptr ? label : "", value);
    });
    out.put("</tbody></table></div>\n");
}

void write_policy(const HtmlOut& out, const MemberSnapshot& member) noexcept {
    const apr_array_header_t* const lines = policy_lines(out.p, member);
    if (lines->nelts == 0) return;
    out.put("<div class=\"whole\"><h4>Policy in force</h4><ul class=\"policy\">");
    for (int i = 0; i < lines->nelts; ++i) {
        const PolicyLine& line = APR_ARRAY_IDX(lines, i, const PolicyLine);
        out.print("<li><code>%s ", line.name);
        out.text(line.value);
        out.put("</code></li>");
    }
    out.put("</ul></div>\n");
}

}  // namespace

void write_state(const HtmlOut& out, core::State state) noexcept {
    const char* const name = core::name(state);
    out.print("<span class=\"state %s\">%s</span>", name, name);
}

void write_time(const HtmlOut& out, const MemberSnapshot& member, core::Millis at) noexcept {
    const apr_time_t time = wall_time(member, at);
    out.print("<time datetime=\"%s\">%s</time>", utc_text(out.p, time), local_text(out.p, time));
}

void write_member_rows(const HtmlOut& out, const MemberSnapshot& member, const PageOptions& options,
                       bool with_details) noexcept {
    write_row(out, member);
    out.put("<tr class=\"more\"><td colspan=\"9\">");
    if (!with_details) {
        out.print("<a class=\"quiet\" href=\"?member=%s\">Failing calls, changes, policy</a></td></tr>\n", member.id);
        return;
    }
    const bool is_open = member.is_out() || options.member != nullptr;
    out.print("<details id=\"d-%s\"%s><summary>Failing calls, changes, policy%s</summary>\n", member.id,
              is_open ? " open" : "", options.controls.are_there() ? ", actions" : "");
    if (options.controls.are_there() && member.breaker != nullptr) write_action_form(out, member, options.controls);
    out.put("<div class=\"blocks\">\n");
    write_failed_calls(out, member);
    write_changes(out, member);
    write_totals(out, member);
    write_policy(out, member);
    out.put("</div></details></td></tr>\n");
}

}  // namespace cb::httpd
