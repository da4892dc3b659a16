#include "retries.hpp"

namespace cb::shm {
namespace {

/// Of a bucket: tag:32 (number of its span of time) | count:32.
constexpr std::uint64_t kCountMask = 0xFFFFFFFFU;

std::uint32_t tag_of(std::uint64_t bucket) noexcept {
    return static_cast<std::uint32_t>(bucket >> 32U);
}

/// Does the bucket belong to the last span? Also with a tag just ahead: another process has read the clock later. A tag
/// far ahead was written for a span of another length, and does not count.
bool is_recent(std::uint32_t tag, std::uint32_t now_tag) noexcept {
    const auto ago = static_cast<std::int32_t>(now_tag - tag);
    return ago >= -1 && ago < static_cast<std::int32_t>(kRetryBuckets);
}

}  // namespace

bool take_retry(Slot& failed, Slot* const* members, std::uint32_t count, core::Millis span, std::uint64_t allowed,
                core::Millis now) noexcept {
    const auto tag = static_cast<std::uint32_t>(now / (span / kRetryBuckets));
    Atomic64& own = failed.retries[tag % kRetryBuckets];
    // seq_cst: one's own retry is counted before the sum is taken, so of two at once at least one sees the other.
    std::uint64_t seen = own.load(std::memory_order_seq_cst);
    for (;;) {
        const std::uint64_t before = tag_of(seen) == tag ? seen & kCountMask : 0;
        if (own.compare_exchange_strong(seen, std::uint64_t{tag} << 32U | (before + 1), std::memory_order_seq_cst))
            break;
    }
    std::uint64_t total = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        if (members[i] == nullptr) continue;
        for (const Atomic64& bucket : members[i]->retries) {
            const std::uint64_t bits = bucket.load(std::memory_order_seq_cst);
            if (is_recent(tag_of(bits), tag)) total += bits & kCountMask;
        }
    }
    if (total <= allowed) return true;
    seen = own.load(std::memory_order_seq_cst);
    while (tag_of(seen) == tag && (seen & kCountMask) > 0 &&
           !own.compare_exchange_weak(seen, seen - 1, std::memory_order_seq_cst)) {
    }
    return false;
}

}  // namespace cb::shm
