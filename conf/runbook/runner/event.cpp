#include "event.hpp"

#include <jansson.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace cb::runbook {
namespace {

std::string text_of(const json_t* value) {
    if (json_is_string(value)) return {json_string_value(value), json_string_length(value)};
    if (json_is_integer(value)) return std::to_string(json_integer_value(value));
    if (json_is_boolean(value)) return json_is_true(value) ? "true" : "false";
    if (json_is_real(value)) {
        char text[32];
        (void)std::snprintf(text, sizeof text, "%.1f", json_real_value(value));
        return text;
    }
    return "";  // null
}

std::string text_of(const json_t* object, const char* name) {
    return text_of(json_object_get(object, name));
}

std::string upper(std::string text) {
    for (char& c : text)
        c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
}

/// On one line, whatever it holds.
std::string printable(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
    return text;
}

/// Names of events and states, which become part of a path.
bool is_plain_name(const std::string& name) {
    return !name.empty() && name.size() < 64 &&
           std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
}

/// A sentence for people.
std::string sentence(const json_t* event) {
    std::string text = text_of(event, "member");
    if (!text_of(event, "balancer").empty()) text += " of " + text_of(event, "balancer");
    if (text_of(event, "event") == "transition") {
        text += ": " + text_of(event, "from") + " -> " + text_of(event, "to") + ": " + text_of(event, "reason");
    } else {
        text += ": " + text_of(event, "event") + ": " + text_of(event, "reason");
    }
    if (text_of(event, "calls") != "0") {
        text += ", " + text_of(event, "failures") + " of " + text_of(event, "calls") + " calls failed";
    }
    const double open_for = json_number_value(json_object_get(event, "open_for_ms")) / 1000.0;
    if (open_for > 0) {
        char next[64];
        (void)std::snprintf(next, sizeof next, "; next probe in %.1f s (level %s)", open_for,
                            text_of(event, "level").c_str());
        text += next;
    }
    return printable("circuit breaker: " + text);
}

std::string json_literal(const std::string& text) {
    const std::unique_ptr<json_t, decltype(&json_decref)> value(json_stringn(text.data(), text.size()), json_decref);
    const std::unique_ptr<char, decltype(&std::free)> literal(json_dumps(value.get(), JSON_ENCODE_ANY), std::free);
    return literal ? literal.get() : "\"\"";
}

void add_members(std::vector<std::string>& environment, const std::string& prefix, json_t* object) {
    const char* name = nullptr;
    json_t* value = nullptr;
    json_object_foreach(object, name, value) {
        const std::string variable = prefix + upper(name);
        const bool is_name = std::all_of(variable.begin(), variable.end(),
                                         [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
        if (!is_name || json_is_array(value)) continue;
        if (json_is_object(value)) {
            if (prefix == "CB_") add_members(environment, variable + "_", value);
        } else {
            environment.push_back(variable + "=" + text_of(value));
        }
    }
}

}  // namespace

std::optional<Event> parse_event(const std::string& line) {
    const std::unique_ptr<json_t, decltype(&json_decref)> object(json_loadb(line.data(), line.size(), 0, nullptr),
                                                                 json_decref);
    if (!json_is_object(object.get())) return std::nullopt;
    const std::string name = text_of(object.get(), "event");
    const std::string what = name == "transition" ? text_of(object.get(), "to") : name;
    if (!is_plain_name(what)) return std::nullopt;
    Event event;
    event.line = line + "\n";
    event.folder = "on-" + what + ".d";
    event.member = printable(text_of(object.get(), "member"));
    // Not the virtual host: httpd's parent does not know that of a member added at run time.
    event.key = text_of(object.get(), "balancer") + "\n" + text_of(object.get(), "member");
    add_members(event.environment, "CB_", object.get());
    const std::string text = sentence(object.get());
    event.environment.push_back("CB_TEXT=" + text);
    event.environment.push_back("CB_TEXT_JSON=" + json_literal(text));
    return event;
}

}  // namespace cb::runbook
