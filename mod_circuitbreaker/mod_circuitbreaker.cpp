// mod_circuitbreaker: a circuit breaker for every backend that mod_proxy talks to.
//
// The module record and the hooks; nothing else. Order:
// - pre_config: any; mod_proxy's functions are looked up there, and its hooks joined (httpd sorts hooks again after it)
// - check_config: any; needs only what was read
// - post_config: last: mod_proxy_balancer must have moved its members into shared memory before
// - child_init: any; uses nothing of other modules
// - pre_connection: first, as others may end it; only notes that a backend connection is new
// - error_log: any; only reads
// - create_request: any; reads the request of before, which is complete
// - handler: first, only to take variables out of the environment that handlers send to applications
// - handler: middle; our handler names are nobody else's
// - insert_error_filter: any; takes a field out that httpd has not yet read
// - log_transaction: first: what it puts into the environment is for the logs
// - insert_filter: any; the filter is for one handler, and its type says where it stands
// - status_hook: any; it is mod_status's, and optional
#include "httpd/call/backend_connection.hpp"
#include "httpd/call/watch.hpp"
#include "httpd/config/directives.hpp"
#include "httpd/config/settings.hpp"
#include "httpd/failover/answer_filter.hpp"
#include "httpd/lifecycle.hpp"
#include "httpd/pages/manager.hpp"
#include "httpd/pages/metrics.hpp"
#include "httpd/pages/server_status.hpp"
#include "httpd/pages/status_page.hpp"
#include "httpd/parent.hpp"
#include "httpd/request/environment.hpp"
#include "httpd/request/redirects.hpp"

namespace cb::httpd {
namespace {

extern "C" void register_hooks(apr_pool_t*) noexcept {
    ap_hook_pre_config(cb_on_pre_config, nullptr, nullptr, APR_HOOK_MIDDLE);
    ap_hook_check_config(cb_on_check_config, nullptr, nullptr, APR_HOOK_MIDDLE);
    // The cleanup of the one then comes after ours, and the start of the other one's checks (timer.cpp).
    static const char* const kAfter[] = {"mod_slotmem_shm.c", "mod_proxy_hcheck.c", nullptr};
    static const char* const kBeforeWatchdog[] = {"mod_watchdog.c", nullptr};  // which starts our timer
    ap_hook_post_config(cb_on_post_config, kAfter, kBeforeWatchdog, APR_HOOK_LAST);
    ap_hook_child_init(cb_on_child_init, nullptr, kBeforeWatchdog, APR_HOOK_MIDDLE);
    ap_hook_child_status(cb_on_child_status, nullptr, nullptr, APR_HOOK_MIDDLE);
    ap_hook_monitor(cb_on_monitor, nullptr, nullptr, APR_HOOK_MIDDLE);
    ap_hook_pre_connection(cb_on_pre_connection, nullptr, nullptr, APR_HOOK_REALLY_FIRST);
    ap_hook_error_log(cb_on_error_log, nullptr, nullptr, APR_HOOK_MIDDLE);
    ap_hook_create_request(cb_on_create_request, nullptr, nullptr, APR_HOOK_MIDDLE);
    ap_hook_handler(cb_on_handler, nullptr, nullptr, APR_HOOK_REALLY_FIRST);
    ap_hook_insert_error_filter(cb_on_insert_error_filter, nullptr, nullptr, APR_HOOK_MIDDLE);
    ap_hook_log_transaction(cb_on_log_transaction, nullptr, nullptr, APR_HOOK_REALLY_FIRST);
    ap_hook_handler(cb_on_status, nullptr, nullptr, APR_HOOK_MIDDLE);
    ap_hook_handler(cb_on_metrics, nullptr, nullptr, APR_HOOK_MIDDLE);
    ap_hook_insert_filter(cb_on_insert_filter, nullptr, nullptr, APR_HOOK_MIDDLE);
    register_status_hook();
    register_watch_filters();
    register_answer_filter();
    register_environment_filter();
    register_redirect_filter();
    register_manager_filter();
}

}  // namespace
}  // namespace cb::httpd

extern "C" {
module AP_MODULE_DECLARE_DATA circuitbreaker_module = {
    // STANDARD20_MODULE_STUFF, but with a name of our own, not this file's: people write <IfModule
    // mod_circuitbreaker.c>.
    MODULE_MAGIC_NUMBER_MAJOR,
    MODULE_MAGIC_NUMBER_MINOR,
    -1,
    "mod_circuitbreaker.c",
    nullptr,
    nullptr,
    MODULE_MAGIC_COOKIE,
    nullptr,
    cb::httpd::cb_create_dir_config,
    cb::httpd::cb_merge_dir_config,
    cb::httpd::cb_create_server_config,
    cb::httpd::cb_merge_server_config,
    cb::httpd::kDirectiveTable,
    cb::httpd::register_hooks,
    AP_MODULE_FLAG_NONE,
};
}
