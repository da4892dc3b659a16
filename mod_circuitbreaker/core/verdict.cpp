#include "verdict.hpp"

namespace cb::core {
namespace {

constexpr std::string_view kClassNames[kClasses] = {"connect",   "timeout",  "reset", "stale",
                                                    "truncated", "protocol", "local", "client"};
constexpr auto kFirstClass = static_cast<std::uint16_t>(Outcome::connect);

constexpr CodeRange only(Outcome outcome) {
    return {static_cast<std::uint16_t>(outcome), static_cast<std::uint16_t>(outcome)};
}

constexpr Rule kBuiltin[] = {
    {Verdict::failure,
     6,
     {only(Outcome::connect),
      only(Outcome::timeout),
      only(Outcome::reset),
      only(Outcome::truncated),
      only(Outcome::protocol),
      {502, 504}}},
    {Verdict::ignore, 4, {only(Outcome::local), only(Outcome::client), only(Outcome::stale), only(Outcome::none)}},
};

}  // namespace

std::string_view class_name(Outcome outcome) noexcept {
    const auto index = static_cast<std::uint32_t>(static_cast<std::uint16_t>(outcome)) - kFirstClass;
    return index < kClasses ? kClassNames[index] : std::string_view{};
}

Outcome class_named(std::string_view wanted) noexcept {
    for (std::uint32_t i = 0; i < kClasses; ++i) {
        if (kClassNames[i] == wanted) return static_cast<Outcome>(kFirstClass + i);
    }
    return Outcome::none;
}

std::string_view name(Verdict verdict) noexcept {
    switch (verdict) {
        case Verdict::success:
            return "success";
        case Verdict::failure:
            return "failure";
        case Verdict::fatal:
            return "fatal";
        case Verdict::tolerate:
            return "tolerate";
        case Verdict::ignore:
            return "ignore";
    }
    return "unknown";
}

bool matches(const Rule& rule, Outcome outcome) noexcept {
    const auto code = static_cast<std::uint16_t>(outcome);
    for (std::uint32_t i = 0; i < rule.ranges; ++i) {
        if (code >= rule.range[i].first && code <= rule.range[i].last) return true;
    }
    return false;
}

Verdict builtin_verdict(Outcome outcome) noexcept {
    for (const Rule& rule : kBuiltin) {
        if (matches(rule, outcome)) return rule.verdict;
    }
    return Verdict::success;
}

}  // namespace cb::core
