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

enum class EventName : std::uint8_t {
    transition,
    reset,
    suppressed,
    flapping,
    probe_lost,
    probe_soon,
    too_cautious,
    probe
};

struct EventData {
    EventName name = EventName::transition;
    core::State from = core::State::closed;  // the present state, where nothing changed
    core::State to = core::State::closed;    // of a transition
    const char* reason = "none";
    core::Sums sums;
    std::uint32_t level = 0;
    std::uint64_t number = 0;  // of the change, or of the last one where nothing changed (shm/changes.hpp)
    core::Millis open_for = 0;
    shm::Round round;                      // the one that this event ended; of a probe, with that probe
    const shm::ProbeEnd* probe = nullptr;  // of a probe
    bool is_failed_over = false;           // another member got the request of the probe
    bool with_recent = false;              // the last failing calls
};

/// Returns the length, newline included.
[[nodiscard]] std::size_t write_event_line(char (&line)[kMaxEventLine], const shm::Slot& slot,
                                           const EventData& event) noexcept;

}  // namespace cb::httpd

#endif
