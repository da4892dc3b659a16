#include "verdict.hpp"

#include <charconv>

namespace cb::core {
namespace {

constexpr const char* kClassNames[kClasses] = {"connect",  "timeout", "reset",  "stale", "truncated",
                                               "protocol", "local",   "client", "upload"};
constexpr auto kFirstClass = static_cast<std::uint16_t>(Outcome::connect);

constexpr const char* kVerdictNames[kVerdicts] = {"success", "failure", "fatal", "tolerate", "ignore"};

bool parse_status(std::string_view text, std::uint16_t& status) noexcept {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), status);
    return text.size() == 3 && error == std::errc{} && end == text.data() + 3 && status >= kLeastStatus;
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
    if (dash == std::string_view::npos) {
        if (!parse_status(text, range.first)) return false;
        range.last = range.first;
        return true;
    }
    return parse_status({text.data(), dash}, range.first) &&
           parse_status({text.data() + dash + 1, text.size() - dash - 1}, range.last) && range.first <= range.last;
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
