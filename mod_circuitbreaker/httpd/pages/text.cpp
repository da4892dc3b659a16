#include "text.hpp"

#include "shm/refusal.hpp"

namespace cb::httpd {
namespace {

void put(request_rec* r, const char* key, std::uint64_t value) noexcept {
    ap_rprintf(r, "%s: %" APR_UINT64_T_FMT "\n", key, value);
}

void put_policy(request_rec* r, const core::Policy& policy) noexcept {
    put(r, "Minimum-calls", policy.minimum_calls);
    put(r, "Failure-percent-limit", policy.failure_rate);
    put(r, "Slow-percent-limit", policy.slow_call.threshold > 0 ? policy.slow_call.rate : 0);
    put(r, "Slow-call-ms", policy.slow_call.threshold);
    put(r, "Consecutive-limit", policy.consecutive_failures);
    put(r, "In-flight-limit", policy.max_concurrent);
}

void put_counts(request_rec* r, const Counts& counts) noexcept {
    put(r, "Calls", counts.calls);
    for (std::uint32_t i = 0; i < core::kVerdicts; ++i) {
        ap_rprintf(r, "Verdict-%s: %" APR_UINT64_T_FMT "\n", core::name(static_cast<core::Verdict>(i)),
                   counts.verdict[i]);
    }
    for (std::uint32_t i = 0; i < core::kClasses; ++i) {
        const auto outcome = static_cast<core::Outcome>(static_cast<std::uint32_t>(core::Outcome::connect) + i);
        ap_rprintf(r, "Outcome-%s: %" APR_UINT64_T_FMT "\n", core::class_name(outcome), counts.outcome_class[i]);
    }
    for (std::uint32_t i = 0; i < core::kHundredCount; ++i)
        ap_rprintf(r, "Outcome-%s: %" APR_UINT64_T_FMT "\n", core::kHundreds[i], counts.status[i]);
    put(r, "Slow", counts.slow);
    put(r, "Probes", counts.probes);
    put(r, "Probes-lost", counts.probes_lost);
    put(r, "Late", counts.late);
    put(r, "Suppressed", counts.suppressed);
    put(r, "Failovers", counts.failovers);
    put(r, "Probed-early", counts.early);
    put(r, "Refused", counts.all_refused());
    put(r, "Would-refuse", counts.all_would_refuse());
    for (std::uint32_t i = 1; i < shm::kRefusals; ++i) {
        ap_rprintf(r, "Refused-%s: %" APR_UINT64_T_FMT "\n", name(static_cast<shm::Refusal>(i)), counts.refused[i]);
    }
    put(r, "Transitions", counts.all_transitions());
    put(r, "Opened", counts.opened());
    for (std::uint32_t i = 0; i < core::kStates; ++i) {
        ap_rprintf(r, "State-ms-%s: %" APR_UINT64_T_FMT "\n", core::name(static_cast<core::State>(i)),
                   counts.state_ms[i]);
    }
}

/// A line must not end before it ends.
const char* one_line(request_rec* r, const char* text) noexcept {
    char* const copy = apr_pstrdup(r->pool, text);
    for (char* at = copy; *at != '\0'; ++at) {
        if (apr_iscntrl(*at)) *at = '?';
    }
    return copy;
}

void put_member(request_rec* r, const MemberSnapshot& member) noexcept {
    char id[kIdText];
    write_id(id, member.id);
    ap_rprintf(r, "Member: %s\n", one_line(r, member.name));
    ap_rprintf(r, "Balancer: %s\n", one_line(r, member.balancer));
    ap_rprintf(r, "Vhost: %s\n", one_line(r, member.vhost));
    ap_rprintf(r, "Id: %s\n", id);
    ap_rprintf(r, "Mode: %s\n", member.breaker != nullptr ? mode_name(member.policy.mode) : "unknown");
    ap_rprintf(r, "State: %s\n", core::name(member.state()));
    ap_rprintf(r, "Reason: %s\n", core::name(member.reason));
    put(r, "Level", member.word.level);
    put(r, "Generation", member.changes_ever);
    put(r, "Since-ms", member.in_state_for());
    put(r, "Next-probe-ms", member.next_probe_in);
    put(r, "Ramp-percent", member.ramp_percent);
    put(r, "Window-calls", member.sums.calls);
    put(r, "Window-failures", member.sums.failures);
    put(r, "Window-timed-calls", member.sums.timed_calls);
    put(r, "Window-slow", member.sums.slow_calls);
    put(r, "Consecutive", member.word.consecutive);
    put(r, "Probes-in-flight", member.probes_in_flight());
    put(r, "Probes-overdue", member.leases.overdue);
    put(r, "Probes-limit", member.policy.probes.concurrent);
    put(r, "Probes-succeeded", member.word.successes);
    put(r, "Probes-failed", member.word.failures);
    put(r, "In-flight", member.in_flight);
    put(r, "Leases", member.leases.taken);
    put_policy(r, member.policy);
    put_counts(r, member.counts);
    ap_rputs("\n", r);
}

}  // namespace

void write_text(request_rec* r, const MemberList& members) noexcept {
    ap_set_content_type(r, "text/plain; charset=utf-8");
    for (std::uint32_t i = 0; i < members.count; ++i) {
        MemberSnapshot member;
        read_member(member, members.index[i]);
        put_member(r, member);
    }
}

}  // namespace cb::httpd
