// The breakers of this process: from mod_proxy's worker to policy and shared slot.
//
// Purpose: built by the parent in post_config, inherited by every child, and completed in a child for members that are
// added at run time. The key is `proxy_worker_shared`, because virtual hosts that inherit a balancer share it.
// Thread safety: build() in post_config; find() from any thread, lock-free.
// Invariants: a Breaker is never freed or changed while requests run, except that an empty `slot` may be filled in.
#ifndef CIRCUITBREAKER_HTTPD_MEMBERS_REGISTRY_HPP
#define CIRCUITBREAKER_HTTPD_MEMBERS_REGISTRY_HPP

#include <atomic>

#include "httpd/config/settings.hpp"
#include "httpd/proxy_api.hpp"
#include "member_lists.hpp"
#include "shm/table.hpp"

namespace cb::httpd {

/// What a member is called in logs and pages: on a unix domain socket `unix:PATH|URL`.
struct MemberText {
    char text[sizeof "unix:|" + shm::Identity::kUdsPath + shm::Identity::kName] = "";
    MemberText() noexcept = default;
    explicit MemberText(const shm::Identity& identity) noexcept;
};

struct Breaker {
    const proxy_worker_shared* key;
    core::Policy policy;
    RuleList rules;  // verdict rules: of probes only, and of all calls
    RuleList probe_rules;
    core::Rule failing_statuses;     // of the built-in verdicts
    const ap_expr_info_t* probe_if;  // nullptr: every request may be a probe
    const char* probe_header;        // nullptr: none
    const char* fallback;            // nullptr: none
    const char* name;                // as mod_proxy shows it, with its socket path
    const char* balancer;            // "" for a worker without one
    const char* vhost;               // name:port of the server that defines it
    shm::Identity identity;
    std::atomic<shm::Slot*> slot;  // nullptr: runs without a breaker (table full, or being claimed by another process)
    // It can't be bound. Relaxed: a thread that misses what another one has just found out asks the table once more.
    std::atomic<bool> is_final;

    [[nodiscard]] bool is_enforcing() const noexcept { return policy.mode == core::Mode::on; }
    /// All that the configuration says of a worker, for a socket that requests name for it.
    void copy_settings(const Breaker& base) noexcept;
};

/// A unix domain socket that requests name for a worker that has none of its own (SetHandler "proxy:unix:PATH|URL").
/// mod_proxy then calls that socket, so it is a member.
struct RequestedSocket {
    enum class Progress : std::uint8_t { none, filling, ready };
    std::atomic<Progress> progress;
    Breaker breaker;
    MemberText name;
};
inline constexpr std::uint32_t kMaxSockets = 64;  // of the server; there is a limit as clients may affect their names

class Registry {
  public:
    /// Every member whose breaker is not Off gets its slot. Returns their number; `without` counts those that got none.
    static Registry* build(apr_pool_t* pconf, apr_pool_t* ptemp, server_rec* main_server, const shm::Segment& segment,
                           std::uint64_t epoch, std::uint32_t& without) noexcept;

    /// The breaker of a worker, with its slot; nullptr if it has none.
    [[nodiscard]] Breaker* find(const proxy_worker& worker) noexcept;

    /// The same for a call that goes to `socket` (nullptr: none) if the worker has no socket of its own.
    [[nodiscard]] Breaker* find(const proxy_worker& worker, const char* socket) noexcept;

    /// The members of a balancer, as they are now.
    [[nodiscard]] Members members(proxy_balancer& balancer) noexcept { return lists_.of(balancer); }

    /// Finds all members that any process has added, and all sockets that requests have named. Otherwise a child only
    /// knows added members once it uses their balancer, and its pages must not depend on that.
    void know_all_members() noexcept;

    /// Finds the sockets that requests have named in other processes, or before a restart.
    void meet_sockets() noexcept;

    /// The breaker whose slot has this index, or nullptr.
    [[nodiscard]] const Breaker* at(std::uint32_t index) const noexcept {
        return index < capacity_ ? by_index_[index].load(std::memory_order_acquire) : nullptr;
    }

    /// Those of the configuration, and of members that were added at run time.
    template <class Visit>
    void for_each(Visit visit) noexcept {
        for (std::uint32_t i = 0; i < size_; ++i) {
            if (Breaker* const breaker = table_[i].load(std::memory_order_acquire)) visit(*breaker);
        }
    }

    /// Of these, each that has a slot: visit(breaker, slot).
    template <class Visit>
    void for_each_bound(Visit visit) noexcept {
        for_each([&](Breaker& breaker) noexcept {
            if (shm::Slot* const slot = breaker.slot.load(std::memory_order_acquire)) visit(breaker, *slot);
        });
    }

    /// For a child whose slots may have been freed meanwhile: it runs without breakers from now on.
    void forget_slots() noexcept;

  private:
    Breaker* find_key(const proxy_worker_shared* key) const noexcept;
    bool insert(Breaker* breaker) noexcept;
    Breaker* adopt(const proxy_worker& worker) noexcept;
    Breaker* find_socket(const Breaker& base, const char* path) noexcept;
    Breaker* add_socket(RequestedSocket& socket, const Breaker& base, const char* path) noexcept;
    bool has_room_for_sockets() noexcept;
    /// `worker`: whose errors it owns, nullptr for a socket that a request has named. `is_fresh`: the worker's status
    /// has just come from the configuration.
    bool bind(Breaker& breaker, proxy_worker_shared* worker, bool is_fresh) noexcept;

    MemberLists lists_;
    std::atomic<Breaker*>* table_;
    std::atomic<Breaker*>* by_index_;
    RequestedSocket* sockets_;  // [kMaxSockets], filled in their order
    std::atomic<bool> has_no_room_;
    std::uint32_t size_;  // a power of two
    std::uint32_t capacity_;
    server_rec* main_server_;
    std::uint64_t epoch_;
};

/// The cells of calls in flight to a member, as this process uses them.
[[nodiscard]] shm::InFlight in_flight(const shm::Slot& slot) noexcept;

/// Members and room for those that may be added at run time, of all breakers that are not Off.
[[nodiscard]] std::uint32_t count_members(apr_pool_t* ptemp, server_rec* main_server) noexcept;

}  // namespace cb::httpd

#endif
