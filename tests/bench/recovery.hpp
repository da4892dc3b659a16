// A balancer of three members, one of which fails and comes back slowly: the real core and shared-memory code on a
// clock that is moved by hand, the members and the network replaced by a model.
//
// The model. Requests arrive at random (open loop: nobody waits for an answer before the next one comes), 300 a second.
// Each member serves one after the other from a queue, 200 a second when it is well. Who waits longer than `kTimeout`
// (a probe: `kProbeTimeout`) gives up, but what it asked for stays in the queue and is worked on all the same; a member
// whose queue is full answers 503 at once. Member 0 loses its capacity from 20 s to 30 s, does nothing until 60 s, is
// started anew then (its queue is gone) and has a tenth of its capacity, which grows to the whole of it by 120 s
// (caches fill, code is compiled). The balancer chooses as `byrequests` does.
//
// The breaker has its defaults, but for OpenTime 5s max=10s jitter=0 (so that it is probed within the cold start, and
// that every run is the same), ProbeTimeout 500ms, and RampUp 60s where there is a ramp. Failover as its directive
// says: at most two calls, the second begun not later than the member's timeout (or `timeout=5s`) after the first, and
// a budget of 20 percent of all calls in ten seconds or three a second. "No breaker": every member is used whatever it
// does (mod_proxy's own error state, which knows refused connections only, has nothing to go by here).
//
// Thread safety: run() is a function of its argument; the same setting always has the same result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cb::bench {

inline constexpr std::uint32_t kMembers = 3;
inline constexpr std::uint32_t kRate = 300;      // requests a second
inline constexpr std::uint32_t kCapacity = 200;  // a second, of a member that is well
inline constexpr std::uint32_t kSeconds = 180;
inline constexpr std::uint32_t kFailingFrom = 20;
inline constexpr std::uint32_t kDownFrom = 30;
inline constexpr std::uint32_t kBackFrom = 60;
inline constexpr std::uint32_t kWellFrom = 120;
inline constexpr std::uint32_t kBacklog = 400;       // a longer queue is refused
inline constexpr std::uint32_t kTimeout = 2000;      // ms
inline constexpr std::uint32_t kProbeTimeout = 500;  // ms
inline constexpr std::uint32_t kRampSeconds = 60;

enum class Failover : std::uint8_t { off, probes, all, all_in_5s };

struct Setting {
    bool has_breaker = true;
    bool has_ramp = true;
    Failover failover = Failover::off;
};

/// One second of a run.
struct Second {
    std::uint32_t capacity = 0;  // of member 0
    std::uint32_t calls = 0;     // given to member 0
    std::uint32_t answers = 0;   // of member 0, in time
    std::uint32_t failed = 0;    // requests whose client got no good answer
};

struct Result {
    std::array<Second, kSeconds> second{};
    std::uint32_t requests = 0;
    std::uint32_t failed_before = 0;  // of those that failed: until member 0 was back
    std::uint32_t failed_after = 0;   // since
    std::uint32_t openings = 0;       // of member 0's breaker
    std::uint32_t failovers = 0;
    // Of member 0 between kBackFrom and kWellFrom:
    std::uint32_t longest_queue = 0;
    std::uint32_t peak_load = 0;  // percent: calls of a second, of what it can serve in that second
    std::uint32_t full_share_after =
        0;  // seconds since kBackFrom; then it has at least 90 % of its third, and keeps it
};

/// Capacity of member 0 at that time, calls a second.
[[nodiscard]] std::uint32_t capacity_at(std::uint32_t ms) noexcept;

[[nodiscard]] Result run(const Setting& setting);

struct Named {
    std::string name;
    Setting setting;
};
/// What is compared, in the order of the table.
[[nodiscard]] const std::vector<Named>& settings();

/// The rows of README.md's table.
[[nodiscard]] std::string table(const std::vector<Result>& results);
/// README.md's plot.
[[nodiscard]] std::string plot(const std::vector<Result>& results);

}  // namespace cb::bench
