// The module's life: check the configuration, open the segment, join in a child.
//
// Purpose: the hooks that are not about a request.
// Thread safety: each is called by one thread of its process.
#ifndef CIRCUITBREAKER_HTTPD_LIFECYCLE_HPP
#define CIRCUITBREAKER_HTTPD_LIFECYCLE_HPP

#include "httpd_api.hpp"

namespace cb::httpd {

extern "C" {
int cb_on_pre_config(apr_pool_t* pconf, apr_pool_t* plog, apr_pool_t* ptemp) noexcept;
int cb_on_check_config(apr_pool_t* pconf, apr_pool_t* plog, apr_pool_t* ptemp, server_rec* s) noexcept;
int cb_on_post_config(apr_pool_t* pconf, apr_pool_t* plog, apr_pool_t* ptemp, server_rec* s) noexcept;
void cb_on_child_init(apr_pool_t* pchild, server_rec* s) noexcept;
}

}  // namespace cb::httpd

#endif
