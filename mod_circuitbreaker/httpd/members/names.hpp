// What a member is called wherever it is shown: virtual host, balancer, member.
//
// Purpose: one place, so that events and metrics call a member the same.
// Thread safety: reads shared memory and configuration only.
#ifndef CIRCUITBREAKER_HTTPD_MEMBERS_NAMES_HPP
#define CIRCUITBREAKER_HTTPD_MEMBERS_NAMES_HPP

#include <string_view>

#include "httpd/runtime.hpp"
#include "registry.hpp"

namespace cb::httpd {

struct MemberNames {
    std::string_view vhost;      // "" where this process does not know the member's configuration
    std::string_view balancer;   // "" for a worker without one
    std::string_view member[4];  // its parts: of a member on a unix socket "unix:", path, "|", name
};

[[nodiscard]] inline MemberNames names_of(const shm::Identity& identity, const Breaker* breaker) noexcept {
    const bool is_socket = identity.uds_path[0] != '\0';
    return {breaker != nullptr ? breaker->vhost : "",
            identity.balancer,
            {is_socket ? "unix:" : "", identity.uds_path, is_socket ? "|" : "", identity.name}};
}

/// What log lines call a member: "MEMBER of BALANCER", or "MEMBER" for a worker without a balancer.
struct LogName {
    char text[sizeof(MemberText) + sizeof " of " + shm::Identity::kBalancer] = "";

    explicit LogName(const shm::Identity& identity) noexcept {
        apr_snprintf(text, sizeof text, "%s%s%s", MemberText(identity).text, identity.balancer[0] != '\0' ? " of " : "",
                     identity.balancer);
    }
};

[[nodiscard]] inline MemberNames names_of(const shm::Slot& slot) noexcept {
    const std::uint32_t index = runtime.segment.index_of(slot);
    return names_of(slot.identity, runtime.registry != nullptr ? runtime.registry->at(index) : nullptr);
}

}  // namespace cb::httpd

#endif
