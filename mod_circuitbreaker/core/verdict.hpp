// Outcome classes, verdicts, and the rules that lead from one to the other.
//
// Purpose: an Outcome is what happened to a call. A Verdict is what that counts as.
// Invariants: an Outcome's code fits the 10 bits of the flight recorder. 100..999 is the backend's own status (httpd
// passes on every status of three digits), the classes follow from 1000 on.
#ifndef CIRCUITBREAKER_CORE_VERDICT_HPP
#define CIRCUITBREAKER_CORE_VERDICT_HPP

#include <cstdint>
#include <string_view>

namespace cb::core {

enum class Verdict : std::uint8_t { success, failure, fatal, tolerate, ignore };
inline constexpr std::uint32_t kVerdicts = 5;

/// What happened to a call. Values 100..999 stand for that HTTP status.
enum class Outcome : std::uint16_t {
    none = 0,
    connect = 1000,  ///< refused, unreachable, TLS handshake, name lookup
    timeout,         ///< the backend's silence outlasted the timeout
    reset,           ///< the connection broke before any byte of the response
    stale,           ///< the same, because the backend had closed a kept connection while it was idle
    truncated,       ///< the response broke off after its headers
    protocol,        ///< what came was no response
    local,           ///< httpd's own trouble: pool full, member barred by mod_proxy's own flags, no descriptors
    client,          ///< the client's fault: gone, or a bad request
    upload,          ///< the call broke off, or the backend fell silent, while the request's body was on its way
};
inline constexpr std::uint32_t kClasses = 9;

inline constexpr std::uint16_t kLeastStatus = 100;
inline constexpr std::uint16_t kMostStatus = 999;
static_assert(static_cast<std::uint16_t>(Outcome::connect) > kMostStatus);
static_assert(static_cast<std::uint16_t>(Outcome::connect) + kClasses <= 1U << 10U, "the flight recorder's bits");

[[nodiscard]] constexpr bool is_status(Outcome outcome) noexcept {
    return static_cast<std::uint16_t>(outcome) >= kLeastStatus && static_cast<std::uint16_t>(outcome) <= kMostStatus;
}
[[nodiscard]] constexpr Outcome status_outcome(int status) noexcept {
    return status >= kLeastStatus && status <= kMostStatus ? static_cast<Outcome>(status) : Outcome::protocol;
}

/// Statuses are counted by their first digit.
inline constexpr const char* kHundreds[] = {"1xx", "2xx", "3xx", "4xx", "5xx", "6xx", "7xx", "8xx", "9xx"};
inline constexpr std::uint32_t kHundredCount = sizeof kHundreds / sizeof *kHundreds;
/// Index into kHundreds, of an outcome that is a status.
[[nodiscard]] constexpr std::uint32_t hundred_of(Outcome outcome) noexcept {
    return static_cast<std::uint32_t>(outcome) / 100U - 1;
}

/// Name of a class as rules and logs spell it; empty for a status or an unknown code.
[[nodiscard]] const char* class_name(Outcome outcome) noexcept;
/// The class of that name, Outcome::none if there is none.
[[nodiscard]] Outcome class_named(std::string_view name) noexcept;

[[nodiscard]] const char* name(Verdict verdict) noexcept;
/// The verdict of that name. False if there is none.
[[nodiscard]] bool verdict_named(std::string_view name, Verdict& verdict) noexcept;

/// Does the outcome say anything about the member? `local`, `client`, `upload`, `stale` and `none` do not.
[[nodiscard]] bool concerns_member(Outcome outcome) noexcept;

/// Outcome codes from `first` to `last`; a class is a range of one.
struct CodeRange {
    std::uint16_t first;
    std::uint16_t last;
};

/// Parses "503", "5xx", "502-504" (100 to 999, in ascending order) or the name of a class. False if it is none of
/// these.
[[nodiscard]] bool parse_codes(std::string_view text, CodeRange& range) noexcept;

/// A rule's statuses and classes are alternatives. A rule without any applies to whatever concerns the member.
struct Rule {
    Verdict verdict;
    std::uint32_t ranges;
    const CodeRange* range;
};

[[nodiscard]] bool matches(const Rule& rule, Outcome outcome) noexcept;

inline constexpr CodeRange kFailingStatuses[] = {{502, 504}};
/// The statuses that fail where no rule says otherwise (a balancer's `failonstatus` adds to them).
inline constexpr Rule kBuiltinStatuses{Verdict::failure, 1, kFailingStatuses};

/// The verdict where no configured rule matches: failure for connect, timeout, reset, truncated, protocol and the
/// statuses; ignore for local, client, upload and stale; else success.
[[nodiscard]] Verdict builtin_verdict(Outcome outcome, const Rule& statuses = kBuiltinStatuses) noexcept;

}  // namespace cb::core

#endif
