#include "kept_calls.hpp"

#include <algorithm>

namespace cb::core {
namespace {

constexpr std::uint32_t kMost = 0x7FFF;

std::uint32_t ticks(Millis time) noexcept {
    return static_cast<std::uint32_t>(time / 64);
}

bool is_over(const KeptCalls& counted, const Window& window, Millis now) noexcept {
    if (window.calls > 0) return counted.calls >= std::max(window.calls, kLeastKeptCalls);
    return ticks(now) - counted.began >= ticks(window.span);
}

bool is_well(const KeptCalls& counted) noexcept {
    return counted.calls >= kLeastKeptCalls && counted.stale * 10 <= counted.calls;
}

}  // namespace

KeptCalls with_kept_call(KeptCalls before, bool is_stale, const Window& window, Millis now) noexcept {
    KeptCalls after = before;
    if (before.calls == 0 || is_over(before, window, now)) {
        after = {};
        after.is_said = before.is_said && !is_well(before);
        if (!is_stale && !after.is_said) return {};
        after.began = ticks(now);
    }
    if (after.calls == kMost) {
        after.calls /= 2;
        after.stale /= 2;
    }
    ++after.calls;
    if (is_stale) ++after.stale;
    if (after.calls >= kLeastKeptCalls && after.stale * 2 > after.calls) after.is_said = true;
    return after;
}

}  // namespace cb::core
