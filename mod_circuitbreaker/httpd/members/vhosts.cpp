#include "vhosts.hpp"

#include <cstring>

#include "shm/table.hpp"

namespace cb::httpd {
namespace {

std::uint64_t address_hash(const server_rec* s) noexcept {
    std::uint64_t hash = 0;
    if (s->addrs != nullptr) {
        hash = shm::hash_bytes(s->addrs->virthost, std::strlen(s->addrs->virthost), hash);
        hash = shm::hash_bytes(&s->addrs->host_port, sizeof s->addrs->host_port, hash);
    }
    const char* const name = s->server_hostname != nullptr ? s->server_hostname : "";
    hash = shm::hash_bytes(name, std::strlen(name), hash);
    return shm::hash_bytes(&s->port, sizeof s->port, hash);
}

std::uint64_t hash_of(server_rec* main_server, const server_rec* server) noexcept {
    const std::uint64_t hash = address_hash(server);
    std::uint64_t twins_before = 0;  // same address, same name: kept apart by their order
    for (const server_rec* s = main_server; s != nullptr && s != server; s = s->next) {
        if (address_hash(s) == hash) ++twins_before;
    }
    return hash + twins_before;
}

/// Virtual hosts of the same name and port on other addresses are numbered, so that no two are called the same.
const char* name_of(apr_pool_t* p, server_rec* main_server, const server_rec* server) noexcept {
    const auto name_in = [](const server_rec* s) noexcept {
        return s->server_hostname != nullptr ? s->server_hostname : "_default_";
    };
    const char* const name = name_in(server);
    unsigned number = 1;
    for (const server_rec* s = main_server; s != nullptr && s != server; s = s->next) {
        if (s->port == server->port && strcmp(name_in(s), name) == 0) ++number;
    }
    const char* const text =
        server->port != 0 ? apr_psprintf(p, "%s:%u", name, static_cast<unsigned>(server->port)) : name;
    return number > 1 ? apr_psprintf(p, "%s#%u", text, number) : text;
}

}  // namespace

Vhost vhost_of(apr_pool_t* p, server_rec* main_server, const server_rec* server) noexcept {
    return {name_of(p, main_server, server), hash_of(main_server, server)};
}

}  // namespace cb::httpd
