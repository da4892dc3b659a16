#include "proxy_api.hpp"

#include <dlfcn.h>

namespace cb::httpd {

constinit ProxyApi proxy{};

namespace {

template <class Function>
bool find(Function& function, const char* name) noexcept {
    // httpd loads every module with RTLD_GLOBAL (apr_dso_load), so the global scope has them.
    void* const symbol = dlsym(RTLD_DEFAULT, name);
    static_assert(sizeof symbol == sizeof function);  // NOLINT(bugprone-sizeof-expression): pointers, both
    __builtin_memcpy(&function, &symbol, sizeof symbol);
    return symbol != nullptr;
}

}  // namespace

const char* resolve_proxy_api() noexcept {
    proxy = ProxyApi{};
    if (ap_find_linked_module("mod_proxy.c") == nullptr) return "proxy_module";
    if (!find(proxy.proxy_module, "proxy_module")) return "proxy_module";
    if (!find(proxy.get_balancer, "ap_proxy_get_balancer")) return "ap_proxy_get_balancer";
    if (!find(proxy.get_worker_ex, "ap_proxy_get_worker_ex")) return "ap_proxy_get_worker_ex";
    if (!find(proxy.sync_balancer, "ap_proxy_sync_balancer")) return "ap_proxy_sync_balancer";
    if (!find(proxy.initialize_worker, "ap_proxy_initialize_worker")) return "ap_proxy_initialize_worker";
    if (!find(proxy.de_socketfy, "ap_proxy_de_socketfy")) return "ap_proxy_de_socketfy";
    if (!find(proxy.port_of_scheme, "ap_proxy_port_of_scheme")) return "ap_proxy_port_of_scheme";
    if (!find(proxy.hook_pre_request, "proxy_hook_pre_request")) return "proxy_hook_pre_request";
    if (!find(proxy.hook_scheme_handler, "proxy_hook_scheme_handler")) return "proxy_hook_scheme_handler";
    if (!find(proxy.run_pre_request, "proxy_run_pre_request")) return "proxy_run_pre_request";
    if (!find(proxy.run_scheme_handler, "proxy_run_scheme_handler")) return "proxy_run_scheme_handler";
    return nullptr;
}

}  // namespace cb::httpd
