// Readers of the directives about opening and recovering.
//
// Purpose: see readers.hpp.
// Thread safety: while the configuration is read.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_RECOVERY_READERS_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_RECOVERY_READERS_HPP

#include "core/policy.hpp"
#include "words.hpp"

namespace cb::httpd {

[[nodiscard]] const char* read_open_time(const Words& words, core::Policy& policy) noexcept;
[[nodiscard]] const char* read_max_open(const Words& words, core::Policy& policy) noexcept;
[[nodiscard]] const char* read_probes(const Words& words, core::Policy& policy) noexcept;
[[nodiscard]] const char* read_probe_timeout(const Words& words, core::Policy& policy) noexcept;
[[nodiscard]] const char* read_ramp_up(const Words& words, core::Policy& policy) noexcept;
[[nodiscard]] const char* read_failover(const Words& words, core::Policy& policy) noexcept;

}  // namespace cb::httpd

#endif
