// One member as the pages show it: copied out of shared memory, as plain values.
//
// Purpose: what the status page, its JSON and text, balancer-manager, mod_status and the metrics have in common, so
// that none of them reads an atomic.
// Thread safety: values. Each is read by itself while requests go on: a snapshot is no instant, but its state, level,
// probes, open time, times and changes are.
// Invariants: names point to configuration or into the snapshot.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_MODEL_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_MODEL_HPP

#include "httpd/members/registry.hpp"
#include "shm/history.hpp"
#include "shm/recorder.hpp"

namespace cb::httpd {

/// The totals, read; in `state_ms` the present stay is included.
struct Counts : shm::TotalsOf<std::uint64_t> {
    [[nodiscard]] std::uint64_t all_refused() const noexcept;
    [[nodiscard]] std::uint64_t all_would_refuse() const noexcept;
    [[nodiscard]] std::uint64_t all_transitions() const noexcept;
    [[nodiscard]] std::uint64_t opened() const noexcept;
};

struct Durations {
    const std::uint32_t* bounds;                 // upper ones of the buckets, ms
    std::uint64_t bucket[shm::kLatencyBuckets];  // each duration in one
    std::uint64_t sum_ms;
};

/// Since the member last took its traffic: what put it out, and how often it was probed in vain.
struct Outage {
    core::Millis since = 0;
    core::Reason reason = core::Reason::none;
    std::uint32_t rounds = 0;  // of probes that did not bring it back
    bool is_whole = false;     // false: it began before the changes that are kept
};

/// The member's id as pages and forms spell it: 16 hexadecimal digits.
inline constexpr std::size_t kIdText = 17;

struct MemberSnapshot {  // NOLINT(clang-analyzer-optin.performance.Padding): one at a time
    MemberSnapshot() = default;
    MemberSnapshot(const MemberSnapshot&) = delete;
    MemberSnapshot& operator=(const MemberSnapshot&) = delete;

    shm::Identity identity;
    char id[kIdText];        // of its identity: the same as long as its names are
    const Breaker* breaker;  // nullptr: no configuration has it any more, but children of before still use it
    core::Policy policy;     // without a breaker that of those children
    const char* name;
    const char* balancer;        // "" for a worker without one
    const char* vhost;           // "" without a breaker
    core::Word word;             // state, level, generation, and what belongs to the state
    core::Millis now;            // on the segment's clock, as all times here
    core::Millis since;          // start of the present state
    core::Reason reason;         // of the change that led to it; none: it has never changed
    core::Millis next_probe_in;  // open: until it may be probed
    bool was_probed_early;       // open: its last round began early, and failed
    bool is_awaiting_check;      // open: a health check has to pass before it may be probed
    core::Sums sums;
    std::uint32_t ramp_percent;  // recovering: requests let through; otherwise 0
    std::uint32_t in_flight;     // calls, probes included
    bool is_flapping;            // and reported so
    core::Outage too_cautious;   // the outage of which that was said; nothing in it if it was not
    shm::LeaseCounts leases;     // of probes, also those of an earlier round
    Counts counts;
    Durations calls;
    Durations probes;
    Durations outages;
    Durations waiting;                                 // in these outages, after the member was known to be well
    std::uint32_t changes;                             // of `change`
    std::uint64_t changes_ever;                        // the number of the last one (shm/changes.hpp)
    shm::HistoryEntry change[shm::kHistory];           // oldest first
    std::uint32_t failed_calls;                        // of `failed_call`
    shm::FailedCall failed_call[shm::kRecordedCalls];  // oldest first

    [[nodiscard]] core::State state() const noexcept { return word.state; }
    [[nodiscard]] bool is_out() const noexcept;
    /// Observe: what it says, it does not do.
    [[nodiscard]] bool is_observing() const noexcept { return policy.mode == core::Mode::observe; }
    [[nodiscard]] std::uint32_t probes_in_flight() const noexcept { return leases.in_flight; }
    /// Probes of the present round; of CircuitBreakerProbes where there is none.
    [[nodiscard]] std::uint32_t round() const noexcept {
        return state() == core::State::half_open ? word.round : policy.probes.round;
    }
    [[nodiscard]] core::Millis in_state_for() const noexcept { return now > since ? now - since : 0; }
};

/// Reads the member in that slot. False if it has gone.
[[nodiscard]] bool read_member(MemberSnapshot& member, std::uint32_t index) noexcept;

/// The breaker alone, or nullptr.
[[nodiscard]] const Breaker* breaker_at(std::uint32_t index) noexcept;
/// The state alone.
[[nodiscard]] core::Mode mode_of_member(std::uint32_t index) noexcept;
[[nodiscard]] core::State state_of_member(std::uint32_t index) noexcept;
/// Open, half-open, forced open: it does not take its traffic.
[[nodiscard]] constexpr bool is_out(core::State state) noexcept {
    return state == core::State::open || state == core::State::half_open || state == core::State::forced_open;
}

/// Of a member that is out, or was put out again while it recovered.
[[nodiscard]] Outage outage_of(const MemberSnapshot& member) noexcept;

/// Slots in use.
struct MemberList {
    const std::uint32_t* index = nullptr;
    std::uint32_t count = 0;
};
/// By name: by virtual host, balancer and name (numbers in names by their value).
enum class Order : std::uint8_t { by_name, by_slot };
[[nodiscard]] MemberList list_members(apr_pool_t* p, Order order = Order::by_name) noexcept;

/// Calls `visit(member)` for those that are still there.
template <class Visit>
void for_each_member(const MemberList& members, Visit visit) noexcept {
    for (std::uint32_t i = 0; i < members.count; ++i) {
        MemberSnapshot member;
        if (read_member(member, members.index[i])) visit(member);
    }
}

/// Wall-clock time of an instant on the segment's clock.
[[nodiscard]] apr_time_t wall_time(const MemberSnapshot& member, core::Millis at) noexcept;

/// The slot of the member with that id. False if there is none, or more than one.
[[nodiscard]] bool find_member(const char* id, std::uint32_t& index) noexcept;

[[nodiscard]] const char* mode_name(core::Mode mode) noexcept;

/// 12 of 25: 48; of 0: 0.
[[nodiscard]] inline std::uint32_t percent_of(std::uint64_t part, std::uint64_t whole) noexcept {
    return whole == 0 ? 0 : static_cast<std::uint32_t>((part * 100 + whole / 2) / whole);
}

}  // namespace cb::httpd

#endif
