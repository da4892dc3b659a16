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

inline constexpr std::size_t kMaxLine = 4095;  // without its newline; what is longer may not fit into a new pipe

struct Event {
    std::string line;                      // as it came, with its newline: what a program reads
    std::string key;                       // of balancer and member: its programs never run at the same time
    std::string vhost;                     // empty if httpd's parent does not know it
    std::string folder;                    // "on-open.d"
    bool sets = false;                     // the member is out: clear.d's programs clear what these have set
    bool clears = false;                   // the member is back
    std::string mark;                      // of a reset_event(): the mark to be cleared, and no other,
    std::string httpd;                     // if it is still that of this httpd
    std::string member;                    // for messages; no control characters
    std::vector<std::string> environment;  // "CB_MEMBER=..."
};

/// None if it is no event.
[[nodiscard]] std::optional<Event> parse_event(const std::string& line);

/// For a member that was out when httpd was stopped, from the line of its opening: its breaker is closed now. No
/// program of on-reset.d is for it.
[[nodiscard]] std::optional<Event> reset_event(const std::string& opening);

}  // namespace cb::runbook

#endif
