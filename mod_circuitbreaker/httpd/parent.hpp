// What the parent does while its children work: it clears up after those that have ended, and looks at all members now
// and then.
//
// Purpose: what a killed child held is given back, and changes that it did not report are told. A member's policy comes
// from its slot, because the parent does not know all members.
// Thread safety: the parent's one thread.
#ifndef CIRCUITBREAKER_HTTPD_PARENT_HPP
#define CIRCUITBREAKER_HTTPD_PARENT_HPP

#include "httpd_api.hpp"

namespace cb::httpd {

/// Clears up after children that ended while our code was not there to be told (the module taken out by one restart,
/// and back by another).
void clear_missed_children() noexcept;

extern "C" {
void cb_on_child_status(server_rec* s, pid_t pid, ap_generation_t generation, int slot,
                        mpm_child_status state) noexcept;
int cb_on_monitor(apr_pool_t* p, server_rec* s) noexcept;
}

}  // namespace cb::httpd

#endif
