// What the directives of one section set, and how sections are laid over each other.
//
// Purpose: a Policy plus "which directive was set, and where", so that inner sections override outer ones directive by
// directive and messages can name file and line.
// Thread safety: written while the configuration is read, read-only afterwards.
// Invariants: each directive sets one member of Settings, which its row in directives.def names.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_SETTINGS_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_SETTINGS_HPP

#include <cstdint>
#include <iterator>
#include <type_traits>

#include "core/policy.hpp"
#include "httpd/httpd_api.hpp"
#include "rules.hpp"

namespace cb::httpd {

#define DIRECTIVE(id, ...) id,
enum class Directive : std::uint8_t {
#include "directives.def"
};
#undef DIRECTIVE

/// The names as they stand in httpd.conf, in the order of Directive.
#define DIRECTIVE(id, name, ...) name,
inline constexpr const char* kDirectiveNames[] = {
#include "directives.def"
};
#undef DIRECTIVE
inline constexpr std::uint32_t kDirectives = std::size(kDirectiveNames);

[[nodiscard]] constexpr std::uint32_t index_of(Directive directive) noexcept {
    return static_cast<std::uint32_t>(directive);
}

/// CircuitBreakerControl.
struct Control {
    bool is_on = false;                         // the status page may act
    const apr_array_header_t* hosts = nullptr;  // of const char* (host_names.hpp): under these names; nullptr: any
};

/// CircuitBreakerEventLog.
struct EventLog {
    const char* target = nullptr;  // file or "|program"; nullptr: Off
    bool with_probes = true;
};

struct Settings {
    core::Policy policy;
    RuleList rules;
    RuleList probe_rules;
    const ap_expr_info_t* probe_if = nullptr;  // nullptr: every request may be a probe
    const char* probe_header = nullptr;        // nullptr: Off
    const char* fallback = nullptr;            // name of a balancer; nullptr: Off
    EventLog event_log;
    Control control;
    std::uint32_t set = 0;  // bit(directive) of each one that is set
    const ap_directive_t* where[kDirectives] = {};

    [[nodiscard]] static constexpr std::uint32_t bit(Directive directive) noexcept { return 1U << index_of(directive); }
    [[nodiscard]] bool has(Directive directive) const noexcept { return (set & bit(directive)) != 0; }
    [[nodiscard]] const ap_directive_t* place_of(Directive directive) const noexcept {
        return where[index_of(directive)];
    }
    void note(Directive directive, const ap_directive_t* at) noexcept {
        set |= bit(directive);
        where[index_of(directive)] = at;
    }
};
static_assert(kDirectives <= 32, "Settings::set has a bit for each");
static_assert(std::is_trivially_destructible_v<Settings>);

/// Lays what `inner` sets over `outer`; its verdict rules come before the outer ones, in a list made in `p`.
void overlay(apr_pool_t* p, Settings& outer, const Settings& inner) noexcept;

/// The list, and behind it the directive with its file and line. nullptr: an empty list.
[[nodiscard]] const char* with_place(apr_pool_t* p, const char* list, const ap_directive_t& where) noexcept;

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
