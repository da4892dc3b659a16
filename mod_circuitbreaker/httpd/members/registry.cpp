#include "registry.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "error_state.hpp"
#include "httpd/config/policies.hpp"
#include "httpd/config/walk.hpp"
#include "httpd/runtime.hpp"
#include "place.hpp"
#include "vhosts.hpp"

namespace cb::httpd {
namespace {

/// How long a call can go on after its deadline: a thread waits for its client, or for the member, no longer than that.
core::Millis linger(const server_rec* server, const proxy_worker_shared& worker) noexcept {
    return static_cast<core::Millis>(std::max(server->timeout, timeout_of(server, worker)) / 1000) + 1000;
}

void fill(Breaker& breaker, apr_pool_t* p, const server_rec* server, const Vhost& vhost, const proxy_balancer* balancer,
          const proxy_worker& worker, const Settings& settings) noexcept {
    breaker.key = worker.s;
    breaker.policy = settings.policy;
    breaker.policy.linger = linger(server, *worker.s);
    breaker.rules = settings.rules;
    breaker.probe_rules = settings.probe_rules;
    breaker.probe_if = settings.probe_if;
    breaker.fallback = settings.fallback;
    breaker.probe_header = settings.probe_header;
    breaker.failing_statuses = failing_statuses(p, balancer);
    breaker.balancer = balancer != nullptr ? apr_pstrdup(p, balancer->s->name) : "";
    breaker.vhost = vhost.name;
    const bool has_identity =
        shm::make_identity(breaker.identity, vhost.hash, breaker.balancer, worker.s->name_ex, worker.s->uds_path);
    breaker.is_final.store(!has_identity || settings.policy.mode == core::Mode::off, std::memory_order_relaxed);
    breaker.name = apr_pstrdup(p, MemberText(breaker.identity).text);
}

/// Does mod_proxy_balancer take its members' status from a file rather than from the configuration?
bool keeps_status(const server_rec* main_server) noexcept {
    for (const server_rec* s = main_server; s != nullptr; s = s->next) {
        if (proxy_conf(s)->bal_persist != 0) return true;
    }
    return false;
}

}  // namespace

MemberText::MemberText(const shm::Identity& identity) noexcept {
    const bool is_socket = identity.uds_path[0] != '\0';
    apr_snprintf(text, sizeof text, "%s%s%s%s", is_socket ? "unix:" : "", identity.uds_path, is_socket ? "|" : "",
                 identity.name);
}

void Breaker::copy_settings(const Breaker& base) noexcept {
    key = base.key;
    policy = base.policy;
    rules = base.rules;
    probe_rules = base.probe_rules;
    failing_statuses = base.failing_statuses;
    probe_if = base.probe_if;
    probe_header = base.probe_header;
    fallback = base.fallback;
    balancer = base.balancer;
    vhost = base.vhost;
}

shm::InFlight in_flight(const shm::Slot& slot) noexcept {
    if (runtime.column == shm::kNoColumn) return {};
    shm::Atomic32* const row = runtime.segment.row(runtime.segment.index_of(slot));
    // All columns, not those used so far: a child that registers between this look and our own count would be missed.
    return {row + runtime.column, row, runtime.segment.header->columns};
}

std::uint32_t count_members(apr_pool_t* ptemp, server_rec* main_server) noexcept {
    std::uint32_t count = 0;
    PolicyReader policies(ptemp, ptemp);
    for_each_member(main_server, [&](server_rec* s, proxy_balancer* balancer, proxy_worker& worker) noexcept {
        if (!can_have_breaker(worker)) return;
        if (policies.settings_of(s, balancer, worker).policy.mode != core::Mode::off) ++count;
    });
    // A balancer may have none now, and all of them later.
    for_each_balancer(main_server, [&](server_rec* s, proxy_balancer& balancer) noexcept {
        if (policies.may_have_breakers(s)) count += static_cast<std::uint32_t>(balancer.growth);
    });
    return count;
}

Registry* Registry::build(apr_pool_t* pconf, apr_pool_t* ptemp, server_rec* main_server, const shm::Segment& segment,
                          std::uint64_t epoch, std::uint32_t& without) noexcept {
    auto* const registry = new (apr_pcalloc(pconf, sizeof(Registry))) Registry();
    std::uint32_t members = 0;
    for_each_member(main_server, [&](server_rec*, proxy_balancer*, proxy_worker&) noexcept { ++members; });
    for_each_balancer(main_server, [&](server_rec*, proxy_balancer& balancer) noexcept {
        members += static_cast<std::uint32_t>(balancer.growth);
    });
    registry->size_ = 16;
    while (registry->size_ < 4 * members)
        registry->size_ *= 2;
    registry->lists_.build(pconf, main_server);
    registry->capacity_ = segment.header->capacity;
    registry->main_server_ = main_server;
    registry->epoch_ = epoch;
    registry->table_ = static_cast<std::atomic<Breaker*>*>(apr_pcalloc(pconf, registry->size_ * sizeof(void*)));
    registry->by_index_ = static_cast<std::atomic<Breaker*>*>(apr_pcalloc(pconf, registry->capacity_ * sizeof(void*)));
    registry->sockets_ = static_cast<RequestedSocket*>(apr_pcalloc(pconf, kMaxSockets * sizeof(RequestedSocket)));
    for (std::uint32_t i = 0; i < kMaxSockets; ++i)
        new (&registry->sockets_[i]) RequestedSocket();
    without = 0;
    PolicyReader policies(ptemp, pconf);
    const bool is_kept = keeps_status(main_server);
    const server_rec* last = nullptr;
    Vhost vhost{};
    for_each_member(main_server, [&](server_rec* s, proxy_balancer* balancer, proxy_worker& worker) noexcept {
        if (!can_have_breaker(worker)) return;
        if (s != last) vhost = vhost_of(pconf, main_server, s);
        last = s;
        auto* const breaker = new (apr_pcalloc(pconf, sizeof(Breaker))) Breaker();
        const Settings settings = policies.settings_of(s, balancer, worker);
        const core::Policy& policy = settings.policy;
        fill(*breaker, pconf, s, vhost, balancer, worker, settings);
        const bool is_fresh = balancer == nullptr || !is_kept;
        if (policy.mode != core::Mode::off && !registry->bind(*breaker, worker.s, is_fresh)) ++without;
        std::uint32_t index = 0;
        if (policy.mode != core::Mode::on && shm::find(segment, breaker->identity, index)) {
            disown_error_state(segment.slots[index], *worker.s, is_fresh);
        }
        registry->insert(breaker);
    });
    registry->meet_sockets();
    return registry;
}

bool Registry::bind(Breaker& breaker, proxy_worker_shared* worker, bool is_fresh) noexcept {
    if (breaker.is_final.load(std::memory_order_relaxed)) return false;
    std::uint32_t index = 0;
    const shm::BindResult result = shm::bind(runtime.segment, breaker.identity, epoch_, runtime.process.pid, index);
    if (result == shm::BindResult::full) {
        breaker.is_final.store(true, std::memory_order_relaxed);
        // At start the parent says so for all of them; a member added at run time is found by each child.
        if (runtime.column != shm::kNoColumn) {
            ap_log_error(
                APLOG_MARK, APLOG_WARNING, 0, runtime.server,
                "mod_circuitbreaker: member %s runs without a breaker: the table of %u slots is full. Stop and "
                "start httpd to make it larger",
                breaker.name, runtime.segment.header->capacity);
        }
    }
    if (result != shm::BindResult::bound) return false;
    shm::Slot& slot = runtime.segment.slots[index];
    // A child of an earlier configuration that meets a run-time member late leaves the newer one's policy alone.
    if (slot.epoch.load(std::memory_order_seq_cst) <= epoch_) shm::configure(slot, breaker.policy, runtime.process);
    by_index_[index].store(&breaker, std::memory_order_release);
    if (worker == nullptr) {
        slot.flags.fetch_or(shm::kOfRequestedSocket);
    } else {
        slot.flags.fetch_and(~(shm::kOfRequestedSocket | shm::kToldOfSockets));
        if (breaker.is_enforcing()) own_error_state(slot, *worker, is_fresh);
    }
    breaker.slot.store(&slot, std::memory_order_release);
    return true;
}

Breaker* Registry::find_key(const proxy_worker_shared* key) const noexcept {
    for (std::uint32_t i = place_of(key, size_), n = 0; n < size_; i = (i + 1) & (size_ - 1), ++n) {
        Breaker* const breaker = table_[i].load(std::memory_order_acquire);
        if (breaker == nullptr || breaker->key == key) return breaker;
    }
    return nullptr;
}

bool Registry::insert(Breaker* breaker) noexcept {
    for (std::uint32_t i = place_of(breaker->key, size_), n = 0; n < size_; i = (i + 1) & (size_ - 1), ++n) {
        Breaker* seen = nullptr;
        // Release: who finds the breaker finds it filled in.
        if (table_[i].compare_exchange_strong(seen, breaker, std::memory_order_acq_rel)) return true;
        if (seen->key == breaker->key) return false;  // another thread was faster
    }
    return false;
}

Breaker* Registry::find(const proxy_worker& worker) noexcept {
    Breaker* breaker = find_key(worker.s);
    if (breaker == nullptr) breaker = adopt(worker);
    if (breaker == nullptr) return nullptr;
    if (breaker->slot.load(std::memory_order_acquire) == nullptr && !bind(*breaker, worker.s, false)) {
        return nullptr;
    }
    return breaker;
}

/// A member that was added at run time (balancer-manager, BalancerGrowth). Rare, and never freed: at most one for each
/// slot of growth in each child.
Breaker* Registry::adopt(const proxy_worker& worker) noexcept {
    if (worker.balancer == nullptr || !can_have_breaker(worker)) return nullptr;
    const server_rec* server = nullptr;
    for_each_balancer(main_server_, [&](server_rec* s, proxy_balancer& balancer) noexcept {
        if (balancer.workers == worker.balancer->workers) server = s;
    });
    if (server == nullptr) return nullptr;
    apr_pool_t* kept = nullptr;
    if (apr_pool_create(&kept, nullptr) != APR_SUCCESS) return nullptr;
    apr_pool_t* scratch = nullptr;
    void* const memory = std::calloc(1, sizeof(Breaker));
    if (memory == nullptr || apr_pool_create(&scratch, nullptr) != APR_SUCCESS) {
        std::free(memory);
        apr_pool_destroy(kept);
        return nullptr;
    }
    const Settings settings = PolicyReader(scratch, kept).settings_of(server, worker.balancer, worker);
    auto* const breaker = new (memory) Breaker();
    fill(*breaker, kept, server, vhost_of(kept, main_server_, server), worker.balancer, worker, settings);
    apr_pool_destroy(scratch);
    if (!insert(breaker)) {
        apr_pool_destroy(kept);
        std::free(memory);
        return find_key(worker.s);
    }
    return breaker;
}

void Registry::know_all_members() noexcept {
    // Also in the copies of virtual hosts that inherit a balancer: each has its own memory for members added at run
    // time.
    for (server_rec* s = main_server_; s != nullptr; s = s->next) {
        proxy_server_conf* const conf = proxy_conf(s);
        if (s != main_server_ && conf == proxy_conf(main_server_)) continue;
        auto* const balancers = reinterpret_cast<proxy_balancer*>(conf->balancers->elts);
        for (int b = 0; b < conf->balancers->nelts; ++b)
            sync_members(balancers[b], s, conf);
    }
    for_each_balancer(main_server_, [&](server_rec*, proxy_balancer& balancer) noexcept {
        for (const proxy_worker* const worker : members(balancer))
            (void)find(*worker);
    });
    meet_sockets();
}

void Registry::forget_slots() noexcept {
    for_each([](Breaker& breaker) noexcept {
        breaker.slot.store(nullptr, std::memory_order_relaxed);
        breaker.is_final.store(true, std::memory_order_relaxed);
    });
    // Those of requested sockets are found through these, and not asked any more.
}

}  // namespace cb::httpd
