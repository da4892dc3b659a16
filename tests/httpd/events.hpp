// The lines of the event log, as data.
//
//     std::vector<Event> events = read_events(httpd.root() / "events.json");   // throws for a line that is no JSON
//     EXPECT_EQ(events.at(0).text("to"), "open");
//
// Thread safety: values.
#pragma once

#include <jansson.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/httpd.hpp"

namespace cb::test {

class Event {
  public:
    /// Throws if it is not one JSON object.
    explicit Event(const std::string& line);

    /// Of a string member; throws for another type, or a name that isn't there.
    [[nodiscard]] std::string text(const std::string& name) const;
    [[nodiscard]] bool is_null(const std::string& name) const;
    [[nodiscard]] double number(const std::string& name) const;
    /// "probes": {"succeeded": 1} is `number_in("probes", "succeeded")`.
    [[nodiscard]] double number_in(const std::string& object, const std::string& name) const;
    /// The elements of an array of objects.
    [[nodiscard]] std::vector<Event> list(const std::string& name) const;
    [[nodiscard]] bool has(const std::string& name) const;
    [[nodiscard]] const std::string& line() const { return line_; }

  private:
    [[nodiscard]] json_t* member(const std::string& name) const;

    std::string line_;
    std::shared_ptr<json_t> value_;
};

/// Whole lines only: throws if the file does not end with a newline.
[[nodiscard]] std::vector<Event> read_events(const std::filesystem::path& file);

/// "closed -> open", "probe-lost", ... of each.
[[nodiscard]] std::vector<std::string> summary(const std::vector<Event>& events);

[[nodiscard]] bool wait_for_events(const std::filesystem::path& file, std::size_t count);

/// What is wrong with the numbers of these events of one member, or "": 1, 2, 3 without a gap, each change from where
/// the one before it ended, whatever the order of the lines.
[[nodiscard]] std::string wrong_with_numbers(std::vector<Event> events);

}  // namespace cb::test
