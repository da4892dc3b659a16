#include "sections.hpp"

namespace cb::httpd {

apr_array_header_t* sections_of(apr_pool_t* p, const server_rec* s) noexcept {
    const apr_array_header_t* const all = proxy_conf(s)->sec_proxy;
    apr_array_header_t* const ours = apr_array_make(p, 4, sizeof(Section));
    for (int i = 0; i < all->nelts; ++i) {
        const auto* const config = APR_ARRAY_IDX(all, i, const ap_conf_vector_t*);
        const DirConfig* const settings = dir_config(config);
        const auto* const dir = static_cast<const proxy_dir_conf*>(ap_get_module_config(config, proxy.proxy_module));
        if (settings == nullptr || settings->section.set == 0 || dir == nullptr || dir->p == nullptr) continue;
        APR_ARRAY_PUSH(ours, Section) = {config, SectionName(p, *dir)};
    }
    return ours;
}

NamedMember::NamedMember(apr_pool_t* p, const proxy_balancer* balancer, const proxy_worker& worker) noexcept
    : balancer_(balancer),
      worker_(&worker),
      balancer_name_{"", balancer != nullptr ? normalized(p, balancer->s->name) : ""},
      worker_name_{worker.s->uds_path, normalized(p, worker.s->name_ex)} {}

bool NamedMember::is_named_by_balancer(const Section& section) const noexcept {
    return balancer_ != nullptr &&
           (section.config == balancer_->section_config || section.name.applies(balancer_name_));
}

bool NamedMember::is_named_itself(const Section& section) const noexcept {
    return section.config == worker_->section_config || section.name.applies(worker_name_);
}

}  // namespace cb::httpd
