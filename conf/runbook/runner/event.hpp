// One line of the event log, as the runbook's programs get it.
//
// Purpose: from a line of JSON to a folder of programs and an environment. Nothing of an event is ever part of a
// command or of a path, but for the checked name of its folder. Thread safety: values.
#ifndef CIRCUITBREAKER_RUNBOOK_EVENT_HPP
#define CIRCUITBREAKER_RUNBOOK_EVENT_HPP

#include <optional>
#include <string>
#include <vector>

namespace cb::runbook {

struct Event {
    std::string line;                      // as it came, with its newline: what a program reads
    std::string key;                       // programs of the same key never run at the same time
    std::string folder;                    // "on-open.d"
    bool sets = false;                     // the member is out: clear.d's programs clear what these have set
    bool clears = false;                   // the member is back
    std::string member;                    // for messages; no control characters
    std::vector<std::string> environment;  // "CB_MEMBER=..."
};

/// None if it is no event.
[[nodiscard]] std::optional<Event> parse_event(const std::string& line);

}  // namespace cb::runbook

#endif
