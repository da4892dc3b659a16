#include "event.hpp"

#include <jansson.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

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
    if (text_of(event, "event") == "reset") return printable("circuit breaker: " + text);
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

using Json = std::unique_ptr<json_t, decltype(&json_decref)>;

Json json_of(const std::string& line) {
    return {json_loadb(line.data(), line.size(), 0, nullptr), json_decref};
}

/// A value of any kind, in one line.
std::string line_of(const json_t* value) {
    constexpr std::size_t kFlags = JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15);  // 33.3 stays 33.3
    const std::unique_ptr<char, decltype(&std::free)> line(json_dumps(value, kFlags), std::free);
    return line ? line.get() : "";
}

std::string json_literal(const std::string& text) {
    const std::string literal = line_of(Json(json_stringn(text.data(), text.size()), json_decref).get());
    return literal.empty() ? "\"\"" : literal;
}

/// What is wrong with the member: class or status of the calls in `recent`, each once, the most frequent first (of
/// those that are as frequent, the last one). A call that is there only for being slow is "slow".
std::string outcomes_of(const json_t* recent) {
    std::vector<std::pair<std::string, int>> counts;
    for (std::size_t i = json_array_size(recent); i-- > 0;) {
        const json_t* const call = json_array_get(recent, i);
        std::string outcome = text_of(call, "outcome");
        if (outcome.empty() || !std::all_of(outcome.begin(), outcome.end(),
                                            [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; })) {
            continue;
        }
        const bool is_good = outcome.size() == 3 && outcome >= "100" && outcome < "500";
        if (is_good && json_is_true(json_object_get(call, "slow"))) outcome = "slow";
        const auto found =
            std::find_if(counts.begin(), counts.end(), [&](const auto& each) { return each.first == outcome; });
        if (found == counts.end()) {
            counts.emplace_back(outcome, 1);
        } else {
            ++found->second;
        }
    }
    std::stable_sort(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    std::string text;
    for (const auto& [outcome, count] : counts)
        text += (text.empty() ? "" : " ") + outcome;
    return text;
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
    const Json object = json_of(line);
    if (!json_is_object(object.get())) return std::nullopt;
    const std::string name = text_of(object.get(), "event");
    const std::string what = name == "transition" ? text_of(object.get(), "to") : name;
    if (!is_plain_name(what)) return std::nullopt;
    Event event;
    event.line = line + "\n";
    event.folder = "on-" + what + ".d";
    event.sets = what == "open" || what == "forced-open";
    event.clears = what == "closed" || what == "forced-closed" || what == "reset";
    event.member = printable(text_of(object.get(), "member"));
    event.vhost = text_of(object.get(), "vhost");
    // Not the virtual host: httpd's parent does not know that of a member added at run time.
    event.key = text_of(object.get(), "balancer") + "\n" + text_of(object.get(), "member");
    add_members(event.environment, "CB_", object.get());
    // A probe's event has an outcome of its own.
    if (json_object_get(object.get(), "outcome") == nullptr) {
        event.environment.push_back("CB_OUTCOME=" + outcomes_of(json_object_get(object.get(), "recent")));
    }
    const std::string text = sentence(object.get());
    event.environment.push_back("CB_TEXT=" + text);
    event.environment.push_back("CB_TEXT_JSON=" + json_literal(text));
    return event;
}

std::optional<Event> reset_event(const std::string& opening) {
    const Json object = json_of(opening);
    if (!json_is_object(object.get())) return std::nullopt;
    json_object_set_new(object.get(), "event", json_string("reset"));
    json_object_set_new(object.get(), "to", json_null());
    json_object_set_new(object.get(), "reason", json_string("httpd was started anew"));
    std::string line = line_of(object.get());
    // The reason may be longer than that of the opening: as there, the newest calls that there is room for.
    json_t* const recent = json_object_get(object.get(), "recent");
    for (; line.size() > kMaxLine && json_array_size(recent) > 0; line = line_of(object.get()))
        json_array_remove(recent, 0);
    std::optional<Event> event = parse_event(line);
    if (event) event->folder.clear();
    return event;
}

}  // namespace cb::runbook
