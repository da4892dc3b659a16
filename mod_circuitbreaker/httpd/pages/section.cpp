#include "section.hpp"

#include "words.hpp"

namespace cb::httpd {
namespace {

void write_rate(const HtmlOut& out, std::uint32_t part, std::uint32_t calls, std::uint32_t limit) noexcept {
    out.print("<td>%u of %u", part, calls);
    if (limit > 0) out.print(" (%u%%, opens at %u%%)", percent_of(part, calls), limit);
    out.put("</td>");
}

}  // namespace

void begin_section(const HtmlOut& out, const Controls& controls) noexcept {
    out.put(
        "<h2>Circuit breakers</h2>\n<table border=\"1\"><tr><th>Balancer</th><th>Member</th><th>State</th>"
        "<th>Since</th><th>Because</th><th>Next</th><th>Failures</th><th>Slow calls</th><th>In a row</th>"
        "<th>Probes in flight</th><th>Refused</th>");
    if (controls.are_there()) out.put("<th>Action</th>");
    out.put("</tr>\n");
}

void write_section_row(const HtmlOut& out, const MemberSnapshot& member, const Controls& controls) noexcept {
    const core::Policy& policy = member.policy;
    out.print("<tr id=\"m-%s\"><td>", member.id);
    out.text(member.balancer);
    out.put("</td><td>");
    out.text(member.name);
    out.print("</td><td><b>%s</b>", core::name(member.state()));
    if (member.word.level > 0) out.print(" (level %u)", member.word.level);
    if (member.is_observing()) out.put(" (observing)");
    out.print("</td><td>%s (%s)</td><td>%s</td><td>%s</td>", local_text(out.p, wall_time(member, member.since)),
              span_text(out.p, member.in_state_for()), reason_phrase(out.p, member.reason, policy),
              outlook(out.p, member));
    write_rate(out, member.sums.failures, member.sums.calls, policy.failure_rate);
    if (policy.slow_call.has_rate()) {
        write_rate(out, member.sums.slow_calls, member.sums.timed_calls, policy.slow_call.rate);
    } else {
        out.print("<td>%s</td>", policy.slow_call.threshold > 0 ? "rate off" : "off");
    }
    out.print("<td>%u", member.word.consecutive);
    if (policy.consecutive_failures > 0) out.print(" (opens at %u)", policy.consecutive_failures);
    out.print("</td><td>%u of %u</td><td>%" APR_UINT64_T_FMT "</td>", member.probes_in_flight(),
              policy.probes.concurrent, member.counts.all_refused());
    if (controls.are_there()) {
        out.put("<td>");
        write_action_form(out, member, controls);
        out.put("</td>");
    }
    out.put("</tr>\n");
}

void end_section(const HtmlOut& out) noexcept {
    out.put("</table>\n");
}

}  // namespace cb::httpd
