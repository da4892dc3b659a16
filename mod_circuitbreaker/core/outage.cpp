#include "outage.hpp"

#include <algorithm>
#include <cstdio>

namespace cb::core {
namespace {

constexpr std::uint32_t kSpanBits = 31;
constexpr std::uint64_t kSpanMask = (std::uint64_t{1} << kSpanBits) - 1;

const char* advice_on_open_time(HealthCheck check) noexcept {
    if (ends_open_time(check)) return "lower min= of CircuitBreakerOpenTime";
    return holds_probes(check) ? "lower CircuitBreakerOpenTime, or write CircuitBreakerHealthCheck Both"
                               : "lower CircuitBreakerOpenTime, or let CircuitBreakerHealthCheck Early end it";
}

struct Advice {
    const char* where;
    const char* what;
};

Advice advice_of(WaitedIn most_in, HealthCheck check) noexcept {
    switch (most_in) {
        case WaitedIn::open:
            return {"while its open time went on", advice_on_open_time(check)};
        case WaitedIn::half_open:
            return {"waiting for further probes", "lower the number of CircuitBreakerProbes"};
        case WaitedIn::recovering:
            return {"on its ramp", "shorten CircuitBreakerRampUp"};
        case WaitedIn::none:
            break;
    }
    return {"", ""};
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

OutageText::OutageText(const Outage& outage, const Policy& policy) noexcept {
    const Advice advice = advice_of(outage.most_in, policy.health_check);
    (void)std::snprintf(text, sizeof text,
                        "of the %.1f s that it was out, %.1f s went by after it had shown that it was well, most of "
                        "them %s: %s",
                        seconds(outage.lasted), seconds(outage.waited), advice.where, advice.what);
}

}  // namespace cb::core
