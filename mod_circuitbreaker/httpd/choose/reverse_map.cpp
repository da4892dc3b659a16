#include "reverse_map.hpp"

#include <algorithm>
#include <cstring>

#include "httpd/runtime.hpp"

namespace cb::httpd {
namespace {

/// A member's URL in its parts: `http://host:8080/path`, without a slash at the end.
struct Place {
    const char* url;
    const char* path;  // in `url`
    const char* host;
};

Place place_of(apr_pool_t* p, const proxy_worker_shared& worker) noexcept {
    const char* const bar = std::strchr(worker.name_ex, '|');  // behind the path of a unix domain socket
    char* const url = apr_pstrdup(p, bar != nullptr ? bar + 1 : worker.name_ex);
    std::size_t length = std::strlen(url);
    while (length > 0 && url[length - 1] == '/')
        url[--length] = '\0';
    const char* const scheme_end = std::strstr(url, "://");
    const char* const path = std::strchr(scheme_end != nullptr ? scheme_end + 3 : url, '/');
    return {url, path != nullptr ? path : url + length, worker.hostname_ex};
}

apr_array_header_t* places_of(apr_pool_t* p, proxy_balancer& balancer) noexcept {
    const Members members = runtime.registry->members(balancer);
    apr_array_header_t* const places = apr_array_make(p, static_cast<int>(members.size()), sizeof(Place));
    for (const proxy_worker* const worker : members)
        APR_ARRAY_PUSH(places, Place) = place_of(p, *worker->s);
    return places;
}

struct Mapping {
    request_rec* r;
    proxy_server_conf* conf;
    const proxy_balancer* first;  // nullptr: a worker
    const proxy_balancer* fallback;
    const apr_array_header_t* from;  // places of the first
    const apr_array_header_t* to;    // and of the fallback
};

template <class Visit>
void for_each_pair(const Mapping& mapping, Visit visit) noexcept {
    for (int f = 0; f < mapping.from->nelts; ++f) {
        for (int t = 0; t < mapping.to->nelts; ++t)
            visit(APR_ARRAY_IDX(mapping.from, f, const Place), APR_ARRAY_IDX(mapping.to, t, const Place));
    }
}

bool begins_with(const char* text, const char* prefix, std::size_t length) noexcept {
    return ap_cstr_casecmpn(text, prefix, length) == 0;
}

/// A line of the configuration: what begins with `inside` at the member becomes `outside` to the client.
struct Line {
    const char* inside;
    const char* outside;
};

/// The line that does to what begins with `to` what this one does to what begins with `from`. False: neither of
/// `inside` and `from` lies in the other.
bool move(apr_pool_t* p, Line& line, const char* from, const char* to) noexcept {
    const std::size_t from_length = std::strlen(from);
    const std::size_t length = std::strlen(line.inside);
    const char* const rest = line.inside + std::min(from_length, length);
    if (begins_with(line.inside, from, from_length) && (*rest == '\0' || *rest == '/')) {
        line.inside = apr_pstrcat(p, to, rest, nullptr);
    } else if (length > 0 && length < from_length && begins_with(from, line.inside, length) &&
               (from[length - 1] == '/' || from[length] == '/')) {
        line.inside = to;
        line.outside = apr_pstrcat(p, line.outside, from + length, nullptr);
    } else {
        return false;
    }
    if (*line.inside != '\0') return true;
    line.inside = "/";  // all paths there are
    const std::size_t end = std::strlen(line.outside);
    if (end == 0 || line.outside[end - 1] != '/') line.outside = apr_pstrcat(p, line.outside, "/", nullptr);
    return true;
}

/// ProxyPassReverse names a balancer, the URL of a member, or a path that all members have.
template <class Add>
void move_location(const Mapping& mapping, const Line& line, Add add) noexcept {
    apr_pool_t* const p = mapping.r->pool;
    if (begins_with(line.inside, BALANCER_PREFIX, sizeof(BALANCER_PREFIX) - 1)) {
        if (mapping.first == nullptr || proxy.get_balancer(p, mapping.conf, line.inside, 1) != mapping.first) return;
        const char* const path = std::strchr(line.inside + sizeof(BALANCER_PREFIX) - 1, '/');
        add({apr_pstrcat(p, mapping.fallback->s->name, path, nullptr), line.outside});
        return;
    }
    for_each_pair(mapping, [&](const Place& from, const Place& to) noexcept {
        Line moved = line;
        const bool is_path = *line.inside == '/';
        if (move(p, moved, is_path ? from.path : from.url, is_path ? to.path : to.url)) add(moved);
    });
}

/// Here all of a path is replaced, and not only how it begins.
template <class Add>
void move_cookie_path(const Mapping& mapping, const Line& line, Add add) noexcept {
    for_each_pair(mapping, [&](const Place& from, const Place& to) noexcept {
        Line moved = line;
        if (move(mapping.r->pool, moved, from.path, to.path)) add({moved.inside, line.outside});
    });
}

template <class Add>
void move_cookie_domain(const Mapping& mapping, const Line& line, Add add) noexcept {
    const bool has_dot = *line.inside == '.';
    for_each_pair(mapping, [&](const Place& from, const Place& to) noexcept {
        if (ap_cstr_casecmp(line.inside + (has_dot ? 1 : 0), from.host) != 0) return;
        add({apr_pstrcat(mapping.r->pool, has_dot ? "." : "", to.host, nullptr), line.outside});
    });
}

/// `${NAME}` as ProxyPassInterpolateEnv reads it.
const char* with_variables(const request_rec* r, const char* text) noexcept {
    const char* whole = "";
    for (;;) {
        const char* const begin = std::strstr(text, "${");
        const char* const end = begin != nullptr ? std::strchr(begin, '}') : nullptr;
        if (end == nullptr) return apr_pstrcat(r->pool, whole, text, nullptr);
        const char* const name = apr_pstrmemdup(r->pool, begin + 2, static_cast<apr_size_t>(end - begin - 2));
        const char* const value = apr_table_get(r->subprocess_env, name);
        const char* const before = apr_pstrmemdup(r->pool, text, static_cast<apr_size_t>(begin - text));
        whole = apr_pstrcat(r->pool, whole, before, value != nullptr ? value : "", nullptr);
        text = end + 1;
    }
}

using Member = const char* proxy_alias::*;

/// Adds what `move_line` makes of each line, behind all of them: what is written for the fallback itself comes first.
/// With ProxyPassInterpolateEnv mod_proxy uses a copy of the request's own, which has as many lines, and makes it again
/// for each balancer, from variables that are there by now.
template <class MoveLine>
void extend(const Mapping& mapping, apr_array_header_t*& lines, apr_array_header_t** interpolated, Member inside,
            Member outside, MoveLine move_line) noexcept {
    apr_pool_t* const p = mapping.r->pool;
    apr_array_header_t* const added = apr_array_make(p, 4, sizeof(proxy_alias));
    for (int i = 0; i < lines->nelts; ++i) {
        const auto& alias = APR_ARRAY_IDX(lines, i, const proxy_alias);
        if (alias.*inside == nullptr || alias.*outside == nullptr) continue;
        Line line{alias.*inside, alias.*outside};
        if (interpolated != nullptr && (alias.flags & PROXYPASS_INTERPOLATE) != 0) {
            line = {with_variables(mapping.r, line.inside), with_variables(mapping.r, line.outside)};
        }
        move_line(mapping, line, [&](const Line& moved) noexcept {
            if (std::strcmp(moved.inside, line.inside) == 0) return;
            auto& another = APR_ARRAY_PUSH(added, proxy_alias);
            another = proxy_alias{};
            another.*inside = moved.inside;
            another.*outside = moved.outside;
        });
    }
    lines = apr_array_append(p, lines, added);
    if (interpolated != nullptr) *interpolated = apr_array_append(p, *interpolated, added);
}

}  // namespace

void map_answers_of_fallback(RequestState& state, const proxy_worker_shared* worker,
                             proxy_balancer& fallback) noexcept {
    request_rec* const r = state.r;
    const proxy_dir_conf& present = proxy_dir_config(r);
    if (present.raliases->nelts + present.cookie_paths->nelts + present.cookie_domains->nelts == 0) return;
    proxy_req_conf* interpolated = nullptr;
    if (present.interpolate_env == 1) {
        interpolated = static_cast<proxy_req_conf*>(ap_get_module_config(r->request_config, proxy.proxy_module));
        if (interpolated == nullptr) return;
    }
    Mapping mapping{r,         state.conf, worker == nullptr ? state.balancer : nullptr,
                    &fallback, nullptr,    places_of(r->pool, fallback)};
    apr_array_header_t* from = nullptr;
    if (worker == nullptr) {
        from = places_of(r->pool, *state.balancer);
    } else {
        from = apr_array_make(r->pool, 1, sizeof(Place));
        APR_ARRAY_PUSH(from, Place) = place_of(r->pool, *worker);
    }
    mapping.from = from;

    auto* const own = static_cast<proxy_dir_conf*>(apr_pmemdup(r->pool, &present, sizeof(present)));
    extend(mapping, own->raliases, interpolated != nullptr ? &interpolated->raliases : nullptr, &proxy_alias::real,
           &proxy_alias::fake, [](const auto&... arguments) noexcept { move_location(arguments...); });
    extend(mapping, own->cookie_paths, interpolated != nullptr ? &interpolated->cookie_paths : nullptr,
           &proxy_alias::fake, &proxy_alias::real,
           [](const auto&... arguments) noexcept { move_cookie_path(arguments...); });
    extend(mapping, own->cookie_domains, interpolated != nullptr ? &interpolated->cookie_domains : nullptr,
           &proxy_alias::fake, &proxy_alias::real,
           [](const auto&... arguments) noexcept { move_cookie_domain(arguments...); });
    // The request's configuration of all modules is copied, and mod_proxy's replaced in the copy.
    r->per_dir_config = ap_merge_per_dir_configs(r->pool, r->per_dir_config, ap_create_per_dir_config(r->pool));
    ap_set_module_config(r->per_dir_config, proxy.proxy_module, own);
}

}  // namespace cb::httpd
