#include "fallback.hpp"

#include <cstring>

#include "httpd/runtime.hpp"
#include "reverse_map.hpp"

namespace cb::httpd {
namespace {

/// The fallback that a <Location> or the like names, or else the policy's.
const char* name_for(const request_rec* r, const char* of_policy) noexcept {
    const Settings* const said = said_for_request(r, Directive::fallback);
    return said != nullptr ? said->fallback : of_policy;
}

/// The part of `url` after the balancer's or worker's name.
const char* rest_of(const char* url, const char* name) noexcept {
    const std::size_t length = std::strlen(name);
    if (ap_cstr_casecmpn(url, name, length) == 0) return url + length;
    const char* const host = std::strstr(url, "://");
    const char* const path = host != nullptr ? std::strchr(host + 3, '/') : nullptr;
    return path != nullptr ? path : "/";
}

/// A worker's URL is canonical already; that of a balancer is made so when its member is known (mod_proxy_balancer's
/// pre_request), from a decoded path and r->args. nullptr if it can't be decoded.
const char* before_canonical(const request_rec* r, const char* rest) noexcept {
    if (apr_table_get(r->notes, "proxy-nocanon") != nullptr) return rest;
    char* const path = apr_pstrmemdup(r->pool, rest, std::strcspn(rest, "?"));
    return ap_unescape_url_keep2f(path, 0) == OK ? path : nullptr;
}

/// nullptr without ProxyPassInterpolateEnv.
proxy_req_conf* request_config(request_rec* r) noexcept {
    return static_cast<proxy_req_conf*>(ap_get_module_config(r->request_config, proxy.proxy_module));
}

/// `worker`: the one that refuses, if it has no balancer.
bool take(RequestState& state, const proxy_worker_shared* worker, const char* fallback, const char* rest,
          char** url) noexcept {
    if (fallback == nullptr || rest == nullptr || state.is_fallback) return false;
    proxy_balancer* const balancer = proxy.get_balancer(state.r->pool, state.conf, fallback, 0);
    if (balancer == nullptr || balancer == state.balancer) return false;
    *url = apr_pstrcat(state.r->pool, balancer->s->name, *rest == '/' || *rest == '\0' ? "" : "/", rest, nullptr);
    map_answers_of_fallback(state, worker, *balancer);
    state.balancer = balancer;
    state.balancer_url = apr_pstrdup(state.r->pool, *url);
    state.is_fallback = true;
    state.tried = nullptr;  // members of the other balancer
    state.tried_count = 0;
    state.told.fallback = balancer->s->name;
    return true;
}

}  // namespace

BeforeFallback::BeforeFallback(const RequestState& state) noexcept
    : balancer(state.balancer),
      balancer_url(state.balancer_url),
      tried(state.tried),
      tried_count(state.tried_count),
      per_dir_config(state.r->per_dir_config) {
    if (const proxy_req_conf* const present = request_config(state.r); present != nullptr) interpolated = *present;
}

bool take_fallback_of_balancer(RequestState& state, char** url) noexcept {
    const char* of_policy = nullptr;
    for (const proxy_worker* const worker : runtime.registry->members(*state.balancer)) {
        const Breaker* const breaker = runtime.registry->find(*worker);
        if (breaker != nullptr && breaker->is_enforcing()) of_policy = breaker->fallback;
        if (of_policy != nullptr) break;
    }
    return take(state, nullptr, name_for(state.r, of_policy), rest_of(*url, state.balancer->s->name), url);
}

void leave_fallback(RequestState& state, const BeforeFallback& before, char** url) noexcept {
    state.balancer = before.balancer;
    state.balancer_url = before.balancer_url;
    state.tried = before.tried;
    state.tried_count = before.tried_count;
    state.is_fallback = false;
    *url = apr_pstrdup(state.r->pool, before.balancer_url);
    state.told.fallback = nullptr;
    state.r->per_dir_config = before.per_dir_config;
    if (proxy_req_conf* const present = request_config(state.r); present != nullptr) *present = before.interpolated;
}

bool take_fallback_of_worker(RequestState& state, const Breaker& breaker, char** url) noexcept {
    const char* const rest = before_canonical(state.r, rest_of(*url, breaker.key->name_ex));
    return take(state, breaker.key, name_for(state.r, breaker.fallback), rest, url);
}

}  // namespace cb::httpd
