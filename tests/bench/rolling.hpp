// Members that are restarted one after another, under a steady load: an everyday deployment, with mod_proxy alone and
// with breakers. As in recovery.hpp the core and the shared memory are the real ones, clock and members are not.
//
// The model. Requests arrive at random, 300 a second. A member that is up has the answer after 10 ms (`work`), however
// many there are; one that is down refuses connections. It ends what it has begun before it goes down, so nothing is
// lost but by the choice of a member. From 10 s on each in turn is down for 2 s, and the next one goes down a while
// after it is back. The balancer chooses as `byrequests` does; a request whose connection is refused goes on to another
// member, each at most once.
//
// Stock: mod_proxy's error state as it is by default. A refused connection puts a member into error for `retry=60`
// seconds; when all are in error, forcerecovery clears it. A breaker has its defaults, but for jitter=0 (so that every
// run is the same): those of today, or OpenTime 30s as it was once, when open meant open. Early probes as
// httpd/select.cpp and httpd/mask.cpp have them.
//
// SecondLook: other ways to count the refused connections of one restart. They are not in the module (its DESIGN.md
// says why).
//
// Thread safety: roll() is a function of its argument; the same setting always has the same result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cb::bench {

enum class Guard : std::uint8_t { stock, breaker_as_once, breaker, breaker_without_early };

enum class SecondLook : std::uint8_t {
    none,
    short_round,  ///< one good probe of the first round closes, at level 0, without a ramp
    uncounted,    ///< a refused connection counts only if no other member served the request
    sooner,       ///< what refused connections have opened is open for 1 s first
    ramp_yields,  ///< a request that nothing but ramps refuses is let in
};

struct Rollout {
    Guard guard = Guard::breaker;
    std::uint32_t members = 3;
    std::uint32_t down = 2000;   // ms
    std::uint32_t apart = 6000;  // ms, from a member's return until the next one goes down
    std::uint32_t ramp = 0;      // RampUp, s
    std::uint32_t work = 10;     // ms of each request
    SecondLook second_look = SecondLook::none;
};

struct RollingResult {
    std::uint32_t requests = 0;
    std::uint32_t lost = 0;
    std::uint32_t refused_connections = 0;
    std::vector<std::uint32_t> idle;  // ms, of each member: from its return to its first answer
};

[[nodiscard]] RollingResult roll(const Rollout& rollout);

/// Three members that are restarted so far apart, and one alone that is away for kAloneDown.
inline constexpr std::uint32_t kApart[] = {6000, 3000, 500};
inline constexpr std::uint32_t kAloneDown = 1500;
[[nodiscard]] Rollout of_three(Rollout rollout, std::uint32_t apart);
[[nodiscard]] Rollout alone(Rollout rollout);

/// README.md's second table.
[[nodiscard]] std::string rolling_table();

}  // namespace cb::bench
