#include "parent.hpp"

#include <cerrno>
#include <csignal>

#include "httpd/members/registry.hpp"
#include "runtime.hpp"
#include "shm/changes.hpp"
#include "timer.hpp"

namespace cb::httpd {
namespace {

/// Tells of changes of state that nobody reported: the child that carried them out was killed in between.
void report_gaps() noexcept {
    static std::uint32_t last_slot = 0;
    static std::uint64_t last_gap = 0;
    for (std::uint32_t i = 0; i < runtime.segment.header->capacity; ++i) {
        if (!runtime.segment.is_ready(i)) continue;
        shm::Slot& slot = runtime.segment.slots[i];
        const std::uint64_t changes = shm::numbered_word(slot).number;
        const std::uint64_t reports = slot.reports.load(std::memory_order_acquire);
        if (reports >= changes) continue;  // more: of changes that came after the first look
        const std::uint64_t gap = changes - reports;
        // Seen twice in a row, so it is no report that is just being made.
        if (last_slot != i || last_gap != gap) {
            last_slot = i;
            last_gap = gap;
            return;
        }
        last_gap = 0;
        slot.reports.fetch_add(gap, std::memory_order_release);
        if (runtime.event_log >= 0) runtime.segment.header->events_lost.fetch_add(gap, std::memory_order_relaxed);
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, runtime.server,
                     "circuit breaker: member %s: %" APR_UINT64_T_FMT
                     " change(s) of state were not reported, as a child was killed; it is now %s",
                     MemberText(slot.identity).text, gap, core::name(core::state_of(slot.word.load())));
    }
}

}  // namespace

void clear_missed_children() noexcept {
    for (std::uint32_t i = 0; i < runtime.segment.header->columns; ++i) {
        const auto pid =
            static_cast<std::uint32_t>(runtime.segment.children[i].load(std::memory_order_seq_cst)) & shm::kPidMask;
        if (pid == 0 || kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH) continue;
        shm::child_exited(runtime.segment, runtime.process, pid);
    }
}

extern "C" {

void cb_on_child_status(server_rec*, pid_t pid, ap_generation_t, int, mpm_child_status state) noexcept {
    if (state != MPM_CHILD_EXITED || !runtime.segment.is_valid()) return;
    shm::child_exited(runtime.segment, runtime.process, static_cast<std::uint32_t>(pid));
    shm::free_unused(runtime.segment, runtime.process.pid);  // it may have been the last to use a removed member
}

int cb_on_monitor(apr_pool_t*, server_rec*) noexcept {
    if (!runtime.segment.is_valid()) return DECLINED;
    shm::free_unused(runtime.segment, runtime.process.pid);
    // A lost probe that no request comes across must not wait for its deadline to wrap (37 hours).
    for (std::uint32_t i = 0; i < runtime.segment.header->capacity; ++i) {
        if (!runtime.segment.is_ready(i)) continue;
        shm::Slot& slot = runtime.segment.slots[i];
        shm::expire_probes(slot, shm::noted_policy(slot), runtime.process);
    }
    if (runtime.registry != nullptr) runtime.registry->meet_sockets();
    look_at_time(runtime.has_timer ? 0 : kParentInterval);
    report_gaps();
    return DECLINED;
}

}  // extern "C"

}  // namespace cb::httpd
