// Policy: what the directives say about one member's breaker, as plain numbers.
//
// Purpose: the input of next() (breaker.hpp), of the windows and of httpd/; nothing here knows httpd.
// Thread safety: computed once per member before its breaker is used, and only read afterwards.
// Invariants: trivially destructible (it lives in httpd pools); the defaults are the directives' documented defaults.
#ifndef CIRCUITBREAKER_CORE_POLICY_HPP
#define CIRCUITBREAKER_CORE_POLICY_HPP

#include <cstdint>
#include <type_traits>

namespace cb::core {

/// Milliseconds on the segment's monotonic clock, or a span of them.
using Millis = std::uint64_t;

inline constexpr Millis kMillisPerSecond = 1000;
inline constexpr Millis kDay = 24ULL * 3600 * kMillisPerSecond;

inline constexpr Millis kMinWindow = 1 * kMillisPerSecond;
inline constexpr Millis kMaxWindow = kDay;
inline constexpr std::uint32_t kMaxWindowCalls = 4096;
inline constexpr std::uint32_t kMaxMinimumCalls = 1'000'000;
inline constexpr std::uint32_t kMaxConsecutiveFailures = 1023;  // 10 bits of the control word
inline constexpr std::uint32_t kMaxFailureCount = 10'000;
inline constexpr Millis kMinOpenTime = 100;
inline constexpr Millis kMaxOpenTime = kDay;
inline constexpr std::uint32_t kMaxProbes = 63;      // 6 bits of the control word
inline constexpr std::uint32_t kMaxConcurrent = 16;  // one bit and one lease each
inline constexpr std::uint32_t kMaxConcurrentCalls = 1'000'000;
inline constexpr std::uint32_t kMaxBodyLimit = 1U << 20U;
inline constexpr std::uint32_t kMaxProbeBody = 16U << 20U;
inline constexpr std::uint32_t kMaxTolerate = 15;  // 4 bits of the control word
inline constexpr std::uint32_t kMaxNeutral = 15;   // that many neutral probes in a round open the breaker again
inline constexpr Millis kMaxLinger = kDay;
inline constexpr Millis kMaxPermitAge = 12ULL * 3600 * kMillisPerSecond;  // the result of an older one decides nothing

enum class Mode : std::uint8_t { off, on, observe };

/// CircuitBreakerWindow: the last `calls` calls if that is above 0, else the last `span` milliseconds.
struct Window {
    Millis span = 10 * kMillisPerSecond;
    std::uint32_t calls = 0;
    friend bool operator==(const Window&, const Window&) = default;
};

/// CircuitBreakerSlowCall. threshold 0 is Off.
struct SlowCall {
    Millis threshold = 0;
    std::uint32_t rate = 100;  // percent, 1..100; 0: Off
    bool until_end = false;    // the time is that to the end of the response, not to its first byte

