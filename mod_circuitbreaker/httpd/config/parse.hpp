// Words of a directive's value: durations, percents, numbers, key=value.
//
// Purpose: strict parsing with messages that say what is wrong and what would be right.
// Thread safety: pure, but for the pool that messages are made in.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_PARSE_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_PARSE_HPP

#include "core/policy.hpp"
#include "httpd/httpd_api.hpp"

namespace cb::httpd {

/// A duration with its unit (ms, s, min, h), `min`..`max` milliseconds. False if it is none.
[[nodiscard]] bool parse_duration(const char* text, core::Millis min, core::Millis max, core::Millis& value) noexcept;
/// A whole number `min`..`max`.
[[nodiscard]] bool parse_number(const char* text, std::uint32_t min, std::uint32_t max, std::uint32_t& value) noexcept;
/// `50` or `50%`, `min`..100.
[[nodiscard]] bool parse_percent(const char* text, std::uint32_t min, std::uint32_t& value) noexcept;
/// A factor with up to three decimals, 1..100, in thousandths.
[[nodiscard]] bool parse_factor(const char* text, std::uint32_t& value_milli) noexcept;
[[nodiscard]] bool parse_on_off(const char* text, bool& value) noexcept;
[[nodiscard]] bool is_word(const char* text, const char* word) noexcept;

/// A token of RFC 9110 5.6.2, as names of header fields are.
[[nodiscard]] bool is_token(const char* text) noexcept;

/// A duration as an operator would write it: "30s", "500ms", "2min".
[[nodiscard]] const char* duration_text(apr_pool_t* p, core::Millis value) noexcept;

/// `text` after "key=" if it begins so (case ignored), else nullptr.
[[nodiscard]] const char* value_of(const char* text, const char* key) noexcept;

}  // namespace cb::httpd

#endif
