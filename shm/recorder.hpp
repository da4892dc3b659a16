// The flight recorder: a member's last failing calls, and how long its calls took.
//
// Purpose: shows an operator why a breaker opened; the histograms are for the metrics.
// Thread safety: any number of threads and processes, lock-free. The entry that a killed child was writing is missing.
// If more than kRecordedCalls calls fail at the same instant, one may carry the path of another.
// Invariants: entries come newest last; a histogram counts each call once.
#ifndef CIRCUITBREAKER_SHM_RECORDER_HPP
#define CIRCUITBREAKER_SHM_RECORDER_HPP

#include "core/policy.hpp"
#include "layout.hpp"

namespace cb::shm {

struct Ending;  // member.hpp

struct FailedCall {
    static constexpr std::size_t kPath = RecordedCall::kPathWords * sizeof(std::uint64_t) + 1;
    core::Millis at = 0;       // when it ended, on the segment's clock
    core::Millis latency = 0;  // at most 262 s
    core::Outcome outcome = core::Outcome::none;
    std::uint8_t method = 0;  // httpd's method number
    bool is_probe = false;
    bool is_slow = false;   // slower than CircuitBreakerSlowCall
    char path[kPath] = {};  // its beginning, if it is longer
};

void note_failed_call(Slot& slot, core::Millis at, const Ending& ending, bool is_probe) noexcept;

/// Copies the entries, oldest first; returns their number.
std::uint32_t read_failed_calls(const Slot& slot, FailedCall (&calls)[kRecordedCalls]) noexcept;

/// `bounds`: of the histogram's buckets.
void note_duration(Histogram& histogram, core::Millis duration,
                   const std::uint32_t (&bounds)[kLatencyBuckets - 1] = kLatencyBounds) noexcept;

}  // namespace cb::shm

#endif
