// The condition `json=POINTER:V1,V2` of a verdict rule: a value in a JSON body.
//
// Purpose: POINTER is a JSON Pointer (RFC 6901). The condition holds if the value that it leads to is one of V1, V2...
// A string matches by its text, a number by its value, true, false and null by name; an object or an array matches
// nothing. A `:` in the pointer and a `,` in a value are escaped by a backslash, and so is a backslash.
// Lifetime: a JsonCondition refers to the text it was parsed from.
#ifndef CIRCUITBREAKER_CORE_JSON_HPP
#define CIRCUITBREAKER_CORE_JSON_HPP

#include <string_view>

namespace cb::core {

struct JsonCondition {
    std::string_view pointer;  // as written: with backslashes
    std::string_view values;   // as written: commas between them
};

/// Parses what follows `json=`. nullptr, or what is wrong with it.
[[nodiscard]] const char* parse_json_condition(std::string_view text, JsonCondition& condition) noexcept;

/// Does it hold for this body? False for a body that is not JSON as a whole (RFC 8259), or nested in more than 64
/// levels.
[[nodiscard]] bool holds(const JsonCondition& condition, std::string_view body) noexcept;

}  // namespace cb::core

#endif
