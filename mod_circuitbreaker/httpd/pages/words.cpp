#include "words.hpp"

#include <cstring>

#include "httpd/config/parse.hpp"
#include "httpd/shown.hpp"

namespace cb::httpd {
namespace {

constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

const char* number_or_off(apr_pool_t* p, std::uint32_t number) noexcept {
    return number > 0 ? apr_psprintf(p, "%u", number) : "Off";
}

const char* on_off(bool is_on) noexcept {
    return is_on ? "On" : "Off";
}

const char* open_time_text(apr_pool_t* p, const core::OpenTime& open) noexcept {
    return apr_psprintf(p, "%s max=%s factor=%u.%03u jitter=%u min=%s notice=%s retry-after=%s",
                        duration_text(p, open.base), duration_text(p, open.max), open.factor_milli / 1000,
                        open.factor_milli % 1000, open.jitter, duration_text(p, open.min),
                        open.notice > 0 ? duration_text(p, open.notice) : "Off", on_off(open.retry_after));
}

const char* probes_text(apr_pool_t* p, const core::Probes& probes) noexcept {
    const auto share = [p](const char* key, std::uint32_t number, bool is_share) noexcept {
        return apr_psprintf(p, " %s=%u%s", key, number, is_share ? "%" : "");
    };
    return apr_psprintf(p, "%u concurrent=%u%s%s%s", probes.round, probes.concurrent,
                        share("tolerate", probes.tolerate, probes.is_tolerate_share),
                        probes.successes > 0 ? share("successes", probes.successes, probes.is_successes_share) : "",
                        probes.max > probes.round ? apr_psprintf(p, " max=%u", probes.max) : "");
}

const char* failover_text(apr_pool_t* p, const core::Failover& failover) noexcept {
    if (failover.mode == core::FailoverMode::off) return "Off";
    return apr_psprintf(
        p, "%s budget=%u tries=%u%s", failover.mode == core::FailoverMode::all ? "All" : "Probes", failover.budget,
        failover.tries,
        failover.timeout > 0 ? apr_pstrcat(p, " timeout=", duration_text(p, failover.timeout), nullptr) : "");
}

/// As it was written, but for the values that a condition compares with.
const char* rule_text(apr_pool_t* p, core::Rule codes, bool is_for_slow, const char* reason) noexcept {
    const char* text = core::name(codes.verdict);
    for (std::uint32_t i = 0; i < codes.ranges; ++i) {
        const core::CodeRange& range = codes.range[i];
        const char* const first = outcome_text(p, static_cast<core::Outcome>(range.first));
        text = range.first == range.last ? apr_pstrcat(p, text, " ", first, nullptr)
                                         : apr_psprintf(p, "%s %s-%u", text, first, static_cast<unsigned>(range.last));
    }
    if (is_for_slow) text = apr_pstrcat(p, text, " slow", nullptr);
    return reason != nullptr ? apr_pstrcat(p, text, " ", reason, nullptr) : text;
}

void add_rules(apr_pool_t* p, apr_array_header_t* lines, const char* name, const RuleList& rules) noexcept {
    for (int i = 0; i < rules.count; ++i) {
        const VerdictRule& rule = *rules.rule[i];
        APR_ARRAY_PUSH(lines, PolicyLine) = {name, rule_text(p, rule.codes, rule.is_for_slow, rule.reason)};
    }
}

const char* slow_call_text(apr_pool_t* p, const core::SlowCall& slow) noexcept {
    if (slow.threshold == 0) return "Off";
    return apr_psprintf(p, "%s rate=%s%s", duration_text(p, slow.threshold), number_or_off(p, slow.rate),
                        slow.until_end ? " until=end" : "");
}

const char* ramp_text(apr_pool_t* p, const core::RampUp& ramp) noexcept {
    return ramp.duration > 0 ? apr_psprintf(p, "%s from=%u", duration_text(p, ramp.duration), ramp.from) : "Off";
}

const char* probe_if_text(apr_pool_t* p, const ap_expr_info_t& expr) noexcept {
    if (expr.filename == nullptr) return "(an expression)";
    return apr_psprintf(p, "(an expression, line %u of %s)", expr.line_number, expr.filename);
}

/// What that directive has come to for a member: one line, or one for each rule; none for what is not a member's.
void add_lines(apr_pool_t* p, apr_array_header_t* lines, Directive directive, const Breaker& breaker) noexcept {
    const core::Policy& policy = breaker.policy;
    const auto put = [&](const char* value) noexcept {
        APR_ARRAY_PUSH(lines, PolicyLine) = {kDirectiveNames[static_cast<std::size_t>(directive)], value};
    };
    const auto number = [p](std::uint32_t value) noexcept { return apr_psprintf(p, "%u", value); };
    switch (directive) {
        case Directive::mode:
            return put(mode_name(policy.mode));
        case Directive::window:
            return put(window_text(p, policy.window));
        case Directive::minimum_calls:
            return put(number(policy.minimum_calls));
        case Directive::failure_rate:
            return put(number_or_off(p, policy.failure_rate));
        case Directive::consecutive_failures:
            return put(number_or_off(p, policy.consecutive_failures));
        case Directive::failure_count:
            return put(number_or_off(p, policy.failure_count));
        case Directive::slow_call:
            return put(slow_call_text(p, policy.slow_call));
        case Directive::open_time:
            return put(open_time_text(p, policy.open_time));
        case Directive::max_open:
            return put(number(policy.max_open));
        case Directive::probes:
            return put(probes_text(p, policy.probes));
        case Directive::probe_timeout:
            return put(policy.probe_timeout > 0 ? duration_text(p, policy.probe_timeout) : "Off");
        case Directive::probe_if:
            if (breaker.probe_if != nullptr) put(probe_if_text(p, *breaker.probe_if));
            return;
        case Directive::probe_header:
            return put(breaker.probe_header != nullptr ? breaker.probe_header : "Off");
        case Directive::ramp_up:
            return put(ramp_text(p, policy.ramp_up));
        case Directive::probe_verdict:  // its rules are tried first
            return add_rules(p, lines, kDirectiveNames[static_cast<std::size_t>(directive)], breaker.probe_rules);
        case Directive::verdict:
            add_rules(p, lines, kDirectiveNames[static_cast<std::size_t>(directive)], breaker.rules);
            return put(apr_pstrcat(p, rule_text(p, breaker.failing_statuses, false, nullptr),
                                   " connect timeout reset truncated protocol", nullptr));
        case Directive::body_limit:
            return put(number(policy.body_limit));
        case Directive::settle:
            return put(duration_text(p, policy.settle));
        case Directive::retry_after:
            return put(on_off(policy.retry_after));
        case Directive::max_concurrent:
            return put(number_or_off(p, policy.max_concurrent));
        case Directive::fallback:
            return put(breaker.fallback != nullptr ? breaker.fallback : "Off");
        case Directive::failover:
            return put(failover_text(p, policy.failover));
        case Directive::health_check:
            return put(core::kHealthChecks[static_cast<std::size_t>(policy.health_check)]);
        case Directive::probe_body:
            return put(number(policy.probe_body));
        case Directive::record_path:
            return put(on_off(policy.record_path));
        case Directive::event_log:  // the server's
        case Directive::control:    // the page's
            return;
    }
}

}  // namespace

const char* utc_text(apr_pool_t* p, apr_time_t at) noexcept {
    return apr_pstrdup(p, UtcText(at).text);
}

const char* local_text(apr_pool_t* p, apr_time_t at) noexcept {
    apr_time_exp_t parts;
    apr_time_exp_t today;
    apr_time_exp_lt(&parts, at);
    apr_time_exp_lt(&today, apr_time_now());
    const char* const time = apr_psprintf(p, "%02d:%02d:%02d", parts.tm_hour, parts.tm_min, parts.tm_sec);
    if (parts.tm_yday == today.tm_yday && parts.tm_year == today.tm_year) return time;
    return apr_psprintf(p, "%s %d %s", kMonths[parts.tm_mon], parts.tm_mday, time);
}

const char* span_text(apr_pool_t* p, core::Millis span) noexcept {
    if (span < 1000) return apr_psprintf(p, "%u ms", static_cast<unsigned>(span));
    if (span < 60'000) return apr_psprintf(p, "%.1f s", static_cast<double>(span) / 1000.0);
    const core::Millis seconds = span / 1000;
    const auto two = [p](core::Millis large, const char* large_unit, core::Millis small,
                         const char* small_unit) noexcept {
        return apr_psprintf(p, "%" APR_UINT64_T_FMT " %s %" APR_UINT64_T_FMT " %s", large, large_unit, small,
                            small_unit);
    };
    if (seconds < 3600) return two(seconds / 60, "min", seconds % 60, "s");
    if (seconds < 86'400) return two(seconds / 3600, "h", seconds / 60 % 60, "min");
    return two(seconds / 86'400, "d", seconds / 3600 % 24, "h");
}

const char* outcome_text(apr_pool_t* p, core::Outcome outcome) noexcept {
    if (core::is_status(outcome)) return apr_psprintf(p, "%u", static_cast<unsigned>(outcome));
    const char* const name = core::class_name(outcome);
    return *name == '\0' ? "unknown" : name;
}

const char* method_text(apr_pool_t* p, std::uint8_t method) noexcept {
    const char* const registered = method > M_INVALID ? ap_method_name_of(p, method) : nullptr;
    return registered != nullptr ? registered : method_name(method);
}

const char* reason_phrase(apr_pool_t* p, core::Reason reason, const core::Policy& policy) noexcept {
    switch (reason) {
        case core::Reason::none:
            return "unchanged since it began";
        case core::Reason::failure_rate:
            return apr_psprintf(p, "failure rate of %u %% or more", policy.failure_rate);
        case core::Reason::failure_count:
            return apr_psprintf(p, "%u or more failures in the window", policy.failure_count);
        case core::Reason::slow_rate:
            return apr_psprintf(p, "%u %% or more of the calls were slow", policy.slow_call.rate);
        case core::Reason::consecutive_failures:
            return apr_psprintf(p, "%u failures in a row", policy.consecutive_failures);
        case core::Reason::fatal:
            return "a fatal outcome";
        case core::Reason::open_time_over:
            return "open time was over";
        case core::Reason::no_other_member:
            return core::name(reason);
        case core::Reason::probe_failed:
            return policy.probes.tolerate > 0 ? "too many probes failed" : "a probe failed";
        case core::Reason::no_evidence:
            return "probes proved nothing";
        case core::Reason::probes_succeeded:
            return "probes succeeded";
        case core::Reason::ramp_over:
            return "ramp was over";
        case core::Reason::forced:
            return "by an operator";
        case core::Reason::reset:
            return "reset by an operator";
    }
    return "unknown";
}

const char* outage_text(apr_pool_t* p, const MemberSnapshot& member) noexcept {
    if (member.state() != core::State::open && member.state() != core::State::half_open &&
        member.state() != core::State::recovering) {
        return "";
    }
    const Outage outage = outage_of(member);
    if (outage.since == 0 || outage.since >= member.since) return "";
    const char* const times = outage.rounds == 0   ? ""
                              : outage.rounds == 1 ? ", probed once in vain"
                                                   : apr_psprintf(p, ", probed %u times in vain", outage.rounds);
    return apr_psprintf(p, "%s %s (%s)%s", outage.is_whole ? "out since" : "out since before",
                        local_text(p, wall_time(member, outage.since)),
                        outage.is_whole ? reason_phrase(p, outage.reason, member.policy) : "as far as is kept", times);
}

const char* outlook(apr_pool_t* p, const MemberSnapshot& member) noexcept {
    switch (member.state()) {
        case core::State::closed:
            return "";
        case core::State::open:
            if (member.is_awaiting_check) {
                const bool is_due = member.next_probe_in == 0 || core::ends_open_time(member.policy.health_check);
                return is_due ? "will be probed once a health check has passed"
                              : apr_psprintf(p, "may be probed in %s, if a health check has passed by then",
                                             span_text(p, member.next_probe_in));
            }
            if (member.next_probe_in == 0) return "will be probed by the next request";
            return apr_psprintf(p, "may be probed in %s%s", span_text(p, member.next_probe_in),
                                member.was_probed_early ? "; was probed early, in vain: no other member" : "");
        case core::State::half_open:
            return apr_psprintf(p, "%u of %u probes in flight; %u of %u needed have succeeded",
                                member.probes_in_flight(), member.policy.probes.concurrent, member.word.successes,
                                core::needed(member.policy.probes, member.round()));
        case core::State::recovering:
            return apr_psprintf(p, "%u %% of its requests are let through", member.ramp_percent);
        case core::State::forced_open:
        case core::State::forced_closed:
            return "until an operator ends it";
    }
    return "";
}

const char* window_text(apr_pool_t* p, const core::Window& window) noexcept {
    return window.calls > 0 ? apr_psprintf(p, "%ucalls", window.calls) : duration_text(p, window.span);
}

const apr_array_header_t* policy_lines(apr_pool_t* p, const MemberSnapshot& member) noexcept {
    apr_array_header_t* const lines = apr_array_make(p, kDirectives, sizeof(PolicyLine));
    for (std::uint32_t i = 0; member.breaker != nullptr && i < kDirectives; ++i)
        add_lines(p, lines, static_cast<Directive>(i), *member.breaker);
    return lines;
}

}  // namespace cb::httpd
