#include "json.hpp"

#include <jansson.h>

namespace cb::core {
namespace {

/// The characters of a text in which a backslash takes away the meaning of the next one.
class Characters {
  public:
    explicit Characters(std::string_view text) noexcept : text_(text) {}

    [[nodiscard]] bool at_end() const noexcept { return at_ >= text_.size(); }
    [[nodiscard]] bool at(char separator) const noexcept { return !at_end() && text_[at_] == separator; }
    char next() noexcept {
        if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
        return text_[at_++];
    }
    [[nodiscard]] std::size_t position() const noexcept { return at_; }

  private:
    std::string_view text_;
    std::size_t at_ = 0;
};

/// The reference token that begins at `from` (after its slash), compared with a key: `~1` is a slash, `~0` a tilde.
struct Token {
    Characters begin;

    [[nodiscard]] bool is(std::string_view key) const noexcept {
        Characters characters = begin;
        std::size_t at = 0;
        while (!characters.at_end() && !characters.at('/')) {
            char c = characters.next();
            if (c == '~' && !characters.at_end()) c = characters.next() == '1' ? '/' : '~';
            if (at >= key.size() || key[at++] != c) return false;
        }
        return at == key.size();
    }
    /// RFC 6901: digits without leading zeros.
    [[nodiscard]] bool is_index(std::size_t& index) const noexcept {
        Characters characters = begin;
        index = 0;
        std::size_t digits = 0;
        for (; !characters.at_end() && !characters.at('/'); ++digits) {
            const char c = characters.next();
            if (c < '0' || c > '9' || digits > 8 || (digits == 1 && index == 0)) return false;
            index = index * 10 + static_cast<std::size_t>(c - '0');
        }
        return digits > 0;
    }
};

const json_t* member_of(const json_t* value, const Token& token) noexcept {
    if (json_is_array(value)) {
        std::size_t index = 0;
        return token.is_index(index) ? json_array_get(value, index) : nullptr;
    }
    if (!json_is_object(value)) return nullptr;
    auto* const object = const_cast<json_t*>(value);  // the iterator's interface is not const
    for (void* i = json_object_iter(object); i != nullptr; i = json_object_iter_next(object, i)) {
        if (token.is(json_object_iter_key(i))) return json_object_iter_value(i);
    }
    return nullptr;
}

const json_t* value_at(std::string_view pointer, const json_t* root) noexcept {
    const json_t* value = root;
    Characters characters(pointer);
    while (value != nullptr && !characters.at_end()) {
        characters.next();  // the slash
        value = member_of(value, Token{characters});
        while (!characters.at_end() && !characters.at('/'))
            characters.next();
    }
    return value;
}

/// The parser calls itself for each level, and a thread's stack may be small. So a body that is nested more deeply than
/// those of applications is not given to it. Up to the first byte that is not JSON, this sees strings as the parser
/// does.
bool is_too_deep(std::string_view text) noexcept {
    constexpr std::size_t kMostLevels = 64;
    std::size_t levels = 0;
    bool is_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (is_string) {
            if (c == '\\') ++i;
            if (c == '"') is_string = false;
        } else if (c == '"') {
            is_string = true;
        } else if (c == '[' || c == '{') {
            if (++levels > kMostLevels) return true;
        } else if ((c == ']' || c == '}') && levels > 0) {
            --levels;
        }
    }
    return false;
}

/// A number too large for an integer (an id of 64 bits without sign) must not hide the rest of the body: all are taken
/// for reals then.
json_t* parsed(std::string_view text, std::size_t flags) noexcept {
    if (is_too_deep(text)) return nullptr;
    json_error_t error;
    json_t* const value = json_loadb(text.data(), text.size(), flags, &error);
    if (value != nullptr || json_error_code(&error) != json_error_numeric_overflow) return value;
    return json_loadb(text.data(), text.size(), flags | JSON_DECODE_INT_AS_REAL, nullptr);
}

/// Equal, not close: the operator writes what the backend sends ("7", "7.0" and "7e0" are one number).
bool is_number(const json_t* value, std::string_view text) noexcept {
    json_t* const wanted = parsed(text, JSON_DECODE_ANY);
    bool is_equal = false;
    if (json_is_integer(wanted) && json_is_integer(value)) {
        is_equal = json_integer_value(wanted) == json_integer_value(value);
    } else if (json_is_number(wanted)) {
        is_equal = !(json_number_value(wanted) < json_number_value(value)) &&
                   !(json_number_value(wanted) > json_number_value(value));
    }
    json_decref(wanted);
    return is_equal;
}

bool is_text(std::string_view text, const Characters& from) noexcept {
    Characters characters = from;
    std::size_t at = 0;
    while (!characters.at_end() && !characters.at(',')) {
        if (at >= text.size() || text[at++] != characters.next()) return false;
    }
    return at == text.size();
}

bool equals(const json_t* value, std::string_view values, const Characters& from, std::size_t end) noexcept {
    switch (json_typeof(value)) {
        case JSON_STRING:
            return is_text({json_string_value(value), json_string_length(value)}, from);
        case JSON_INTEGER:
        case JSON_REAL:
            return is_number(value, {values.data() + from.position(), end - from.position()});
        case JSON_TRUE:
            return is_text("true", from);
        case JSON_FALSE:
            return is_text("false", from);
        case JSON_NULL:
            return is_text("null", from);
        default:
            return false;
    }
}

}  // namespace

const char* parse_json_condition(std::string_view text, JsonCondition& condition) noexcept {
    if (text.empty() || (text[0] != '/' && text[0] != ':'))
        return "a JSON Pointer begins with a slash (\"json=/error/code:7\")";
    Characters characters(text);
    while (!characters.at_end() && !characters.at(':')) {
        if (characters.next() != '~') continue;
        if (!characters.at('0') && !characters.at('1')) {
            return "in a JSON Pointer a tilde is written ~0, and a slash in a name ~1";
        }
    }
    if (characters.at_end()) return "the values to look for are missing (\"json=/error/code:7,8\")";
    condition.pointer = {text.data(), characters.position()};
    condition.values = {text.data() + characters.position() + 1, text.size() - characters.position() - 1};
    if (condition.values.empty()) return "the values to look for are missing (\"json=/error/code:7,8\")";
    return nullptr;
}

bool holds(const JsonCondition& condition, std::string_view body) noexcept {
    if (body.empty()) return false;
    json_t* const root = parsed(body, JSON_DECODE_ANY | JSON_ALLOW_NUL);
    if (root == nullptr) return false;
    bool is_found = false;
    if (const json_t* const value = value_at(condition.pointer, root)) {
        Characters characters(condition.values);
        while (!is_found) {
            const Characters from = characters;
            while (!characters.at_end() && !characters.at(','))
                characters.next();
            is_found = equals(value, condition.values, from, characters.position());
            if (characters.at_end()) break;
            characters.next();  // the comma
        }
    }
    json_decref(root);
    return is_found;
}

}  // namespace cb::core
