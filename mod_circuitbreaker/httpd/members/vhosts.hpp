// Virtual hosts as members have them: a name for people, and a hash for their identity.
//
// Purpose: both stay the same over restarts and reordering.
// Thread safety: reads configuration only.
#ifndef CIRCUITBREAKER_HTTPD_MEMBERS_VHOSTS_HPP
#define CIRCUITBREAKER_HTTPD_MEMBERS_VHOSTS_HPP

#include <cstdint>

#include "httpd/httpd_api.hpp"

namespace cb::httpd {

struct Vhost {
    const char* name;    // name:port; those of the same name and port on other addresses are numbered
    std::uint64_t hash;  // of its first address and ServerName
};

[[nodiscard]] Vhost vhost_of(apr_pool_t* p, server_rec* main_server, const server_rec* server) noexcept;

}  // namespace cb::httpd

#endif
