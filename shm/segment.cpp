#include "segment.hpp"

#include <apr_shm.h>

namespace cb::shm {
namespace {

constexpr const char* kKey = "mod_circuitbreaker.segment";

void* aligned(apr_shm_t* shm) noexcept {
    // APR's anonymous memory begins a few bytes into its page (apr/shmem/unix/shm.c keeps the size there).
    const auto base = reinterpret_cast<std::uintptr_t>(apr_shm_baseaddr_get(shm));
    return reinterpret_cast<void*>((base + kLine - 1) / kLine * kLine);
}

Segment attached(apr_shm_t* shm) noexcept {
    const std::size_t size = apr_shm_size_get(shm);
    return size < kLine ? Segment{} : attach(aligned(shm), size - kLine);
}

apr_shm_t* on_pool(apr_pool_t* process_pool) noexcept {
    void* data = nullptr;
    apr_pool_userdata_get(&data, kKey, process_pool);
    return static_cast<apr_shm_t*>(data);
}

}  // namespace

Segment existing_segment(apr_pool_t* process_pool) noexcept {
    apr_shm_t* const shm = on_pool(process_pool);
    return shm != nullptr ? attached(shm) : Segment{};
}

Opened open_segment(apr_pool_t* process_pool, std::uint32_t capacity, std::uint32_t columns) noexcept {
    Opened opened;
    apr_shm_t* const found = on_pool(process_pool);
    if (found != nullptr) {
        opened.segment = attached(found);
        opened.size = apr_shm_size_get(found);
        opened.origin = Origin::found;
        if (opened.segment.is_valid()) return opened;
    }
    opened.size = segment_size(capacity, columns) + kLine;
    apr_shm_t* shm = nullptr;
    opened.status = apr_shm_create(&shm, opened.size, nullptr, process_pool);
    if (opened.status != APR_SUCCESS) {
        opened.origin = Origin::failed;
        return opened;
    }
    opened.segment = format(aligned(shm), capacity, columns, monotonic_ns());
    opened.origin = found != nullptr ? Origin::replaced : Origin::created;
    // Not _setn: the key would lie in our own code, which goes at the next restart. No cleanup function for the same
    // reason; APR's own cleanup of the shared memory is all there is.
    apr_pool_userdata_set(shm, kKey, nullptr, process_pool);
    return opened;
}

}  // namespace cb::shm
