// What this process knows beyond its configuration: the segment, its own pid, and its breakers.
//
// Purpose: the one place of mutable process-wide state.
// Thread safety: written in pre_config, post_config and child_init (one thread), read-only while requests run.
// Invariants: reset in pre_config, because the pools that the values of an earlier configuration point to are gone.
#ifndef CIRCUITBREAKER_HTTPD_RUNTIME_HPP
#define CIRCUITBREAKER_HTTPD_RUNTIME_HPP

#include "httpd_api.hpp"
#include "shm/table.hpp"

namespace cb::httpd {

class Registry;  // members/registry.hpp

/// A CircuitBreakerFallback as written. Whether that balancer exists is known once the whole configuration was read.
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
    bool wants_timer = false;                 // a directive needs it (timer.hpp)
    bool has_timer = false;                   // mod_watchdog calls us (timer.hpp)
    bool logs_probes = false;                 // the event log has an event for each probe
    bool has_health_checks = false;           // mod_proxy_hcheck is loaded
    bool has_settle_for_requests = false;     // a <Location> or the like has a CircuitBreakerSettle
    bool has_fatal_for_requests = false;      // a <Location> or the like has a rule with the verdict `fatal`
    const ap_directive_t* slow_rule_for_requests = nullptr;  // the same: a rule with the condition `slow`
};

extern Runtime runtime;

/// Milliseconds of the clock that all processes share.
[[nodiscard]] inline core::Millis now() noexcept {
    return runtime.process.clock.now();
}

}  // namespace cb::httpd

#endif
