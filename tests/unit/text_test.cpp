// Names hold any byte; what is written of them is valid JSON and valid UTF-8, and never longer than its room.
#include <gtest/gtest.h>
#include <jansson.h>

#include <string>

#include "core/text.hpp"

namespace cb::core {
namespace {

std::string written(std::string_view text, std::size_t most = JsonWriter::kNoLimit) {
    char buffer[8192];
    JsonWriter json(buffer, sizeof buffer);
    json.string(text, most);
    EXPECT_FALSE(json.is_cut());
    return {buffer, json.length()};
}

/// What a JSON library reads of it; "(broken)" if it is no JSON.
std::string read_back(const std::string& json) {
    json_t* const value = json_loadb(json.data(), json.size(), JSON_DECODE_ANY | JSON_ALLOW_NUL, nullptr);
    if (value == nullptr) return "(broken)";
    std::string text(json_string_value(value), json_string_length(value));
    json_decref(value);
    return text;
}

TEST(JsonText, EachByteComesBackAsItWasOrAsTheReplacementCharacter) {
    for (int byte = 0; byte < 256; ++byte) {
        const std::string text{'a', static_cast<char>(byte), 'z'};
        const std::string expected = byte < 0x80 ? text : "a" + std::string(kReplacement) + "z";
        EXPECT_EQ(read_back(written(text)), expected) << byte;
    }
}

TEST(JsonText, EscapesAreTheShortOnes) {
    EXPECT_EQ(written("\"\\/\b\f\n\r\t\x01\x1f\x7f"), "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
}

TEST(JsonText, ValidUtf8PassesAndInvalidIsReplacedByteByByte) {
    for (const std::string text :
         {"\xC3\xA4", "\xE2\x82\xAC", "\xED\x9F\xBF", "\xEE\x80\x80", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF"}) {
        EXPECT_EQ(utf8_length(text), text.size());
        EXPECT_EQ(written(text), "\"" + text + "\"");
    }
    const std::string overlong = "\xC0\xAF";
    const std::string surrogate = "\xED\xA0\x80";
    const std::string too_high = "\xF4\x90\x80\x80";
    const std::string cut = "\xE2\x82";
    for (const std::string& text : {overlong, surrogate, too_high, cut, std::string("\xE0\x9F\xBF"),
                                    std::string("\xF0\x8F\xBF\xBF"), std::string("\xF5\x80\x80\x80")}) {
        std::string expected;
        for (std::size_t i = 0; i < text.size(); ++i)
            expected += kReplacement;
        EXPECT_EQ(read_back(written(text)), expected);
    }
    EXPECT_EQ(read_back(written("\xC3(")), std::string(kReplacement) + "(");
}

TEST(JsonText, ALimitCutsBetweenCharacters) {
    EXPECT_EQ(written("abcdef", 3), "\"abc\"");
    EXPECT_EQ(written("ab\xE2\x82\xAC", 4), "\"ab\"");
    EXPECT_EQ(written("ab\n", 3), "\"ab\"");
    EXPECT_EQ(written("ab\n", 4), "\"ab\\n\"");
    EXPECT_EQ(written("\xFF\xFF", 3), "\"" + std::string(kReplacement) + "\"");
    EXPECT_EQ(written("", 0), "\"\"");
}

TEST(JsonText, NothingIsWrittenBehindTheEndAndTheCutIsKnown) {
    for (std::size_t size = 0; size < 40; ++size) {
        std::string buffer(size, '#');
        JsonWriter json(buffer.data(), size);
        json.raw("{\"a\":");
        json.number(18446744073709551615U);
        json.raw(",\"b\":");
        json.string("x\n");
        json.raw("}");
        const std::string whole = "{\"a\":18446744073709551615,\"b\":\"x\\n\"}";
        EXPECT_EQ(json.is_cut(), size < whole.size());
        EXPECT_LE(json.length(), size);
        EXPECT_EQ(buffer.substr(0, json.length()), whole.substr(0, json.length()));
        json.rewind(0);
        EXPECT_FALSE(json.is_cut());
        EXPECT_EQ(json.length(), 0U);
    }
}

TEST(JsonText, OneStringOfSeveralParts) {
    char buffer[64];
    JsonWriter json(buffer, sizeof buffer);
    const std::string_view parts[] = {"unix:", "/s|", "http://h"};
    json.string(parts, 12);
    EXPECT_EQ(std::string(buffer, json.length()), "\"unix:/s|http\"");
}

}  // namespace
}  // namespace cb::core
