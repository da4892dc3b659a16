#include "error_state.hpp"

#include "httpd/runtime.hpp"
#include "registry.hpp"

namespace cb::httpd {
namespace {

extern "C" apr_status_t give_back_error_states(void* registry) noexcept {
    // Not at a restart: the old children go on with the old status for a while, and the flag stays in the segment.
    if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_EXITING) {
        static_cast<Registry*>(registry)->for_each_bound([](Breaker& breaker, shm::Slot& slot) noexcept {
            disown_error_state(slot, const_cast<proxy_worker_shared&>(*breaker.key), false);
        });
    }
    return APR_SUCCESS;
}

}  // namespace

void own_error_state(shm::Slot& slot, proxy_worker_shared& worker, bool is_fresh) noexcept {
    const unsigned before = __atomic_fetch_or(&worker.status, PROXY_WORKER_IGNORE_ERRORS, __ATOMIC_SEQ_CST);
    if ((before & PROXY_WORKER_IGNORE_ERRORS) == 0) {
        slot.flags.fetch_or(shm::kOwnsIgnoreErrors);
    } else if (is_fresh) {
        slot.flags.fetch_and(~shm::kOwnsIgnoreErrors);  // ours is gone with the old status; this one is the operator's
    }
    __atomic_fetch_and(&worker.status, ~static_cast<unsigned>(PROXY_WORKER_IN_ERROR), __ATOMIC_SEQ_CST);
}

void disown_error_state(shm::Slot& slot, proxy_worker_shared& worker, bool is_fresh) noexcept {
    if ((slot.flags.fetch_and(~shm::kOwnsIgnoreErrors) & shm::kOwnsIgnoreErrors) == 0 || is_fresh) return;
    __atomic_fetch_and(&worker.status, ~static_cast<unsigned>(PROXY_WORKER_IGNORE_ERRORS), __ATOMIC_SEQ_CST);
}

void give_back_error_states_at_exit(apr_pool_t* pconf) noexcept {
    // Registered after mod_slotmem_shm's own cleanup, which writes the file, so it runs before it.
    apr_pool_cleanup_register(pconf, runtime.registry, give_back_error_states, apr_pool_cleanup_null);
}

}  // namespace cb::httpd
