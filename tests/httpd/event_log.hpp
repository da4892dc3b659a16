// A server's event log, and how many lines it has lost.
#pragma once

#include "events.hpp"
#include "metrics_page.hpp"
#include "traffic.hpp"

namespace cb::test {

// Below the ServerRoot; with an event for each probe, or without.
inline constexpr const char* to_file = "CircuitBreakerEventLog events.json probes=Off\n";
inline constexpr const char* to_file_with_probes = "CircuitBreakerEventLog events.json\n";

[[nodiscard]] inline std::filesystem::path events_file(const Httpd& httpd) {
    return httpd.root() / "events.json";
}

[[nodiscard]] inline double events_lost(const Httpd& httpd) {
    return MetricsPage(httpd).series().at("httpd_circuitbreaker_events_lost_total");
}

}  // namespace cb::test
