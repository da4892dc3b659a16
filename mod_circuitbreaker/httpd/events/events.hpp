// What the breakers do, as lines of the error log and of the event log.
//
// Purpose: the observer that lifecycle.cpp gives to the shared-memory code.
// Thread safety: the observer has no state; it is called from any thread of any process.
#ifndef CIRCUITBREAKER_HTTPD_EVENTS_EVENTS_HPP
#define CIRCUITBREAKER_HTTPD_EVENTS_EVENTS_HPP

#include "shm/member.hpp"

namespace cb::httpd {

/// Logs what the breakers do.
[[nodiscard]] shm::Observer* log_observer() noexcept;

}  // namespace cb::httpd

#endif
