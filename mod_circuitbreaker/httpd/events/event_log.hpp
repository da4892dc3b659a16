// CircuitBreakerEventLog: where the events go, and what happens to those that can't be written.
//
// Purpose: a file or a program, opened by the parent at each start and restart and used by it and all its children.
// Thread safety: open_event_log() in post_config; write_event() from any thread of any process, lock-free.
// Invariants: a write never blocks a request: a pipe's writing end is switched to non-blocking, for all processes at
// once, as they share it. A line that is not taken as a whole is counted (Header.events_lost), and each spell of losses
// makes one line in the error log when it begins and one when it ends. A full disk can cut a line off; the next one
// begins on a line of its own.
#ifndef CIRCUITBREAKER_HTTPD_EVENTS_EVENT_LOG_HPP
#define CIRCUITBREAKER_HTTPD_EVENTS_EVENT_LOG_HPP

#include "event_line.hpp"

namespace cb::httpd {

/// Opens what the main server's CircuitBreakerEventLog says, until `pconf` is cleared. False, and logged, if it can't.
[[nodiscard]] bool open_event_log(apr_pool_t* pconf, server_rec* main_server) noexcept;

/// Does nothing while there is no event log.
void write_event(const shm::Slot& slot, const EventData& event) noexcept;

}  // namespace cb::httpd

#endif
