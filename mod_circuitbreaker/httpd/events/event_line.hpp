// One event of a breaker as a line of JSON.
//
// Purpose: the form of the event log's lines; event_log.hpp writes them.
// Thread safety: reads shared memory; no state of its own. Runs inside request threads: no allocation, a bounded stack.
// Invariants: a line is valid JSON and valid UTF-8 whatever the names hold, ends with a newline, and has at most
// kMaxEventLine bytes, so that it is one write to a pipe that no other writer can come between.
#ifndef CIRCUITBREAKER_HTTPD_EVENTS_EVENT_LINE_HPP
#define CIRCUITBREAKER_HTTPD_EVENTS_EVENT_LINE_HPP

#include <climits>

#include "httpd/members/names.hpp"

namespace cb::httpd {

inline constexpr std::size_t kMaxEventLine = 4096;
static_assert(kMaxEventLine <= PIPE_BUF);

enum class EventName : std::uint8_t { transition, reset, suppressed, flapping, probe_lost, probe_soon, too_cautious };

struct EventData {
    EventName name = EventName::transition;
    core::State from = core::State::closed;  // the present state, where nothing changed
    core::State to = core::State::closed;    // of a transition
    const char* reason = "none";
    core::Sums sums;
    std::uint32_t level = 0;
    std::uint64_t number = 0;  // of the change, or of the last one where nothing changed (shm/changes.hpp)
    core::Millis open_for = 0;
    std::uint32_t probes_succeeded = 0;  // of the round that this event ended
    std::uint32_t probes_failed = 0;
    std::uint32_t probes_neutral = 0;
    bool with_recent = false;  // the last failing calls
};

/// Returns the length, newline included.
[[nodiscard]] std::size_t write_event_line(char (&line)[kMaxEventLine], const shm::Slot& slot,
                                           const EventData& event) noexcept;

}  // namespace cb::httpd

#endif
