#include "identity.hpp"

#include <cstring>

namespace cb::shm {
namespace {

char byte_of(const Identity& in_slot, std::size_t n) noexcept {
    char& byte = const_cast<char*>(reinterpret_cast<const char*>(&in_slot))[n];  // atomic_ref wants it mutable
    return std::atomic_ref<char>(byte).load(std::memory_order_relaxed);
}

}  // namespace

bool make_identity(Identity& identity, std::uint64_t vhost, const char* balancer, const char* name,
                   const char* uds_path) noexcept {
    std::memset(&identity, 0, sizeof identity);  // padding and tails count in same() and in the hash
    identity.vhost = vhost;
    const std::size_t lengths[] = {std::strlen(balancer), std::strlen(name), std::strlen(uds_path)};
    if (lengths[0] >= Identity::kBalancer || lengths[1] >= Identity::kName || lengths[2] >= Identity::kUdsPath) {
        return false;
    }
    std::memcpy(identity.balancer, balancer, lengths[0]);
    std::memcpy(identity.name, name, lengths[1]);
    std::memcpy(identity.uds_path, uds_path, lengths[2]);
    return true;
}

std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t seed) noexcept {
    std::uint64_t hash = seed ^ 0xCBF29CE484222325U;
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < size; ++i)
        hash = (hash ^ bytes[i]) * 0x100000001B3U;
    return hash;
}

bool same(const Identity& in_slot, const Identity& identity) noexcept {
    const auto* const bytes = reinterpret_cast<const char*>(&identity);
    for (std::size_t n = 0; n < sizeof identity; ++n) {
        if (byte_of(in_slot, n) != bytes[n]) return false;
    }
    return true;
}

void copy(Identity& identity, const Identity& in_slot) noexcept {
    auto* const to = reinterpret_cast<char*>(&identity);
    for (std::size_t n = 0; n < sizeof identity; ++n)
        to[n] = byte_of(in_slot, n);
}

void assign(Identity& in_slot, const Identity& identity) noexcept {
    // Who sees one of the new bytes sees the claim that came before them too (read_identity).
    std::atomic_thread_fence(std::memory_order_release);
    const auto* const bytes = reinterpret_cast<const char*>(&identity);
    auto* const to = reinterpret_cast<char*>(&in_slot);
    for (std::size_t n = 0; n < sizeof identity; ++n)
        std::atomic_ref<char>(to[n]).store(bytes[n], std::memory_order_relaxed);
}

}  // namespace cb::shm
