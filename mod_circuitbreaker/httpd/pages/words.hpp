// How the pages put things: times, durations, reasons, outcomes, the policy as directives.
//
// Purpose: one wording for HTML, JSON, balancer-manager and mod_status.
// Thread safety: pure, but for the pool.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_WORDS_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_WORDS_HPP

#include "model.hpp"

namespace cb::httpd {

/// RFC 3339, UTC, milliseconds: "2026-11-30T04:21:10.123Z".
[[nodiscard]] const char* utc_text(apr_pool_t* p, apr_time_t at) noexcept;

/// As the error log has it, in the server's own time: "04:21:10", with the day if that isn't today's ("Nov 29
/// 23:10:00").
[[nodiscard]] const char* local_text(apr_pool_t* p, apr_time_t at) noexcept;

/// "850 ms", "12.3 s", "3 min 12 s", "2 h 5 min", "9 d 4 h".
[[nodiscard]] const char* span_text(apr_pool_t* p, core::Millis span) noexcept;

/// "timeout", "503".
[[nodiscard]] const char* outcome_text(apr_pool_t* p, core::Outcome outcome) noexcept;

/// The same as method_name(), but also of a method that a module or RegisterHttpMethod has registered.
[[nodiscard]] const char* method_text(apr_pool_t* p, std::uint8_t method) noexcept;

/// What led to the present state, as a phrase: "5 failures in a row".
[[nodiscard]] const char* reason_phrase(apr_pool_t* p, core::Reason reason, const core::Policy& policy) noexcept;

/// Of a member that is out for longer than its present state lasts: "out since 04:10:02 (5 failures in a row), probed 3
/// times in vain". "" otherwise.
[[nodiscard]] const char* outage_text(apr_pool_t* p, const MemberSnapshot& member) noexcept;

/// What will happen next: "may be probed in 12.3 s", "1 of 3 probes in flight, 2 of 3 needed have succeeded".
[[nodiscard]] const char* outlook(apr_pool_t* p, const MemberSnapshot& member) noexcept;

/// "10s", "100calls".
[[nodiscard]] const char* window_text(apr_pool_t* p, const core::Window& window) noexcept;

/// The policy as directives: calls `put(name, value)` for each.
struct PolicyLine {
    const char* name;
    const char* value;
};
[[nodiscard]] const apr_array_header_t* policy_lines(apr_pool_t* p, const MemberSnapshot& member) noexcept;

}  // namespace cb::httpd

#endif
