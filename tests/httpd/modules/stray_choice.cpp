// A module for one test: it chooses, in place of mod_proxy_balancer, a member that is not one of the balancer's, as far
// as anybody knew before. That is what it looks like when another process has added a member while we choose.
//
// A request names it in `X-Choose: BALANCER MEMBER`.
#include <ap_config.h>
// The order is httpd's.
// clang-format off
#include <httpd.h>
#include <apr_strings.h>
#include <http_config.h>
extern "C" {
#include <mod_proxy.h>  // which does not say so itself
}
// clang-format on

namespace {

extern "C" int choose(proxy_worker** worker, proxy_balancer** balancer, request_rec* r, proxy_server_conf* conf,
                      char** url) noexcept {
    const char* named = apr_table_get(r->headers_in, "X-Choose");
    if (named == nullptr || *balancer == nullptr) return DECLINED;
    const char* const of = ap_getword_white(r->pool, &named);
    proxy_balancer* const other = ap_proxy_get_balancer(r->pool, conf, of, 0);
    *worker = other != nullptr ? ap_proxy_get_worker(r->pool, other, conf, named) : nullptr;
    if (*worker == nullptr) return HTTP_INTERNAL_SERVER_ERROR;
    *url = apr_pstrcat(r->pool, (*worker)->s->name_ex, r->uri, nullptr);
    return OK;
}

extern "C" void register_hooks(apr_pool_t*) noexcept {
    // Behind mod_circuitbreaker's, which is the very first, and before mod_proxy_balancer's.
    proxy_hook_pre_request(choose, nullptr, nullptr, APR_HOOK_REALLY_FIRST + 1);
}

}  // namespace

extern "C" {
extern module AP_MODULE_DECLARE_DATA stray_choice_module;
module AP_MODULE_DECLARE_DATA stray_choice_module = {
    STANDARD20_MODULE_STUFF, nullptr, nullptr, nullptr, nullptr, nullptr, register_hooks, AP_MODULE_FLAG_NONE};
}
