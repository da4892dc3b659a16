#include "escape.hpp"

#include <cstdint>
#include <cstring>

namespace cb::httpd {
namespace {

constexpr std::uint32_t kReplacement = 0xFFFD;

/// The character that begins at `text` (RFC 3629: no overlong form, no surrogate, at most U+10FFFF); `size` is its
/// bytes. Of what is none, one byte is taken as U+FFFD.
std::uint32_t character_at(const char* text, int& size) noexcept {
    const auto byte = [text](int n) noexcept {
        return static_cast<std::uint32_t>(static_cast<unsigned char>(text[n]));
    };
    const std::uint32_t first = byte(0);
    size = 1;
    if (first < 0x80) return first;
    const int length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4) return kReplacement;
    std::uint32_t code = first & (0x7FU >> length);
    for (int n = 1; n < length; ++n) {
        if ((byte(n) & 0xC0U) != 0x80U) return kReplacement;  // the final NUL is none either
        code = code << 6U | (byte(n) & 0x3FU);
    }
    const bool is_overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    if (is_overlong || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return kReplacement;
    size = length;
    return code;
}

/// Grows nothing: made for the longest that `text` can become.
struct Buffer {
    char* begin;
    char* end;
    char* limit;

    Buffer(apr_pool_t* p, const char* text, std::size_t longest) noexcept
        : begin(static_cast<char*>(apr_palloc(p, std::strlen(text) * longest + 1))),
          end(begin),
          limit(begin + std::strlen(text) * longest + 1) {}

    template <class... Args>
    void add(const char* format, Args... args) noexcept {
        end += apr_snprintf(end, static_cast<apr_size_t>(limit - end), format, args...);
    }
};

/// XML 1.0, 2.2; what HTML calls noncharacters is left out too.
bool is_allowed_in_markup(std::uint32_t code) noexcept {
    if (code < 0x20) return code == '\t' || code == '\n';
    return (code < 0x7F || code > 0x9F) && (code & 0xFFFEU) != 0xFFFE && (code < 0xFDD0 || code > 0xFDEF);
}

}  // namespace

const char* markup(apr_pool_t* p, const char* text) noexcept {
    Buffer out(p, text, sizeof "&#1114111;" - 1);
    for (int size = 1; *text != '\0'; text += size) {
        const std::uint32_t code = character_at(text, size);
        if (code >= 0x80 || !is_allowed_in_markup(code) || std::strchr("<>&\"'", static_cast<int>(code)) != nullptr) {
            out.add("&#%u;", is_allowed_in_markup(code) ? code : kReplacement);
        } else {
            *out.end++ = static_cast<char>(code);
        }
    }
    *out.end = '\0';
    return out.begin;
}

const char* json_text(apr_pool_t* p, const char* text) noexcept {
    Buffer out(p, text, sizeof "\\u0000" - 1);  // four bytes make two of them
    for (int size = 1; *text != '\0'; text += size) {
        const std::uint32_t code = character_at(text, size);
        if (code == '"' || code == '\\') {
            out.add("\\%c", static_cast<int>(code));
        } else if (code >= 0x10000) {
            out.add("\\u%04x\\u%04x", 0xD800 + ((code - 0x10000) >> 10U), 0xDC00 + ((code - 0x10000) & 0x3FFU));
        } else if (code < 0x20 || code >= 0x7F) {
            out.add("\\u%04x", code);
        } else {
            *out.end++ = static_cast<char>(code);
        }
    }
    *out.end = '\0';
    return out.begin;
}

}  // namespace cb::httpd
