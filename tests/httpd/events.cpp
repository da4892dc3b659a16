#include "events.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace cb::test {

Event::Event(const std::string& line) : line_(line) {
    json_error_t error;
    json_t* const value = json_loadb(line.data(), line.size(), 0, &error);
    value_ = std::shared_ptr<json_t>(value, json_decref);
    if (!json_is_object(value)) throw std::runtime_error(std::string("no JSON object: ") + error.text + ": " + line);
}

json_t* Event::member(const std::string& name) const {
    json_t* const found = json_object_get(value_.get(), name.c_str());
    if (found == nullptr) throw std::runtime_error("no " + name + ": " + line_);
    return found;
}

std::string Event::text(const std::string& name) const {
    json_t* const value = member(name);
    if (!json_is_string(value)) throw std::runtime_error(name + " is no string: " + line_);
    return {json_string_value(value), json_string_length(value)};
}

bool Event::is_null(const std::string& name) const {
    return json_is_null(member(name));
}

double Event::number(const std::string& name) const {
    json_t* const value = member(name);
    if (!json_is_number(value)) throw std::runtime_error(name + " is no number: " + line_);
    return json_number_value(value);
}

double Event::number_in(const std::string& object, const std::string& name) const {
    json_t* const value = json_object_get(member(object), name.c_str());
    if (!json_is_number(value)) throw std::runtime_error(object + "." + name + " is no number: " + line_);
    return json_number_value(value);
}

std::vector<Event> Event::list(const std::string& name) const {
    json_t* const array = member(name);
    if (!json_is_array(array)) throw std::runtime_error(name + " is no array: " + line_);
    std::vector<Event> elements;
    for (std::size_t i = 0; i < json_array_size(array); ++i) {
        const std::unique_ptr<char, decltype(&std::free)> text(json_dumps(json_array_get(array, i), 0), std::free);
        elements.emplace_back(text.get());
    }
    return elements;
}

bool Event::has(const std::string& name) const {
    return json_object_get(value_.get(), name.c_str()) != nullptr;
}

std::vector<Event> read_events(const std::filesystem::path& file) {
    const std::string text = read_file(file);
    if (!text.empty() && text.back() != '\n') throw std::runtime_error("half a line: " + text);
    std::vector<Event> events;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        events.emplace_back(line);
    return events;
}

std::vector<std::string> summary(const std::vector<Event>& events) {
    std::vector<std::string> lines;
    for (const Event& event : events) {
        lines.push_back(event.text("event") == "transition" ? event.text("from") + " -> " + event.text("to")
                                                            : event.text("event"));
    }
    return lines;
}

bool wait_for_events(const std::filesystem::path& file, std::size_t count) {
    const auto lines = [&] {
        const std::string text = read_file(file);
        return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    };
    return wait_until([&] { return lines() >= count; }, patience, std::to_string(count) + " events");
}

std::string wrong_with_numbers(std::vector<Event> events) {
    std::sort(events.begin(), events.end(),
              [](const Event& a, const Event& b) { return a.number("generation") < b.number("generation"); });
    std::string state = "closed";
    for (std::size_t i = 0; i < events.size(); ++i) {
        const Event& event = events[i];
        if (event.number("generation") != static_cast<double>(i + 1)) return "not number " + std::to_string(i + 1);
        if (event.text("from") != state) return "it was " + state + " before " + event.line();
        if (!event.is_null("to")) state = event.text("to");
    }
    return "";
}

}  // namespace cb::test
