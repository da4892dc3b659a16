// What the directives of one section set, and how sections are laid over each other.
//
// Purpose: a Policy plus "which directive was set, and where", so that inner sections override outer ones directive by
// directive and messages can name file and line.
// Thread safety: written while the configuration is read, read-only afterwards.
// Invariants: one Directive per directive name; every Directive has its line in overlay() (tests/guards checks both).
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_SETTINGS_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_SETTINGS_HPP

#include <cstdint>
#include <type_traits>

#include "core/policy.hpp"
#include "httpd/httpd_api.hpp"
#include "rules.hpp"

namespace cb::httpd {

enum class Directive : std::uint8_t {
    mode,
    window,
    minimum_calls,
    failure_rate,
    consecutive_failures,
    slow_call,
    open_time,
    max_open,
    probes,
    probe_timeout,
    probe_if,
    probe_header,
    ramp_up,
    verdict,
    probe_verdict,
    body_limit,
    settle,
    retry_after,
    max_concurrent,
    fallback,
    failover,
    event_log,
    record_path,
    control,
    health_check,
    probe_body,
};
inline constexpr std::uint32_t kDirectives = 26;

/// The names as they stand in httpd.conf, in the order of Directive.
inline constexpr const char* kDirectiveNames[kDirectives] = {
    "CircuitBreaker",
    "CircuitBreakerWindow",
    "CircuitBreakerMinimumCalls",
    "CircuitBreakerFailureRate",
    "CircuitBreakerConsecutiveFailures",
    "CircuitBreakerSlowCall",
    "CircuitBreakerOpenTime",
    "CircuitBreakerMaxOpen",
    "CircuitBreakerProbes",
    "CircuitBreakerProbeTimeout",
    "CircuitBreakerProbeIf",
    "CircuitBreakerProbeHeader",
    "CircuitBreakerRampUp",
    "CircuitBreakerVerdict",
    "CircuitBreakerProbeVerdict",
    "CircuitBreakerBodyLimit",
    "CircuitBreakerSettle",
    "CircuitBreakerRetryAfter",
    "CircuitBreakerMaxConcurrent",
    "CircuitBreakerFallback",
    "CircuitBreakerFailover",
    "CircuitBreakerEventLog",
    "CircuitBreakerRecordPath",
    "CircuitBreakerControl",
    "CircuitBreakerHealthCheck",
    "CircuitBreakerProbeBody",
};

/// CircuitBreakerControl.
struct Control {
    bool is_on = false;                         // the status page may act
    const apr_array_header_t* hosts = nullptr;  // of const char* (host_names.hpp): under these names; nullptr: any
};

struct Settings {
    core::Policy policy;
    RuleList rules;
    RuleList probe_rules;
    const ap_expr_info_t* probe_if = nullptr;  // nullptr: every request may be a probe
    const char* probe_header = nullptr;        // nullptr: Off
    const char* fallback = nullptr;            // name of a balancer; nullptr: Off
    const char* event_log = nullptr;           // file or "|program"; nullptr: Off
    Control control;
    std::uint32_t set = 0;  // bits: 1 << Directive
    const ap_directive_t* where[kDirectives] = {};

    [[nodiscard]] bool has(Directive directive) const noexcept {
        return (set & 1U << static_cast<std::uint32_t>(directive)) != 0;
    }
    void note(Directive directive, const ap_directive_t* at) noexcept {
        set |= 1U << static_cast<std::uint32_t>(directive);
        where[static_cast<std::uint32_t>(directive)] = at;
    }
};
static_assert(std::is_trivially_destructible_v<Settings>);

/// Lays what `inner` sets over `outer`; its verdict rules come before the outer ones, in a list made in `p`.
void overlay(apr_pool_t* p, Settings& outer, const Settings& inner) noexcept;

/// The per-directory configuration. What a <Proxy> section sets makes a member's policy (policies.hpp); what Location,
/// Directory, Files and If set is laid over it for a request. They are kept apart because mod_proxy's own walk applies
/// <Proxy> sections by prefix, and not at all for a request that a handler or a per-directory RewriteRule sends.
struct DirConfig {
    Settings section;
    Settings request;
};

[[nodiscard]] Settings& server_settings(const server_rec* s) noexcept;
/// nullptr where a section uses none of our directives.
[[nodiscard]] inline DirConfig* dir_config(const ap_conf_vector_t* section) noexcept {
    return static_cast<DirConfig*>(ap_get_module_config(section, &circuitbreaker_module));
}

/// What <Location>, <Directory>, <Files> or <If> say of that directive for this request; nullptr if they say nothing.
[[nodiscard]] inline const Settings* said_for_request(const request_rec* r, Directive directive) noexcept {
    const DirConfig* const dir = dir_config(r->per_dir_config);
    return dir != nullptr && dir->request.has(directive) ? &dir->request : nullptr;
}

extern "C" {
void* cb_create_server_config(apr_pool_t* p, server_rec* s) noexcept;
void* cb_merge_server_config(apr_pool_t* p, void* base, void* over) noexcept;
void* cb_create_dir_config(apr_pool_t* p, char* dir) noexcept;
void* cb_merge_dir_config(apr_pool_t* p, void* base, void* over) noexcept;
}

}  // namespace cb::httpd

#endif
