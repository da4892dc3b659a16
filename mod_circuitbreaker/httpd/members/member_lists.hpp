// The members of each balancer, safe to read while others are added.
//
// Purpose: mod_proxy adds a member (balancer-manager, another process) to an array that other threads read. For a
// moment the array holds a record whose fields are not written yet, and the array may move to other memory. So the
// complete records are copied under mod_proxy's locks, each time the array has grown, and requests read the copy.
// Thread safety: build() in post_config; of() from any thread. It takes a lock only when the array has grown, and then
// the one that mod_proxy_balancer takes for each request. Virtual hosts that inherit a balancer share its array, but
// each of them has its own locks: mod_proxy does not exclude those from each other, nor do we.
// Invariants: a copy never changes and is never freed. Each record in it belongs to a member.
#ifndef CIRCUITBREAKER_HTTPD_MEMBERS_MEMBER_LISTS_HPP
#define CIRCUITBREAKER_HTTPD_MEMBERS_MEMBER_LISTS_HPP

#include <atomic>
#include <span>

#include "httpd/proxy_api.hpp"

namespace cb::httpd {

using Members = std::span<proxy_worker* const>;

/// Adds what other processes have added to the balancer's members. `s` and `conf`: those of the request, or of the
/// server that defines the balancer.
void sync_members(proxy_balancer& balancer, server_rec* s, proxy_server_conf* conf) noexcept;

class MemberLists {
  public:
    /// For all balancers of the configuration.
    void build(apr_pool_t* pconf, server_rec* main_server) noexcept;

    /// Its members now. Empty for a balancer that build() has not seen.
    [[nodiscard]] Members of(proxy_balancer& balancer) noexcept;

  private:
    struct List {
        int seen;  // length of the array when it was copied; -1: some of it was not complete
        std::uint32_t count;
        proxy_worker** member;
    };
    struct Balancer {
        const apr_array_header_t* workers;  // the key: the same for all virtual hosts that inherit the balancer
        std::atomic<const List*> list;
    };
    Balancer* find(const apr_array_header_t* workers) noexcept;
    static std::size_t size_of_list(int length) noexcept;
    static const List* copy(void* memory, const apr_array_header_t& workers, int length) noexcept;
    static void renew(Balancer& known, proxy_balancer& balancer) noexcept;

    Balancer* table_ = nullptr;
    std::uint32_t size_ = 0;  // a power of two, larger than the number of balancers
};

}  // namespace cb::httpd

#endif
