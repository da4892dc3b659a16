#include "json.hpp"

#include "json_page_writer.hpp"
#include "shm/refusal.hpp"
#include "words.hpp"

namespace cb::httpd {
namespace {

constexpr int kVersion = 1;

void put_window(JsonPageWriter& out, const MemberSnapshot& member) noexcept {
    const core::Policy& policy = member.policy;
    const core::Sums& sums = member.sums;
    out.begin_object("window");
    out.number_if(policy.window.calls == 0, "span_ms", policy.window.span);
    out.number_if(policy.window.calls > 0, "span_calls", policy.window.calls);
    out.number("calls", sums.calls);
    out.number("failures", sums.failures);
    out.ratio("failure_rate", sums.failures, sums.calls);
    out.number("timed_calls", sums.timed_calls);
    out.number("slow_calls", sums.slow_calls);
    out.ratio("slow_rate", sums.slow_calls, sums.timed_calls);
    out.number("consecutive_failures", member.word.consecutive);
    out.end_object();
}

void put_limits(JsonPageWriter& out, const core::Policy& policy) noexcept {
    const bool has_slow = policy.slow_call.threshold > 0;
    out.begin_object("limits");
    out.number("minimum_calls", policy.minimum_calls);
    out.number_if(policy.failure_rate > 0, "failure_percent", policy.failure_rate);
    out.number_if(policy.consecutive_failures > 0, "consecutive_failures", policy.consecutive_failures);
    out.number_if(has_slow, "slow_call_ms", policy.slow_call.threshold);
    out.number_if(has_slow, "slow_percent", policy.slow_call.rate);
    out.number_if(policy.max_concurrent > 0, "in_flight", policy.max_concurrent);
    out.end_object();
}

void put_probes(JsonPageWriter& out, const MemberSnapshot& member) noexcept {
    out.begin_object("probes");
    out.number("in_flight", member.probes_in_flight());
    out.number("overdue", member.leases.overdue);
    out.number("concurrent", member.policy.probes.concurrent);
    out.number("succeeded", member.word.successes);
    out.number("needed", member.policy.probes.successes);
    out.number("failed", member.word.failures);
    out.number("tolerated", member.policy.probes.tolerate);
    out.number("neutral", member.word.neutral);
    out.end_object();
}

void put_refusals(JsonPageWriter& out, const char* key, const std::uint64_t (&refusals)[shm::kRefusals]) noexcept {
    out.begin_object(key);
    for (std::uint32_t i = 1; i < shm::kRefusals; ++i)
        out.number(name(static_cast<shm::Refusal>(i)), refusals[i]);
    out.end_object();
}

void put_totals(JsonPageWriter& out, const Counts& counts) noexcept {
    out.begin_object("totals");
    out.number("calls", counts.calls);
    out.begin_object("verdicts");
    for (std::uint32_t i = 0; i < core::kVerdicts; ++i)
        out.number(core::name(static_cast<core::Verdict>(i)), counts.verdict[i]);
    out.end_object();
    out.begin_object("outcomes");
    for (std::uint32_t i = 0; i < core::kClasses; ++i) {
        const auto outcome = static_cast<core::Outcome>(static_cast<std::uint32_t>(core::Outcome::connect) + i);
        out.number(core::class_name(outcome), counts.outcome_class[i]);
    }
    for (std::uint32_t i = 0; i < core::kHundredCount; ++i)
        out.number(core::kHundreds[i], counts.status[i]);
    out.end_object();
    out.number("slow", counts.slow);
    out.number("probes", counts.probes);
    out.number("probes_lost", counts.probes_lost);
    out.number("late", counts.late);
    out.number("suppressed", counts.suppressed);
    out.number("failovers", counts.failovers);
    out.number("probed_early", counts.early);
    put_refusals(out, "refused", counts.refused);
    put_refusals(out, "would_refuse", counts.would_refuse);
    out.number("transitions", counts.all_transitions());
    out.number("opened", counts.opened());
    out.begin_object("state_ms");
    for (std::uint32_t i = 0; i < core::kStates; ++i)
        out.number(core::name(static_cast<core::State>(i)), counts.state_ms[i]);
    out.end_object();
    out.end_object();
}

void put_changes(JsonPageWriter& out, apr_pool_t* p, const MemberSnapshot& member) noexcept {
    out.begin_array("changes");
    for (std::uint32_t i = 0; i < member.changes; ++i) {
        const shm::HistoryEntry& change = member.change[i];
        out.begin_object();
        out.text("time", utc_text(p, wall_time(member, change.at)));
        out.text("state", core::name(change.to));
        out.text("reason", core::name(change.reason));
        out.number("level", change.level);
        out.end_object();
    }
    out.end_array();
}

void put_failed_calls(JsonPageWriter& out, apr_pool_t* p, const MemberSnapshot& member) noexcept {
    out.begin_array("failed_calls");
    for (std::uint32_t i = 0; i < member.failed_calls; ++i) {
        const shm::FailedCall& call = member.failed_call[i];
        out.begin_object();
        out.text("time", utc_text(p, wall_time(member, call.at)));
        out.text("outcome", outcome_text(p, call.outcome));
        out.number("latency_ms", call.latency);
        out.text("method", method_text(p, call.method));
        out.text("path", *call.path != '\0' ? call.path : nullptr);
        out.end_object();
    }
    out.end_array();
}

void put_policy(JsonPageWriter& out, apr_pool_t* p, const MemberSnapshot& member) noexcept {
    const apr_array_header_t* const lines = policy_lines(p, member);
    out.begin_array("policy");
    for (int i = 0; i < lines->nelts; ++i) {
        const PolicyLine& line = APR_ARRAY_IDX(lines, i, const PolicyLine);
        out.text(nullptr, apr_pstrcat(p, line.name, " ", line.value, nullptr));
    }
    out.end_array();
}

void put_member(JsonPageWriter& out, apr_pool_t* p, const MemberSnapshot& member) noexcept {
    char id[kIdText];
    write_id(id, member.id);
    out.begin_object();
    out.text("id", id);
    out.text("vhost", member.breaker != nullptr ? member.vhost : nullptr);
    out.text("balancer", *member.balancer != '\0' ? member.balancer : nullptr);
    out.text("member", member.name);
    out.text("mode", member.breaker != nullptr ? mode_name(member.policy.mode) : nullptr);
    out.text("state", core::name(member.state()));
    out.text("since", utc_text(p, wall_time(member, member.since)));
    out.number("since_ms", member.in_state_for());
    out.text("reason", member.reason != core::Reason::none ? core::name(member.reason) : nullptr);
    out.number("level", member.word.level);
    out.number("generation", member.changes_ever);
    out.number_if(member.state() == core::State::open, "next_probe_ms", member.next_probe_in);
    out.number_if(member.state() == core::State::recovering, "ramp_percent", member.ramp_percent);
    put_window(out, member);
    put_limits(out, member.policy);
    put_probes(out, member);
    out.number("in_flight", member.in_flight);
    put_totals(out, member.counts);
    put_changes(out, p, member);
    put_failed_calls(out, p, member);
    put_policy(out, p, member);
    out.end_object();
}

}  // namespace

void write_json(request_rec* r, const MemberList& members, const char* token) noexcept {
    ap_set_content_type(r, "application/json");
    apr_pool_t* each = nullptr;  // a member's texts go with it
    if (apr_pool_create(&each, r->pool) != APR_SUCCESS) return;
    JsonPageWriter out(r, each);
    out.begin_object();
    out.number("version", kVersion);
    out.text("time", utc_text(r->pool, apr_time_now()));
    out.text("token", token);
    out.begin_array("members");
    for (std::uint32_t i = 0; i < members.count; ++i) {
        MemberSnapshot member;
        read_member(member, members.index[i]);
        put_member(out, each, member);
        apr_pool_clear(each);
    }
    out.end_array();
    out.end_object();
    ap_rputs("\n", r);
}

}  // namespace cb::httpd