    /// Slow calls alone can open the breaker.
    [[nodiscard]] constexpr bool has_rate() const noexcept { return threshold > 0 && rate > 0; }
};

/// CircuitBreakerOpenTime.
struct OpenTime {
    Millis base = 5 * kMillisPerSecond;
    Millis max = 300 * kMillisPerSecond;
    std::uint32_t factor_milli = 2000;  // 1000..100000: factor 1 to 100
    std::uint32_t jitter = 10;          // percent, 0..100
    bool retry_after = false;           // the Retry-After of a failing answer, up to max, is the least open time
    Millis min = 1 * kMillisPerSecond;  // how long it must have been open before an early probe
    Millis notice = 0;                  // how long before its end the open time is announced; 0: it is not
};

/// CircuitBreakerProbes.
struct Probes {
    std::uint32_t round = 3;          // probes admitted in a round
    std::uint32_t concurrent = 3;     // probes in flight at once, over all processes
    std::uint32_t tolerate = 0;       // failures in a round that do not open the breaker again
    std::uint32_t successes = 3;      // needed to recover; 0: as many as a round has beyond the tolerated failures
    std::uint32_t max = 3;            // the largest adaptive round; == round: not adaptive
    bool is_tolerate_share = false;   // `tolerate` is percent of the round
    bool is_successes_share = false;  // `successes` is percent of the round
};

/// Of a round of that size: the failures that do not open the breaker again, at most kMaxTolerate.
[[nodiscard]] std::uint32_t tolerated(const Probes& probes, std::uint32_t round) noexcept;
/// The same: the successes that it needs, 1..round.
[[nodiscard]] std::uint32_t needed(const Probes& probes, std::uint32_t round) noexcept;

/// CircuitBreakerRampUp. duration 0 is Off.
struct RampUp {
    Millis duration = 0;
    std::uint32_t from = 10;  // percent of the requests admitted at its start
};

/// CircuitBreakerHealthCheck: what a passing check of mod_proxy_hcheck means to an open breaker. `early`: it ends the
/// open time. `gate`: there is no probe before it.
enum class HealthCheck : std::uint8_t { off, early, gate, both };
inline constexpr const char* kHealthChecks[] = {"Off", "Early", "Gate", "Both"};  // as they are written
[[nodiscard]] constexpr bool ends_open_time(HealthCheck check) noexcept {
    return check == HealthCheck::early || check == HealthCheck::both;
}
[[nodiscard]] constexpr bool holds_probes(HealthCheck check) noexcept {
    return check == HealthCheck::gate || check == HealthCheck::both;
}

enum class FailoverMode : std::uint8_t { off, probes, all };

/// CircuitBreakerFailover: which failed calls are withheld from the client and made again with another member.
struct Failover {
    FailoverMode mode = FailoverMode::probes;
    std::uint32_t budget = 20;  // percent of the window's calls that may be retries, 0..100; 0: no retries
    std::uint32_t tries = 2;    // calls in all for one request, 2..100
    Millis timeout = 0;         // since the first call began; 0: the member's own timeout, once
};
inline constexpr std::uint32_t kMaxTries = 100;
inline constexpr std::uint32_t kLeastRetriesPerSecond = 3;  // of any budget above 0

struct Policy {
    Mode mode = Mode::off;
    Window window;
    std::uint32_t minimum_calls = 20;
    std::uint32_t failure_rate = 50;         // percent, 1..100; 0: Off
    std::uint32_t consecutive_failures = 5;  // 1..1023; 0: Off
    std::uint32_t failure_count = 0;         // of the window's calls, 1..10000; 0: Off
    SlowCall slow_call;
    OpenTime open_time;
    std::uint32_t max_open = 100;  // percent of a balancer's members
    Probes probes;
    RampUp ramp_up;
    Failover failover;
    Millis probe_timeout = 0;               // 0: the member's own timeout
    Millis linger = 60 * kMillisPerSecond;  // how long an overdue probe keeps its slot while its call goes on
    std::uint32_t max_concurrent = 0;       // 0: Off
    std::uint32_t body_limit = 8192;        // bytes of a response body that conditions look at
    std::uint32_t probe_body = 65536;       // bytes of a request's body that are read before it may be a probe
    Millis settle = 10 * kMillisPerSecond;
    bool retry_after = true;   // Retry-After on a refusal
    bool record_path = false;  // the flight recorder keeps the request's path
    HealthCheck health_check = HealthCheck::off;
};

static_assert(std::is_trivially_destructible_v<Policy>);

/// Open time at `level` (0: the first): min(max, base x factor^level), then +- jitter by `draw` (uniform over 32 bits).
/// Returns kMinOpenTime..kMaxOpenTime milliseconds.
[[nodiscard]] Millis open_time_at(const OpenTime& open_time, std::uint32_t level, std::uint32_t draw) noexcept;

/// Retries that the budget allows in a `span` with that many calls.
[[nodiscard]] std::uint64_t allowed_retries(const Failover& failover, std::uint64_t calls, Millis span) noexcept;

/// Share of requests a ramp lets through `elapsed` after it began, in 1/65536; 65536 from its end on.
[[nodiscard]] std::uint32_t ramp_share(const RampUp& ramp_up, Millis elapsed) noexcept;

/// What is contradictory across directives, as a sentence that an operator can act on; nullptr: nothing is.
/// `has_fatal`: a verdict rule may open the breaker at once. (A contradiction within one directive is an error when
/// that directive is read.)
[[nodiscard]] const char* contradiction(const Policy& policy, bool has_fatal = false) noexcept;

}  // namespace cb::core

#endif
