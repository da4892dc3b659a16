// Layout of the shared segment: what lies where, and nothing else.
//
//   Header | children[columns] | directory[capacity] | slots[capacity] | cells[capacity][columns]
//
// Purpose: records that every process of the server reads and writes through atomics. They hold indexes, never
// pointers; an all-zero record is a valid one, so a fresh segment needs no initialisation beyond its header.
// Thread safety: every field that changes after it was published is an atomic.
// Invariants: lock-free 64-bit atomics; records start at multiples of 64; sizes are part of the header, so a
// segment of another build is recognised and replaced.
#ifndef CIRCUITBREAKER_SHM_LAYOUT_HPP
#define CIRCUITBREAKER_SHM_LAYOUT_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/policy.hpp"
#include "core/verdict.hpp"
#include "core/word.hpp"

namespace cb::shm {

using Atomic64 = std::atomic<std::uint64_t>;
using Atomic32 = std::atomic<std::uint32_t>;
static_assert(Atomic64::is_always_lock_free && Atomic32::is_always_lock_free);
static_assert(sizeof(Atomic64) == 8 && sizeof(Atomic32) == 4);

inline constexpr std::size_t kLine = 64;
inline constexpr std::uint64_t kMagic = 0x63627265616B6572U;  // "cbreaker"
inline constexpr std::uint32_t kLayoutVersion = 6;
inline constexpr std::uint32_t kLeases = 16;
inline constexpr std::uint32_t kWindowWords = 257;
inline constexpr std::uint32_t kPidBits = 22;  // Linux: PID_MAX_LIMIT is 2^22
inline constexpr std::uint32_t kPidMask = (1U << kPidBits) - 1;

struct alignas(kLine) Header {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t header_size;
    std::uint32_t slot_size;
    std::uint32_t capacity;  // member slots
    std::uint32_t columns;   // children that can be registered at once
    std::uint32_t reserved;
    std::uint64_t start_ns;  // CLOCK_MONOTONIC at creation
    Atomic64 epoch;          // restarts of this server; children are forked in one of them
    Atomic64 freed_epoch;    // slots not configured since this epoch may have been freed
    Atomic64 columns_used;   // highest column ever registered + 1: bound of every sum over cells
    Atomic64 token[2];       // of the status page's forms; 0: not drawn yet
    Atomic64 events_lost;    // lines that the event log did not take
    Atomic64 events_spell;   // events_lost + 1 when the present run of losses began; 0: there is none
    Atomic64 events_torn;    // when it was noted that the log's file may end in half a line; 0: it does not
};
static_assert(sizeof(Header) == 2 * kLine);
static_assert(alignof(Header) == kLine);

/// A registered child: pid:22 | epoch:42; 0 is free.
using ChildWord = Atomic64;

/// Why a member's breaker refused a request.
enum class Refusal : std::uint8_t { none, open, half_open, ramp, forced_open, max_concurrent };
inline constexpr std::uint32_t kRefusals = 6;

/// How a probe ended. `neutral`: it proved nothing.
enum class ProbeResult : std::uint8_t { success, failure, neutral, lost };
inline constexpr std::uint32_t kProbeResults = 4;

/// Relaxed counters that only grow. A killed child loses at most the update that it was making.
/// `Cell`: an atomic in the segment, a plain number in a copy.
template <class Cell>
struct TotalsOf {
    Cell calls;
    // Of these the first is of ordinary calls, the second of probes.
    Cell verdict[2][core::kVerdicts];
    Cell outcome_class[2][core::kClasses];
    Cell status[2][core::kHundredCount];
    Cell slow[2];
    Cell probes;
    Cell probes_lost;
    Cell late;        // results that came after the breaker had moved on
    Cell suppressed;  // trips that MaxOpen did not allow
    Cell failovers;   // calls sent on to another member after one to this member
    Cell early;       // rounds of probes that began early, as there was no other member
    Cell refused[kRefusals];
    Cell would_refuse[kRefusals];  // Observe: let through all the same
    Cell transition[core::kStates][core::kStates];
    Cell state_ms[core::kStates];  // of completed stays; the present one is now - since
    Cell probe_result[kProbeResults];
};
using Totals = TotalsOf<Atomic64>;

/// Upper bounds of a histogram's buckets, ms; a last bucket holds what took longer.
inline constexpr std::uint32_t kLatencyBounds[] = {5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000};
inline constexpr std::uint32_t kLatencyBuckets = sizeof kLatencyBounds / sizeof *kLatencyBounds + 1;

/// The same of outages: 1 s to 1 h.
inline constexpr std::uint32_t kOutageBounds[] = {1000,   2000,    5000,    10'000,  20'000,    30'000,
                                                  60'000, 120'000, 300'000, 600'000, 1'800'000, 3'600'000};
static_assert(sizeof kOutageBounds == sizeof kLatencyBounds, "one kind of histogram");

struct Histogram {
    Atomic64 bucket[kLatencyBuckets];  // each call in one
    Atomic64 sum_ms;
};

/// One failing call (recorder.hpp).
struct RecordedCall {
    static constexpr std::size_t kPathWords = 12;
    Atomic64 number;            // number + 1:48 | flags:8 | method:8; 0: none, or being written
    Atomic64 what;              // time:36 | outcome:10 | latency:18, ms
    Atomic64 path[kPathWords];  // its first bytes; empty unless CircuitBreakerRecordPath is On
};
inline constexpr std::uint32_t kRecordedCalls = 16;
inline constexpr std::uint32_t kHistory = 64;
inline constexpr std::uint32_t kRetryBuckets = 16;
inline constexpr std::uint32_t kNewcomerWords = 128;
inline constexpr std::uint32_t kPolicyWords = sizeof(core::Policy) / sizeof(std::uint64_t);
static_assert(std::is_trivially_copyable_v<core::Policy> && sizeof(core::Policy) % sizeof(std::uint64_t) == 0);

struct Identity {
    static constexpr std::size_t kBalancer = 96;  // PROXY_BALANCER_MAX_NAME_SIZE
    static constexpr std::size_t kName = 384;     // PROXY_WORKER_EXT_NAME_SIZE
    static constexpr std::size_t kUdsPath = 96;   // PROXY_WORKER_MAX_NAME_SIZE
    std::uint64_t vhost;                          // hash of the defining vhost's address and ServerName
    char balancer[kBalancer];
    char name[kName];
    char uds_path[kUdsPath];
};
static_assert(std::is_trivially_copyable_v<Identity>);

// Grouped by who writes what, not by size.
struct alignas(kLine) Slot {  // NOLINT(clang-analyzer-optin.performance.Padding)
    // What every request reads, in one line.
    Atomic64 word;        // the control word (core/word.hpp)
    Atomic64 shape;       // of the window (window.hpp); 0: not set yet
    Atomic64 since;       // ms, start of the present state
    Atomic64 reports;     // changes that were reported; the number of the last one, unless a child died
    Atomic64 suppressed;  // generation + 1 in which a suppressed opening was last reported
    Atomic64 intent;      // MaxOpen: pid:22 | sequence:42 of who is about to open it; 0: nobody
    Atomic64 ramp_asked;  // requests that have asked during ramps
    Atomic64 flags;       // kOwnsIgnoreErrors and the like
    Atomic64 lease[kLeases];
    alignas(kLine) Atomic64 window[kWindowWords];
    alignas(kLine) Totals totals;
    Atomic64 epoch;                   // last epoch in which somebody bound this slot
    Atomic64 changes;                 // the number of the last change (changes.hpp)
    Atomic64 probe_rate;              // adaptive probing: how earlier probes went (core/probe_rate.hpp)
    Atomic64 probed_at;               // ms, when a probe was last admitted, or almost; 0: never
    Atomic64 opened;                  // when the present open state was first seen (early.hpp)
    Atomic64 interrupted;             // when the open time ends that an early round began in (early.hpp)
    Atomic64 flapping;                // generation + 1 in which flapping was reported; 0: not since it was well
    Atomic64 kept_calls;              // calls on kept connections, and stale ones (kept.hpp)
    Atomic64 health;                  // checks of mod_proxy_hcheck since it opened (health.hpp)
    Atomic64 checked_at;              // ms, when a new end of a check was last seen (health.hpp)
    Atomic64 noticed;                 // number of the opening whose open time's end was announced (notice.hpp)
    Atomic64 proven;                  // ms, since when the member is known to be well; 0: it is not (outages.hpp)
    Atomic64 too_cautious;            // the outage of which that was said (core/outage.hpp); 0: none
    Atomic64 retries[kRetryBuckets];  // failover: time:32 | count:32 of a bucket
    Atomic64 history[kHistory];       // the last changes (history.hpp)
    Histogram call_duration;          // of calls that are no probes
    Histogram probe_duration;
    Histogram outage_duration;
    Histogram outage_waiting;  // of these, after the member was known to be well
    Atomic64 recorded;         // failing calls so far
    RecordedCall recorder[kRecordedCalls];
    Atomic64 newcomers[kNewcomerWords];  // sessions that began during this recovery (newcomers.hpp)
    Atomic64 policy[kPolicyWords];       // of the processes that use the slot (configure)
    alignas(kLine) Identity identity;    // immutable while the directory says ready
};
inline constexpr std::uint64_t kOwnsIgnoreErrors = 1;   // the member's `+I` was set by us
inline constexpr std::uint64_t kOfRequestedSocket = 2;  // a socket that requests name, not the configuration
inline constexpr std::uint64_t kToldOfSockets = 4;      // the warning that some sockets have no breaker was given

static_assert(std::is_trivially_destructible_v<Slot>);
static_assert(alignof(Slot) == kLine && sizeof(Slot) % kLine == 0);
static_assert(sizeof(Slot) <= 8192, "at most 8 KiB a slot");
static_assert(offsetof(Slot, lease) == kLine, "the hot words share one line");
static_assert(offsetof(Slot, probed_at) >= offsetof(Slot, totals), "written at each probe: apart from the hot words");

}  // namespace cb::shm

#endif
