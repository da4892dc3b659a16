#include "member_lists.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#include "httpd/config/walk.hpp"
#include "place.hpp"

namespace cb::httpd {
namespace {

/// mod_proxy's lock of a balancer within a process, as mod_proxy_balancer takes it for each request.
class ThreadLock {
  public:
    explicit ThreadLock(proxy_balancer& balancer) noexcept
        : balancer_(balancer), is_held_(PROXY_THREAD_LOCK(&balancer) == APR_SUCCESS) {}
    ~ThreadLock() {
        if (is_held_) (void)PROXY_THREAD_UNLOCK(&balancer_);
    }
    ThreadLock(const ThreadLock&) = delete;
    ThreadLock& operator=(const ThreadLock&) = delete;
    [[nodiscard]] bool is_held() const noexcept { return is_held_; }

  private:
    proxy_balancer& balancer_;
    bool is_held_;
};

/// The lock under which balancer-manager adds a member. It is shared by all processes, so nobody waits for it here.
class GlobalLock {
  public:
    explicit GlobalLock(proxy_balancer& balancer) noexcept
        : balancer_(balancer),
          result_(balancer.gmutex != nullptr ? apr_global_mutex_trylock(balancer.gmutex) : APR_ENOTIMPL) {}
    ~GlobalLock() {
        if (result_ == APR_SUCCESS) (void)PROXY_GLOBAL_UNLOCK(&balancer_);
    }
    GlobalLock(const GlobalLock&) = delete;
    GlobalLock& operator=(const GlobalLock&) = delete;
    /// A member is being added. (A lock that is gone, as for a child of before a restart, is held by nobody.)
    [[nodiscard]] bool is_busy() const noexcept { return APR_STATUS_IS_EBUSY(result_); }

  private:
    proxy_balancer& balancer_;
    apr_status_t result_;
};

/// Other threads add to the array: a plain field of httpd's, so its length is read as an atomic. Acquire: the memory
/// that the array has now holds as many (apr_array_push moves it before it counts).
int length_of(const apr_array_header_t& workers) noexcept {
    return __atomic_load_n(&workers.nelts, __ATOMIC_ACQUIRE);
}

}  // namespace

void sync_members(proxy_balancer& balancer, server_rec* s, proxy_server_conf* conf) noexcept {
    if (balancer.s->wupdated <= balancer.wupdated) return;
    const ThreadLock lock(balancer);
    if (lock.is_held()) proxy.sync_balancer(&balancer, s, conf);
}

std::size_t MemberLists::size_of_list(int length) noexcept {
    return sizeof(List) + static_cast<std::size_t>(length) * sizeof(proxy_worker*);
}

void MemberLists::build(apr_pool_t* pconf, server_rec* main_server) noexcept {
    std::uint32_t count = 0;
    for_each_balancer(main_server, [&](server_rec*, proxy_balancer&) noexcept { ++count; });
    size_ = 4;
    while (size_ < 2 * count)
        size_ *= 2;
    table_ = static_cast<Balancer*>(apr_pcalloc(pconf, size_ * sizeof(Balancer)));
    for_each_balancer(main_server, [&](server_rec*, proxy_balancer& balancer) noexcept {
        Balancer* const known = find(balancer.workers);
        known->workers = balancer.workers;
        const int length = balancer.workers->nelts;
        void* const memory = apr_palloc(pconf, size_of_list(length));
        known->list.store(copy(memory, *balancer.workers, length), std::memory_order_relaxed);  // relaxed: one thread
    });
}

/// The balancer's place, or the free one that it would have.
MemberLists::Balancer* MemberLists::find(const apr_array_header_t* workers) noexcept {
    std::uint32_t i = place_of(workers, size_);
    while (table_[i].workers != nullptr && table_[i].workers != workers)
        i = (i + 1) & (size_ - 1);
    return &table_[i];
}

const MemberLists::List* MemberLists::copy(void* memory, const apr_array_header_t& workers, int length) noexcept {
    if (memory == nullptr) return nullptr;
    auto* const list = new (memory) List{length, 0, nullptr};
    list->member = reinterpret_cast<proxy_worker**>(list + 1);
    // Relaxed: whatever memory it is, it holds `length` of them (length_of).
    auto* const members = reinterpret_cast<proxy_worker* const*>(__atomic_load_n(&workers.elts, __ATOMIC_RELAXED));
    for (int i = 0; i < length; ++i) {
        if (members[i] != nullptr && members[i]->s != nullptr) {
            list->member[list->count++] = members[i];
        } else {
            list->seen = -1;
        }
    }
    return list;
}

/// If a member is just being added, the present copy stays, and the next request tries again.
void MemberLists::renew(Balancer& known, proxy_balancer& balancer) noexcept {
    const ThreadLock lock(balancer);
    const GlobalLock others(balancer);
    if (!lock.is_held() || others.is_busy()) return;
    // Acquire: its count is looked at.
    const List* present = known.list.load(std::memory_order_acquire);
    // Once: a thread with another virtual host's locks may be adding to the array.
    const int length = length_of(*balancer.workers);
    void* const memory = std::malloc(size_of_list(length));
    const List* const list = copy(memory, *balancer.workers, length);
    const auto is_better = [&]() noexcept {
        return list != nullptr && (present == nullptr || list->count > present->count || list->seen > present->seen);
    };
    while (is_better()) {
        // Release: who finds the copy finds it filled in. It is never freed, as requests may be reading it; there is
        // about one for each member that is added.
        if (known.list.compare_exchange_weak(present, list, std::memory_order_acq_rel)) return;
    }
    std::free(memory);
}

Members MemberLists::of(proxy_balancer& balancer) noexcept {
    Balancer& known = *find(balancer.workers);
    if (known.workers == nullptr) return {};
    const List* list = known.list.load(std::memory_order_acquire);
    if (list == nullptr || list->seen != length_of(*balancer.workers)) {
        renew(known, balancer);
        list = known.list.load(std::memory_order_acquire);
    }
    if (list == nullptr) return {};
    return {list->member, list->count};
}

}  // namespace cb::httpd
