#include "parse.hpp"

#include <charconv>
#include <cstring>

namespace cb::httpd {
namespace {

/// Digits at the front of `text` (at least one); `rest` is what follows. False on overflow or no digit.
bool take_digits(const char* text, std::uint64_t& value, const char*& rest) noexcept {
    const char* const end = text + std::strlen(text);
    if (text == end || *text < '0' || *text > '9') return false;
    const auto [stopped, error] = std::from_chars(text, end, value);
    rest = stopped;
    return error == std::errc{};
}

}  // namespace

bool is_word(const char* text, const char* word) noexcept {
    return ap_cstr_casecmp(text, word) == 0;
}

bool parse_duration(const char* text, core::Millis min, core::Millis max, core::Millis& value) noexcept {
    std::uint64_t number = 0;
    const char* unit = nullptr;
    if (!take_digits(text, number, unit)) return false;
    core::Millis factor = 0;
    if (is_word(unit, "ms")) {
        factor = 1;
    } else if (is_word(unit, "s")) {
        factor = core::kMillisPerSecond;
    } else if (is_word(unit, "min")) {
        factor = 60 * core::kMillisPerSecond;
    } else if (is_word(unit, "h")) {
        factor = 3600 * core::kMillisPerSecond;
    } else {
        return false;
    }
    if (number > max / factor) return false;
    value = number * factor;
    return value >= min;
}

bool parse_number(const char* text, std::uint32_t min, std::uint32_t max, std::uint32_t& value) noexcept {
    std::uint64_t number = 0;
    const char* rest = nullptr;
    if (!take_digits(text, number, rest) || *rest != '\0' || number < min || number > max) return false;
    value = static_cast<std::uint32_t>(number);
    return true;
}

bool parse_percent(const char* text, std::uint32_t min, std::uint32_t& value) noexcept {
    std::uint64_t number = 0;
    const char* rest = nullptr;
    if (!take_digits(text, number, rest) || (std::strcmp(rest, "%") != 0 && *rest != '\0')) return false;
    if (number < min || number > 100) return false;
    value = static_cast<std::uint32_t>(number);
    return true;
}

bool parse_factor(const char* text, std::uint32_t& value_milli) noexcept {
    std::uint64_t whole = 0;
    const char* rest = nullptr;
    if (!take_digits(text, whole, rest) || whole > 100) return false;
    std::uint64_t milli = whole * 1000;
    if (*rest == '.') {
        std::uint64_t unit = 100;
        if (rest[1] == '\0') return false;
        for (++rest; *rest >= '0' && *rest <= '9' && unit > 0; ++rest, unit /= 10) {
            milli += static_cast<std::uint64_t>(*rest - '0') * unit;
        }
    }
    if (*rest != '\0' || milli < 1000 || milli > 100'000) return false;
    value_milli = static_cast<std::uint32_t>(milli);
    return true;
}

bool parse_on_off(const char* text, bool& value) noexcept {
    value = is_word(text, "On");
    return value || is_word(text, "Off");
}

bool is_token(const char* text) noexcept {
    if (*text == '\0') return false;
    for (; *text != '\0'; ++text) {
        if (!apr_isalnum(*text) && std::strchr("!#$%&'*+-.^_`|~", *text) == nullptr) return false;
    }
    return true;
}

const char* duration_text(apr_pool_t* p, core::Millis value) noexcept {
    if (value >= 3600'000 && value % 3600'000 == 0) return apr_psprintf(p, "%" APR_UINT64_T_FMT "h", value / 3600'000);
    if (value >= 60'000 && value % 60'000 == 0) return apr_psprintf(p, "%" APR_UINT64_T_FMT "min", value / 60'000);
    if (value >= 1000 && value % 1000 == 0) return apr_psprintf(p, "%" APR_UINT64_T_FMT "s", value / 1000);
    return apr_psprintf(p, "%" APR_UINT64_T_FMT "ms", value);
}

const char* value_of(const char* text, const char* key) noexcept {
    const std::size_t length = std::strlen(key);
    return ap_cstr_casecmpn(text, key, length) == 0 && text[length] == '=' ? text + length + 1 : nullptr;
}

}  // namespace cb::httpd
