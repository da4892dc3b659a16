// Where else the actions can be found: balancer-manager has to know the status page's place.
#include "actions.hpp"

#include <cstring>

#include "httpd/config/host_names.hpp"

namespace cb::httpd {
namespace {

/// What the <Location> sections say about one path, as httpd's own walk would put it together.
struct Said {
    bool is_status = false;
    Control control;
};

/// Does a section for `section` apply to `path`? Whole segments (ap_location_walk).
bool applies(const char* section, const char* path) noexcept {
    const std::size_t length = std::strlen(section);
    if (std::strncmp(section, path, length) != 0) return false;
    return path[length] == '\0' || path[length] == '/' || (length > 0 && section[length - 1] == '/');
}

const core_dir_config* core_config(const ap_conf_vector_t* section) noexcept {
    return static_cast<const core_dir_config*>(ap_get_core_module_config(section));
}

bool is_plain(const core_dir_config& section) noexcept {
    return section.r == nullptr && section.d_is_fnmatch == 0 && section.d != nullptr && *section.d == '/';
}

/// httpd keeps SetHandler's word as an expression, which may be more than a word; nullptr if the section says nothing.
const char* handler_of(request_rec* r, const core_dir_config& section) noexcept {
    if (section.expr_handler == nullptr) return section.handler;
    const char* error = nullptr;
    const char* const word = ap_expr_str_exec(r, section.expr_handler, &error);
    return error == nullptr ? word : nullptr;
}

Said said_of(request_rec* r, const apr_array_header_t& sections, const char* path) noexcept {
    Said said;
    for (int i = 0; i < sections.nelts; ++i) {
        const auto* const section = APR_ARRAY_IDX(&sections, i, const ap_conf_vector_t*);
        const core_dir_config* const core = core_config(section);
        if (core == nullptr || !is_plain(*core) || !applies(core->d, path)) continue;
        if (const char* const handler = handler_of(r, *core)) {
            said.is_status = ap_cstr_casecmp(handler, "circuitbreaker-status") == 0;
        }
        const DirConfig* const ours = dir_config(section);
        if (ours != nullptr && ours->request.has(Directive::control)) said.control = ours->request.control;
    }
    return said;
}

}  // namespace

Controls controls_of_server(request_rec* r) noexcept {
    const auto* const core =
        static_cast<const core_server_config*>(ap_get_core_module_config(r->server->module_config));
    const apr_array_header_t& sections = *core->sec_url;
    for (int i = 0; i < sections.nelts; ++i) {
        const core_dir_config* const section = core_config(APR_ARRAY_IDX(&sections, i, const ap_conf_vector_t*));
        if (section == nullptr || !is_plain(*section)) continue;
        const Said said = said_of(r, sections, section->d);
        if (said.is_status && said.control.is_on && is_for_host(r, said.control.hosts))
            return {ap_os_escape_path(r->pool, section->d, 1), action_token(r->pool)};
    }
    return {};
}

}  // namespace cb::httpd
