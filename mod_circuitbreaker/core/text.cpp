#include "text.hpp"

#include <cstring>

namespace cb::core {
namespace {

constexpr unsigned byte_at(std::string_view text, std::size_t i) noexcept {
    return static_cast<unsigned char>(text[i]);
}

struct Escape {
    char bytes[6];
    std::size_t length;
};

Escape escape_of(char c) noexcept {
    switch (c) {
        case '"':
            return {{'\\', '"'}, 2};
        case '\\':
            return {{'\\', '\\'}, 2};
        case '\b':
            return {{'\\', 'b'}, 2};
        case '\f':
            return {{'\\', 'f'}, 2};
        case '\n':
            return {{'\\', 'n'}, 2};
        case '\r':
            return {{'\\', 'r'}, 2};
        case '\t':
            return {{'\\', 't'}, 2};
        default:
            break;
    }
    if (static_cast<unsigned char>(c) >= 0x20) return {{c}, 1};
    constexpr char kHex[] = "0123456789abcdef";
    return {{'\\', 'u', '0', '0', kHex[(c >> 4) & 15], kHex[c & 15]}, 6};
}

}  // namespace

std::size_t utf8_length(std::string_view text) noexcept {
    if (text.empty()) return 0;
    const unsigned first = byte_at(text, 0);
    if (first < 0x80) return 1;
    std::size_t length = 0;
    // The second byte's range keeps out overlong forms, surrogates and what is above U+10FFFF.
    unsigned low = 0x80;
    unsigned high = 0xBF;
    if (first >= 0xC2 && first <= 0xDF) {
        length = 2;
    } else if (first >= 0xE0 && first <= 0xEF) {
        length = 3;
        if (first == 0xE0) low = 0xA0;
        if (first == 0xED) high = 0x9F;
    } else if (first >= 0xF0 && first <= 0xF4) {
        length = 4;
        if (first == 0xF0) low = 0x90;
        if (first == 0xF4) high = 0x8F;
    }
    if (length == 0 || text.size() < length) return 0;
    if (byte_at(text, 1) < low || byte_at(text, 1) > high) return 0;
    for (std::size_t i = 2; i < length; ++i) {
        if (byte_at(text, i) < 0x80 || byte_at(text, i) > 0xBF) return 0;
    }
    return length;
}

void JsonWriter::raw(std::string_view text) noexcept {
    if (is_cut_ || text.size() > size_ - length_) {
        is_cut_ = true;
        return;
    }
    std::memcpy(buffer_ + length_, text.data(), text.size());
    length_ += text.size();
}

void JsonWriter::number(std::uint64_t value) noexcept {
    char digits[20];
    std::size_t at = sizeof digits;
    do {
        digits[--at] = static_cast<char>('0' + value % 10);
        value /= 10;
    } while (value > 0);
    raw({digits + at, sizeof digits - at});
}

std::size_t JsonWriter::escaped(std::string_view text, std::size_t most) noexcept {
    std::size_t used = 0;
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const Escape escape = escape_of(text.front());
        const std::string_view piece = length == 0   ? kReplacement
                                       : length == 1 ? std::string_view{escape.bytes, escape.length}
                                                     : text.substr(0, length);
        if (used + piece.size() > most) break;
        raw(piece);
        used += piece.size();
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return used;
}

void JsonWriter::string(std::string_view text, std::size_t most) noexcept {
    string(std::span(&text, 1), most);
}

void JsonWriter::string(std::span<const std::string_view> parts, std::size_t most) noexcept {
    raw("\"");
    for (const std::string_view part : parts)
        most -= escaped(part, most);
    raw("\"");
}

}  // namespace cb::core
