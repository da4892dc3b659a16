#include "settings.hpp"

#include <new>

namespace cb::httpd {
namespace {

template <class T>
T* made(apr_pool_t* p) noexcept {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (apr_palloc(p, sizeof(T))) T();
}

}  // namespace

void overlay(apr_pool_t* p, Settings& outer, const Settings& inner) noexcept {
    const core::Policy& from = inner.policy;
    core::Policy& to = outer.policy;
    if (inner.has(Directive::mode)) to.mode = from.mode;
    if (inner.has(Directive::window)) to.window = from.window;
    if (inner.has(Directive::minimum_calls)) to.minimum_calls = from.minimum_calls;
    if (inner.has(Directive::failure_rate)) to.failure_rate = from.failure_rate;
    if (inner.has(Directive::consecutive_failures)) to.consecutive_failures = from.consecutive_failures;
    if (inner.has(Directive::slow_call)) to.slow_call = from.slow_call;
    if (inner.has(Directive::open_time)) to.open_time = from.open_time;
    if (inner.has(Directive::max_open)) to.max_open = from.max_open;
    if (inner.has(Directive::probes)) to.probes = from.probes;
    if (inner.has(Directive::probe_timeout)) to.probe_timeout = from.probe_timeout;
    if (inner.has(Directive::probe_if)) outer.probe_if = inner.probe_if;
    if (inner.has(Directive::probe_header)) outer.probe_header = inner.probe_header;
    if (inner.has(Directive::ramp_up)) to.ramp_up = from.ramp_up;
    if (inner.has(Directive::verdict)) outer.rules = joined(p, inner.rules, outer.rules);
    if (inner.has(Directive::probe_verdict)) outer.probe_rules = joined(p, inner.probe_rules, outer.probe_rules);
    if (inner.has(Directive::body_limit)) to.body_limit = from.body_limit;
    if (inner.has(Directive::settle)) to.settle = from.settle;
    if (inner.has(Directive::retry_after)) to.retry_after = from.retry_after;
    if (inner.has(Directive::max_concurrent)) to.max_concurrent = from.max_concurrent;
    if (inner.has(Directive::fallback)) outer.fallback = inner.fallback;
    if (inner.has(Directive::failover)) to.failover = from.failover;
    if (inner.has(Directive::event_log)) outer.event_log = inner.event_log;
    if (inner.has(Directive::record_path)) to.record_path = from.record_path;
    if (inner.has(Directive::control)) outer.control = inner.control;
    if (inner.has(Directive::health_check)) to.early_probe = from.early_probe;
    if (inner.has(Directive::probe_body)) to.probe_body = from.probe_body;
    outer.set |= inner.set;
    for (std::uint32_t i = 0; i < kDirectives; ++i) {
        if (inner.where[i] != nullptr) outer.where[i] = inner.where[i];
    }
}

const char* with_place(apr_pool_t* p, const char* list, const ap_directive_t& where) noexcept {
    return apr_psprintf(p, "%s%s\"%s %s\" on line %d of %s", list != nullptr ? list : "", list != nullptr ? ", " : "",
                        where.directive, where.args, where.line_num, where.filename);
}

Settings& server_settings(const server_rec* s) noexcept {
    return *static_cast<Settings*>(ap_get_module_config(s->module_config, &circuitbreaker_module));
}

extern "C" {

void* cb_create_server_config(apr_pool_t* p, server_rec*) noexcept {
    return made<Settings>(p);
}

void* cb_merge_server_config(apr_pool_t* p, void* base, void* over) noexcept {
    auto* merged = made<Settings>(p);
    *merged = *static_cast<Settings*>(base);
    overlay(p, *merged, *static_cast<Settings*>(over));
    return merged;
}

void* cb_create_dir_config(apr_pool_t* p, char*) noexcept {
    return made<DirConfig>(p);
}

void* cb_merge_dir_config(apr_pool_t* p, void* base, void* over) noexcept {
    auto* merged = made<DirConfig>(p);
    *merged = *static_cast<DirConfig*>(base);
    overlay(p, merged->section, static_cast<DirConfig*>(over)->section);
    overlay(p, merged->request, static_cast<DirConfig*>(over)->request);
    return merged;
}

}  // extern "C"

}  // namespace cb::httpd
