// Who owns mod_proxy's error state of a member: its breaker, while that acts.
//
// Purpose: mod_proxy must not mark, retry or force a member whose breaker acts (DESIGN 4.4), so its flag
// PROXY_WORKER_IGNORE_ERRORS is set. Whether that is ours or the operator's stands in the slot.
// Thread safety: any process; other processes change other bits of the status meanwhile, hence the atomic access to
// httpd's plain field.
#ifndef CIRCUITBREAKER_HTTPD_MEMBERS_ERROR_STATE_HPP
#define CIRCUITBREAKER_HTTPD_MEMBERS_ERROR_STATE_HPP

#include "httpd/proxy_api.hpp"
#include "shm/layout.hpp"

namespace cb::httpd {

/// `is_fresh`: the status has just come from the configuration.
void own_error_state(shm::Slot& slot, proxy_worker_shared& worker, bool is_fresh) noexcept;
void disown_error_state(shm::Slot& slot, proxy_worker_shared& worker, bool is_fresh) noexcept;

/// When the server stops, mod_proxy_balancer may keep its members' status in a file (BalancerPersist): without what
/// is ours in it. To be called after its post_config.
void give_back_error_states_at_exit(apr_pool_t* pconf) noexcept;

}  // namespace cb::httpd

#endif
