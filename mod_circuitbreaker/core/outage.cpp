#include "outage.hpp"

#include <algorithm>
#include <cstdio>

namespace cb::core {
namespace {

constexpr std::uint32_t kSpanBits = 31;
constexpr std::uint64_t kSpanMask = (std::uint64_t{1} << kSpanBits) - 1;

struct Advice {
    const char* directive;
    const char* where;
    const char* what;
};

Advice advice_of(WaitedIn most_in) noexcept {
    switch (most_in) {
        case WaitedIn::open:
            return {"CircuitBreakerOpenTime", "while its open time went on",
                    "lower CircuitBreakerOpenTime, or let CircuitBreakerHealthCheck Early end it"};
        case WaitedIn::half_open:
            return {"CircuitBreakerProbes", "waiting for further probes",
                    "lower the number of CircuitBreakerProbes, or raise its concurrent="};
        case WaitedIn::recovering:
            return {"CircuitBreakerRampUp", "on its ramp", "shorten CircuitBreakerRampUp"};
        case WaitedIn::none:
            break;
    }
    return {"", "", ""};
}

double seconds(Millis span) noexcept {
    return static_cast<double>(span) / kMillisPerSecond;
}

}  // namespace

std::uint64_t pack(const Outage& outage) noexcept {
    return static_cast<std::uint64_t>(outage.most_in) << 2 * kSpanBits |
           std::min(outage.waited, kSpanMask) << kSpanBits | std::min(outage.lasted, kSpanMask);
}

Outage unpack_outage(std::uint64_t bits) noexcept {
    return {bits & kSpanMask, bits >> kSpanBits & kSpanMask, static_cast<WaitedIn>(bits >> 2 * kSpanBits)};
}

OutageText::OutageText(const Outage& outage) noexcept {
    const Advice advice = advice_of(outage.most_in);
    directive = advice.directive;
    (void)std::snprintf(text, sizeof text,
                        "of the %.1f s that it was out, %.1f s went by after it had shown that it was well, most of "
                        "them %s: %s",
                        seconds(outage.lasted), seconds(outage.waited), advice.where, advice.what);
}

}  // namespace cb::core
