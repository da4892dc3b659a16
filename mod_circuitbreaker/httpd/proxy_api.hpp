// mod_proxy's functions, found by name once all modules are loaded.
//
// Purpose: with plain references the module could only be loaded after mod_proxy (Debian loads in alphabetical order,
// "circuitbreaker" before "proxy"), and a missing mod_proxy would be a linker's message. So the functions are looked up
// in pre_config.
// Thread safety: written in pre_config only, read-only afterwards.
#ifndef CIRCUITBREAKER_HTTPD_PROXY_API_HPP
#define CIRCUITBREAKER_HTTPD_PROXY_API_HPP

#include "httpd_api.hpp"

namespace cb::httpd {

struct ProxyApi {
    module* proxy_module;
    decltype(&::ap_proxy_get_balancer) get_balancer;
    decltype(&::ap_proxy_get_worker_ex) get_worker_ex;
    decltype(&::ap_proxy_sync_balancer) sync_balancer;
    decltype(&::ap_proxy_initialize_worker) initialize_worker;
    decltype(&::ap_proxy_de_socketfy) de_socketfy;
    decltype(&::ap_proxy_port_of_scheme) port_of_scheme;
    decltype(&::proxy_hook_pre_request) hook_pre_request;
    decltype(&::proxy_hook_scheme_handler) hook_scheme_handler;
    decltype(&::proxy_run_pre_request) run_pre_request;
    decltype(&::proxy_run_scheme_handler) run_scheme_handler;
};

extern ProxyApi proxy;

/// Looks up all of them. Returns the name of what is missing; nullptr: nothing is.
[[nodiscard]] const char* resolve_proxy_api() noexcept;

[[nodiscard]] inline proxy_server_conf* proxy_conf(const server_rec* s) noexcept {
    return static_cast<proxy_server_conf*>(ap_get_module_config(s->module_config, proxy.proxy_module));
}

/// Time that mod_proxy gives a silent member before it gives up (`timeout=`, ProxyTimeout, Timeout).
[[nodiscard]] inline apr_interval_time_t timeout_of(const server_rec* s, const proxy_worker_shared& worker) noexcept {
    const proxy_server_conf* const conf = proxy_conf(s);
    return worker.timeout_set != 0 ? worker.timeout : conf->timeout_set != 0 ? conf->timeout : s->timeout;
}

[[nodiscard]] inline const proxy_dir_conf& proxy_dir_config(const request_rec* r) noexcept {
    return *static_cast<const proxy_dir_conf*>(ap_get_module_config(r->per_dir_config, proxy.proxy_module));
}

/// Do its flags, other than "in error", keep mod_proxy from using this member?
[[nodiscard]] inline bool is_barred(const proxy_worker_shared& worker) noexcept {
    constexpr unsigned kBarred = PROXY_WORKER_NOT_USABLE_BITMAP & ~static_cast<unsigned>(PROXY_WORKER_IN_ERROR);
    return (worker.status & kBarred) != 0;
}

/// The elements of balancer->workers, which is an array of pointers.
[[nodiscard]] inline proxy_worker** workers_of(const proxy_balancer& balancer) noexcept {
    return reinterpret_cast<proxy_worker**>(balancer.workers->elts);
}

}  // namespace cb::httpd

#endif
