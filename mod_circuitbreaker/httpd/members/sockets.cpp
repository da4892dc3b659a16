// Sockets that only requests name, in the registry.
#include <cstring>

#include "httpd/runtime.hpp"
#include "registry.hpp"

namespace cb::httpd {
namespace {

/// Those of all processes.
std::uint32_t count_sockets() noexcept {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < runtime.segment.header->capacity; ++i) {
        const bool is_one =
            (runtime.segment.slots[i].flags.load(std::memory_order_relaxed) & shm::kOfRequestedSocket) != 0;
        if (is_one && runtime.segment.is_ready(i)) ++count;
    }
    return count;
}

/// Once for each worker and configuration, by one process.
void tell_without_breaker(const Breaker& base, const char* path) noexcept {
    shm::Slot* const slot = base.slot.load(std::memory_order_acquire);
    if (slot == nullptr || (slot->flags.fetch_or(shm::kToldOfSockets) & shm::kToldOfSockets) != 0) return;
    ap_log_error(APLOG_MARK, APLOG_WARNING, 0, runtime.server,
                 "mod_circuitbreaker: calls to unix:%s|%s have no breaker, nor those to further sockets: requests have "
                 "named %u sockets already, or the path has more than %u characters",
                 path, base.name, kMaxSockets, static_cast<unsigned>(shm::Identity::kUdsPath) - 1);
}

bool is_base_of(const Breaker& breaker, const shm::Identity& identity) noexcept {
    return breaker.identity.uds_path[0] == '\0' && breaker.identity.vhost == identity.vhost &&
           std::strcmp(breaker.identity.balancer, identity.balancer) == 0 &&
           std::strcmp(breaker.identity.name, identity.name) == 0;
}

}  // namespace

Breaker* Registry::find(const proxy_worker& worker, const char* socket) noexcept {
    Breaker* const base = find(worker);
    if (socket == nullptr || base == nullptr || *worker.s->uds_path != '\0') return base;
    return find_socket(*base, socket);
}

Breaker* Registry::find_socket(const Breaker& base, const char* path) noexcept {
    for (std::uint32_t i = 0; i < kMaxSockets; ++i) {
        RequestedSocket& socket = sockets_[i];
        // Acquire: who sees it ready sees it filled in.
        const auto progress = socket.progress.load(std::memory_order_acquire);
        // Another thread is adding a socket, perhaps the same one, which must not get two entries. This one call runs
        // without a breaker.
        if (progress == RequestedSocket::Progress::filling) return nullptr;
        if (progress == RequestedSocket::Progress::none) return add_socket(socket, base, path);
        Breaker& breaker = socket.breaker;
        if (breaker.key != base.key || std::strcmp(breaker.identity.uds_path, path) != 0) continue;
        const bool is_bound = breaker.slot.load(std::memory_order_acquire) != nullptr || bind(breaker, nullptr, false);
        return is_bound ? &breaker : nullptr;
    }
    tell_without_breaker(base, path);
    return nullptr;
}

Breaker* Registry::add_socket(RequestedSocket& socket, const Breaker& base, const char* path) noexcept {
    shm::Identity identity;
    std::uint32_t index = 0;
    const bool is_valid =
        shm::make_identity(identity, base.identity.vhost, base.identity.balancer, base.identity.name, path);
    if (!is_valid || (!shm::find(runtime.segment, identity, index) && !has_room_for_sockets())) {
        tell_without_breaker(base, path);
        return nullptr;
    }
    auto expected = RequestedSocket::Progress::none;
    if (!socket.progress.compare_exchange_strong(expected, RequestedSocket::Progress::filling,
                                                 std::memory_order_acq_rel)) {
        return nullptr;
    }
    socket.name = MemberText(identity);
    socket.breaker.copy_settings(base);
    socket.breaker.name = socket.name.text;
    socket.breaker.identity = identity;
    socket.progress.store(RequestedSocket::Progress::ready, std::memory_order_release);
    return bind(socket.breaker, nullptr, false) ? &socket.breaker : nullptr;
}

bool Registry::has_room_for_sockets() noexcept {
    // Their number only grows while this configuration lasts. (Processes that add one at the same time may go beyond
    // the limit by a few; each has room for no more than that many itself.)
    if (!has_no_room_.load(std::memory_order_relaxed) && count_sockets() >= kMaxSockets) {
        has_no_room_.store(true, std::memory_order_relaxed);
    }
    return !has_no_room_.load(std::memory_order_relaxed);
}

void Registry::meet_sockets() noexcept {
    for (std::uint32_t i = 0; i < capacity_; ++i) {
        const shm::Slot& slot = runtime.segment.slots[i];
        if ((slot.flags.load(std::memory_order_relaxed) & shm::kOfRequestedSocket) == 0) continue;
        shm::Identity identity;
        if (at(i) != nullptr || !shm::read_identity(runtime.segment, i, identity)) continue;
        const Breaker* base = nullptr;
        for_each([&](Breaker& breaker) noexcept {
            const bool is_base = is_base_of(breaker, identity);
            if (is_base && breaker.slot.load(std::memory_order_acquire) != nullptr) base = &breaker;
        });
        if (base != nullptr) (void)find_socket(*base, identity.uds_path);
    }
}

}  // namespace cb::httpd
