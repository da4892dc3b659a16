// The segment's life: APR shared memory that hangs on the server's process pool.
//
// Purpose: it is created once per server lifetime, and found again at every restart under a userdata key. So states,
// windows and counters outlive our own code, which httpd unloads and loads again at each restart.
// Thread safety: for the parent alone, while it reads its configuration.
// Invariants: nothing on the process pool points into our code or into pconf; no cleanup function of ours is there.
#ifndef CIRCUITBREAKER_SHM_SEGMENT_HPP
#define CIRCUITBREAKER_SHM_SEGMENT_HPP

#include <apr_pools.h>

#include "table.hpp"

namespace cb::shm {

enum class Origin : std::uint8_t {
    found,  ///< made before the last restart
    created,
    replaced,  ///< the one found is of another build; children that still use it keep it
    failed,
};

struct Opened {
    Segment segment;
    Origin origin = Origin::failed;
    apr_status_t status = APR_SUCCESS;  // failed: why
    std::size_t size = 0;
};

/// Finds the segment on `process_pool`, or makes one of `capacity` slots and `columns` children.
Opened open_segment(apr_pool_t* process_pool, std::uint32_t capacity, std::uint32_t columns) noexcept;

/// The segment that exists already, if any; creates none.
[[nodiscard]] Segment existing_segment(apr_pool_t* process_pool) noexcept;

}  // namespace cb::shm

#endif
