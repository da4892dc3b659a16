#include "verdict.hpp"

#include <charconv>

namespace cb::core {
namespace {

constexpr const char* kClassNames[kClasses] = {"connect",  "timeout", "reset",  "stale", "truncated",
                                               "protocol", "local",   "client", "upload"};
constexpr auto kFirstClass = static_cast<std::uint16_t>(Outcome::connect);

constexpr const char* kVerdictNames[kVerdicts] = {"success", "failure", "fatal", "tolerate", "ignore"};

/// "503", or "5xx" for all statuses that begin with 5.
bool parse_statuses(std::string_view text, CodeRange& range) noexcept {
    if (text.size() != 3 || text[0] < '1' || text[0] > '9') return false;
    if (text.ends_with("xx")) {
        range.first = static_cast<std::uint16_t>((text[0] - '0') * 100);
        range.last = static_cast<std::uint16_t>(range.first + 99);
        return true;
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), range.first);
    range.last = range.first;
    return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

const char* class_name(Outcome outcome) noexcept {
    const auto index = static_cast<std::uint32_t>(static_cast<std::uint16_t>(outcome)) - kFirstClass;
    return index < kClasses ? kClassNames[index] : "";
}

Outcome class_named(std::string_view wanted) noexcept {
    for (std::uint32_t i = 0; i < kClasses; ++i) {
        if (wanted == kClassNames[i]) return static_cast<Outcome>(kFirstClass + i);
    }
    return Outcome::none;
}

const char* name(Verdict verdict) noexcept {
    const auto index = static_cast<std::uint32_t>(verdict);
    return index < kVerdicts ? kVerdictNames[index] : "unknown";
}

bool verdict_named(std::string_view wanted, Verdict& verdict) noexcept {
    for (std::uint32_t i = 0; i < kVerdicts; ++i) {
        if (wanted != kVerdictNames[i]) continue;
        verdict = static_cast<Verdict>(i);
        return true;
    }
    return false;
}

bool concerns_member(Outcome outcome) noexcept {
    return outcome != Outcome::none && outcome != Outcome::local && outcome != Outcome::client &&
           outcome != Outcome::upload && outcome != Outcome::stale;
}

bool parse_codes(std::string_view text, CodeRange& range) noexcept {
    if (const Outcome outcome = class_named(text); outcome != Outcome::none) {
        range = {static_cast<std::uint16_t>(outcome), static_cast<std::uint16_t>(outcome)};
        return true;
    }
    const std::size_t dash = text.find('-');
    if (dash == std::string_view::npos) return parse_statuses(text, range);
    CodeRange upper{};
    const std::string_view from{text.data(), dash};
    const std::string_view to{text.data() + dash + 1, text.size() - dash - 1};
    if (!parse_statuses(from, range) || !parse_statuses(to, upper)) return false;
    const bool is_ascending = range.first <= upper.first && range.last <= upper.last;
    range.last = upper.last;
    return is_ascending;
}

bool matches(const Rule& rule, Outcome outcome) noexcept {
    if (rule.ranges == 0) return concerns_member(outcome);
    const auto code = static_cast<std::uint16_t>(outcome);
    for (std::uint32_t i = 0; i < rule.ranges; ++i) {
        if (code >= rule.range[i].first && code <= rule.range[i].last) return true;
    }
    return false;
}

Verdict builtin_verdict(Outcome outcome, const Rule& statuses) noexcept {
    if (!concerns_member(outcome)) return Verdict::ignore;
    if (!is_status(outcome)) return Verdict::failure;
    return statuses.ranges > 0 && matches(statuses, outcome) ? Verdict::failure : Verdict::success;
}

}  // namespace cb::core
