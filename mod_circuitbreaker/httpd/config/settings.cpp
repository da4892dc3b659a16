#include "settings.hpp"

#include <new>

#include "directives.hpp"

namespace cb::httpd {
namespace {

template <class T>
T* made(apr_pool_t* p) noexcept {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (apr_palloc(p, sizeof(T))) T();
}

}  // namespace

void overlay(apr_pool_t* p, Settings& outer, const Settings& inner) noexcept {
    for (std::uint32_t i = 0; i < kDirectives; ++i) {
        if (!inner.has(static_cast<Directive>(i))) continue;
        kDirectiveRows[i].lay_over(p, outer, inner);
        outer.note(static_cast<Directive>(i), inner.where[i]);
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
