#include "escape.hpp"

#include <cstdint>
#include <cstring>

#include "core/text.hpp"

namespace cb::httpd {
namespace {

constexpr std::uint32_t kReplacement = 0xFFFD;

/// The character that begins at `text`; `size` is its bytes. Of what is none, one byte is taken as U+FFFD.
std::uint32_t character_at(const char* text, int& size) noexcept {
    constexpr std::size_t kLongest = 4;
    const std::size_t length = core::utf8_length({text, strnlen(text, kLongest)});
    size = length == 0 ? 1 : static_cast<int>(length);
    if (length == 0) return kReplacement;
    const auto first = static_cast<unsigned char>(*text);
    if (length == 1) return first;
    std::uint32_t code = first & (0x7FU >> length);
    for (std::size_t n = 1; n < length; ++n)
        code = code << 6U | (static_cast<unsigned char>(text[n]) & 0x3FU);
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
