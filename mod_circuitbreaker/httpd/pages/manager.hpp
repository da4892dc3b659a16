// Our part of balancer-manager.
//
// Purpose: that page has no hook for other modules. So an output filter adds a section before `</body>`, or elements of
// our own namespace before `</httpd:manager>`, and leaves every other byte as it is.
// Thread safety: each request on its own thread.
// Invariants: a page that does not end as balancer-manager's own does passes unchanged.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_MANAGER_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_MANAGER_HPP

#include "httpd/httpd_api.hpp"

namespace cb::httpd {

void register_manager_filter() noexcept;

/// Puts the filter where balancer-manager is about to answer.
extern "C" void cb_on_insert_filter(request_rec* r) noexcept;

}  // namespace cb::httpd

#endif
