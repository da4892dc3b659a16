#include "recorder.hpp"

#include <algorithm>
#include <cstring>

#include "member.hpp"

namespace cb::shm {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr core::Millis kMaxLatency = (1ULL << 18U) - 1;

// RecordedCall.number
constexpr std::uint32_t kNumberShift = 16;
constexpr std::uint64_t kProbe = 1U << 8U;
constexpr std::uint64_t kSlow = 1U << 9U;

}  // namespace

void note_failed_call(Slot& slot, core::Millis at, const Ending& ending, bool is_probe) noexcept {
    const std::uint64_t number = slot.recorded.fetch_add(1, kRelaxed) + 1;
    RecordedCall& entry = slot.recorder[(number - 1) % kRecordedCalls];
    // A sequence lock: readers take the rest only between two equal, non-zero numbers. The fence keeps the stores below
    // after the zero, release keeps them before the number.
    entry.number.store(0, kRelaxed);
    std::atomic_thread_fence(std::memory_order_release);
    entry.what.store((at & core::kTimeMask) << 28U | static_cast<std::uint64_t>(ending.outcome) << 18U |
                         std::min(ending.told_latency(), kMaxLatency),
                     kRelaxed);
    std::uint64_t text[RecordedCall::kPathWords] = {};
    if (ending.path != nullptr) std::memcpy(text, ending.path, strnlen(ending.path, sizeof text));
    for (std::size_t i = 0; i < RecordedCall::kPathWords; ++i)
        entry.path[i].store(text[i], kRelaxed);
    entry.number.store(number << kNumberShift | (is_probe ? kProbe : 0) | (ending.slow ? kSlow : 0) | ending.method,
                       std::memory_order_release);
}

std::uint32_t read_failed_calls(const Slot& slot, FailedCall (&calls)[kRecordedCalls]) noexcept {
    const std::uint64_t last = slot.recorded.load(kRelaxed);
    std::uint32_t count = 0;
    for (std::uint64_t number = last > kRecordedCalls ? last - kRecordedCalls + 1 : 1; number <= last; ++number) {
        const RecordedCall& entry = slot.recorder[(number - 1) % kRecordedCalls];
        const std::uint64_t before = entry.number.load(std::memory_order_acquire);
        if (before >> kNumberShift != number) continue;  // just being written, or overwritten meanwhile
        FailedCall& call = calls[count];
        const std::uint64_t what = entry.what.load(kRelaxed);
        std::uint64_t text[RecordedCall::kPathWords];
        for (std::size_t i = 0; i < RecordedCall::kPathWords; ++i)
            text[i] = entry.path[i].load(kRelaxed);
        std::atomic_thread_fence(std::memory_order_acquire);  // the loads above come before the second look
        if (entry.number.load(kRelaxed) != before) continue;
        call.at = what >> 28U;
        call.outcome = static_cast<core::Outcome>(what >> 18U & 1023U);
        call.latency = what & kMaxLatency;
        call.method = static_cast<std::uint8_t>(before & 0xFFU);
        call.is_probe = (before & kProbe) != 0;
        call.is_slow = (before & kSlow) != 0;
        std::memcpy(call.path, text, sizeof text);
        call.path[FailedCall::kPath - 1] = '\0';
        ++count;
    }
    return count;
}

void note_duration(Histogram& histogram, core::Millis duration,
                   const std::uint32_t (&bounds)[kLatencyBuckets - 1]) noexcept {
    std::uint32_t bucket = 0;
    while (bucket < kLatencyBuckets - 1 && duration > bounds[bucket])
        ++bucket;
    histogram.bucket[bucket].fetch_add(1, kRelaxed);
    histogram.sum_ms.fetch_add(duration, kRelaxed);
}

}  // namespace cb::shm
