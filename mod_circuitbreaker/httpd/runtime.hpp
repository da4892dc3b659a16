// What this process knows beyond its configuration: the segment, who it is, and its breakers.
//
// Purpose: the one place of mutable process-wide state.
// Thread safety: written in pre_config, post_config and child_init (one thread), read-only while requests run.
// Invariants: reset in pre_config (values of an earlier configuration must not live on: the pools they point to are
// gone).
#ifndef CIRCUITBREAKER_HTTPD_RUNTIME_HPP
#define CIRCUITBREAKER_HTTPD_RUNTIME_HPP

#include "httpd/members/registry.hpp"

namespace cb::httpd {

/// Where a CircuitBreakerFallback stands; whether there is such a balancer is known when all has been read.
struct NamedFallback {
    const server_rec* server;
    const char* name;
    const ap_directive_t* where;
};

struct Runtime {
    Registry* registry = nullptr;  // nullptr: no breaker is configured, everything is left to mod_proxy
    shm::Segment segment;
    shm::Process process;
    std::uint32_t column = shm::kNoColumn;
    std::uint64_t epoch = 0;
    server_rec* server = nullptr;
    apr_array_header_t* fallbacks = nullptr;  // of NamedFallback
    int event_log = -1;                       // descriptor; -1: none
    bool has_fatal_for_requests = false;      // a rule in a <Location> or the like may trip at once
};

extern Runtime runtime;

/// The cells of calls in flight to a member, as this process uses them.
[[nodiscard]] shm::InFlight in_flight(const shm::Slot& slot) noexcept;

/// Logs what the breakers do (events.cpp).
[[nodiscard]] shm::Observer* log_observer() noexcept;

}  // namespace cb::httpd

#endif
