// What time alone brings about, where no request comes: the end of an open time is announced, and health checks count.
//
// Purpose: mod_watchdog calls this in one child at a time, every 100 ms; when that child is killed, another one takes
// over within about a second. Where mod_watchdog is missing, httpd's parent does it, every ten seconds.
// Thread safety: look_at_time() from any thread of any process; start_timer() in post_config.
#ifndef CIRCUITBREAKER_HTTPD_TIMER_HPP
#define CIRCUITBREAKER_HTTPD_TIMER_HPP

#include "core/policy.hpp"
#include "httpd_api.hpp"

namespace cb::httpd {

/// How often httpd's parent looks, at least (wait_or_timeout() in mpm_common.c: ten looks of a second and a bit).
inline constexpr core::Millis kParentInterval = 11 * core::kMillisPerSecond;

/// Asks mod_watchdog to call, if there is anything to do. Before mod_watchdog's own post_config.
void start_timer(apr_pool_t* pconf) noexcept;

/// `interval`: the caller's next look comes that much later.
void look_at_time(core::Millis interval) noexcept;

}  // namespace cb::httpd

#endif
