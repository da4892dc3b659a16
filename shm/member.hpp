// One member's breaker in shared memory: next() applied by CAS.
//
// Purpose: the verbs of a call. peek() looks, admit() takes a permit, mark() notes how far a probe has come, finish()
// gives the permit back with the call's outcome. operate() is for operators. One CAS loop, apply(), is behind all of
// them.
// Thread safety: all of it, across threads and processes; lock-free. A Permit itself belongs to one thread at a time.
// Invariants: a permit is given back exactly once (a second time does nothing). A change of state is carried out by
// exactly one process, and only that process reports it.
#ifndef CIRCUITBREAKER_SHM_MEMBER_HPP
#define CIRCUITBREAKER_SHM_MEMBER_HPP

#include <cstdint>
#include <optional>

#include "clock.hpp"
#include "core/breaker.hpp"
#include "core/flapping.hpp"
#include "core/kept_calls.hpp"
#include "core/outage.hpp"
#include "layout.hpp"
#include "lease.hpp"
#include "probe_end.hpp"

namespace cb::shm {

/// A change of state that this process carried out.
struct Change {
    core::State from;
    core::State to;
    core::Reason reason;
    std::uint64_t number;  // of the change (changes.hpp)
    std::uint32_t level;
    core::Sums sums;            // of the window, where calls have opened it; otherwise zero
    std::uint32_t consecutive;  // failures in a row that led here
    Round round;                // of probes, that the change has ended
    core::Millis open_for;      // to open: the open time
};

/// An early round that has begun or failed. The breaker is as it was before, so this is no change of state.
struct EarlyRound {
    bool has_failed;
    bool is_repeated;  // it has begun, and the round before it was an early one too
    std::uint32_t level;
    core::Reason reason;  // why it has failed
    Round round;          // as it has failed
    core::Millis left;    // of the open time
};

/// Is told what happened, by the process whose CAS succeeded. Must not block.
class Observer {
  public:
    virtual void on_change(const Slot& slot, const Change& change) noexcept = 0;
    /// An operator's reset of a breaker that was closed already; `number` as of a change.
    virtual void on_reset(const Slot& slot, std::uint64_t number) noexcept = 0;
    /// An opening that MaxOpen did not allow; once per generation.
    virtual void on_suppressed(const Slot& slot, core::Reason reason, const core::Sums& sums) noexcept = 0;
    /// A probe that was sent and whose deadline passed without an answer.
    virtual void on_probe_lost(const Slot& slot) noexcept = 0;
    /// A probe that its own call has not ended. (What finish() and cancel() have ended, they return.)
    virtual void on_probe(const Slot& slot, const ProbeEnd& end) noexcept = 0;
    virtual void on_early_round(const Slot& slot, const EarlyRound& round) noexcept = 0;
    /// The breaker opens again and again. Once, until it has been well.
    virtual void on_flapping(const Slot& slot, const core::Flapping& figures, const core::Policy& policy) noexcept = 0;
    /// Most of an outage was our own waiting. Once, until an outage is not like that.
    virtual void on_too_cautious(const Slot& slot, const core::Outage& outage, const core::Policy& policy) noexcept = 0;
    /// The open time ends in `left` ms (CircuitBreakerOpenTime notice=). Once for each open time.
    virtual void on_probe_soon(const Slot& slot, core::Millis left) noexcept = 0;
    /// Most calls on kept connections are stale. Once, until hardly any are.
    virtual void on_stale(const Slot& slot, const core::KeptCalls& calls) noexcept = 0;

  protected:
    ~Observer() = default;
};

/// What a process passes to every verb.
struct Process {
    Clock clock;
    std::uint32_t pid = 0;
    Observer* observer = nullptr;  // may be nullptr
};

/// The members of a balancer that MaxOpen counts: all that mod_proxy could use, this one included. nullptr stands for a
/// member without a breaker.
struct Peers {
    Slot* const* slots = nullptr;
    std::uint32_t count = 0;
};

enum class PermitKind : std::uint8_t { none, call, probe };

struct Permit {
    PermitKind kind = PermitKind::none;
    std::uint8_t slot = 0;         // probe: its lease
    std::uint32_t generation = 0;  // call: the generation it decides in
    std::uint64_t lease = 0;       // probe: the lease word as this holder last wrote it
    core::Millis taken_at = 0;
    Atomic32* cell = nullptr;  // calls in flight of this child, counted up by one
};

/// By what a ramp decides on a request: a hash of its session, or else a number from an evenly spread sequence, which
/// is taken when a ramp first asks. A request has one for each member, so that asking again changes nothing.
struct RampTicket {
    enum class Kind : std::uint8_t { untaken, taken, always };
    Kind kind = Kind::untaken;
    std::uint32_t draw = 0;  // uniform over 32 bits: let through once the ramp's share is above it
};

/// Would a request be let through now? Decision::pass, probe or refuse. Takes nothing. It may draw the request's
/// ticket, and ends probes whose deadline has passed. `ticket` nullptr: one for this look alone.
[[nodiscard]] core::Decision peek(Slot& slot, const core::Policy& policy, const Process& process,
                                  RampTicket* ticket = nullptr) noexcept;

/// May a request that finds no other member be a probe? For an open breaker: once it has been open for
/// policy.open_time.min. For a half-open one: as long as fewer than `concurrent` probes are in flight. Takes nothing.
[[nodiscard]] bool may_probe_early(Slot& slot, const core::Policy& policy, const Process& process) noexcept;
/// Time until an open breaker may be probed: at the end of its open time, or, with `early`, already after
/// policy.open_time.min. 0 for a breaker that is not open.
[[nodiscard]] core::Millis time_to_probe(Slot& slot, const core::Policy& policy, const Process& process,
                                         bool early) noexcept;

/// Calls in flight to one member: this child's cell, and the row of all cells to sum.
struct InFlight {
    Atomic32* own = nullptr;  // nullptr: not counted
    const Atomic32* row = nullptr;
    std::uint32_t columns = 0;
};

struct Admission {
    Refusal refusal = Refusal::none;
    Permit permit;
};

/// Takes a permit after peek() said pass or probe.
/// `may_probe`: false: refused if the call could only be a probe.
/// `lease_span`: a probe's lease, ms (connect timeout + probe timeout + settle + 1 s; at most 36 hours).
/// `ticket`: as in peek(); nullptr: a ramp has let the request through already.
/// `is_last_resort`: there is no other member; this one may be probed early if may_probe_early() allows it.
[[nodiscard]] Admission admit(Slot& slot, const core::Policy& policy, const Process& process, InFlight in_flight,
                              bool may_probe, core::Millis lease_span, RampTicket* ticket = nullptr,
                              bool is_last_resort = false) noexcept;

/// Notes a probe's phase in its lease. `due`, unless 0, becomes its deadline if it is earlier than the present one.
/// Does nothing for other permits, or if somebody else has ended the probe.
void mark(Slot& slot, Permit& permit, Phase phase, core::Millis due = 0) noexcept;

/// The probe's deadline has passed without an answer: the probe decides nothing any more, and its call should end.
[[nodiscard]] bool is_over(const Permit& permit, const Process& process) noexcept;

/// How a call ended.
struct Ending {
    core::Outcome outcome = core::Outcome::none;
    core::Verdict verdict = core::Verdict::ignore;
    bool slow = false;            // slower than CircuitBreakerSlowCall allows
    bool is_slow_judged = false;  // the rule that decided asks for that: the verdict is all that the call counts as
    core::Millis least_open_time = 0;
    bool is_kept = false;      // on a connection that had served another request
    bool is_timed = false;     // `latency` is a measurement of the member's speed
    core::Millis latency = 0;  // to the first byte; goes into the histograms
    // What is told of a failing call, and of a probe:
    core::Millis until_end = 0;  // not 0: this in place of `latency`
    std::uint8_t method = 0;     // httpd's method number
    const char* path = nullptr;  // nullptr: not kept

    [[nodiscard]] bool weighs_as_slow() const noexcept { return slow && !is_slow_judged; }
    [[nodiscard]] core::Millis told_latency() const noexcept { return until_end > 0 ? until_end : latency; }
};

/// Gives the permit back with the call's outcome, and weighs the evidence. A permit of kind none stands for a call that
/// was made without one (Observe): its outcome counts in the totals only. The permit is of kind none afterwards.
/// Returns the end of a probe, unless somebody else has ended it before.
std::optional<ProbeEnd> finish(Slot& slot, const core::Policy& policy, const Process& process, Permit& permit,
                               const Ending& ending, Peers peers) noexcept;

/// A response that was judged by its headers has broken off since: counted in the totals only.
void count_broken_off(Slot& slot, bool is_probe) noexcept;

/// Gives the permit back without a call: a probe's is neutral, an ordinary one leaves no trace. Returns the same as
/// finish().
std::optional<ProbeEnd> cancel(Slot& slot, const core::Policy& policy, const Process& process, Permit& permit) noexcept;

/// force_open, force_closed, reset, automatic. True if the breaker was changed.
bool operate(Slot& slot, const core::Policy& policy, const Process& process, core::EventKind kind) noexcept;

/// A passing health check ends the open time. True if it went on, and the control word is still of the generation of
/// `seen`.
bool end_open_time(Slot& slot, const core::Policy& policy, const Process& process, std::uint64_t seen) noexcept;

/// Ends every probe whose deadline has passed. True if there was one. The lease is free then if the member had
/// answered; otherwise it is overdue, and free when its holder gives it back or `policy.linger` later.
bool expire_probes(Slot& slot, const core::Policy& policy, const Process& process) noexcept;

/// For the parent: ends every probe of a dead process as neutral, and clears its intent to open the breaker. A lease
/// that the dead process was settling for a holder that lives becomes that holder's, as overdue.
void reap(Slot& slot, const core::Policy& policy, const Process& process, std::uint32_t dead_pid) noexcept;

/// Leases of a member that are not free, and what they say of its probes.
struct LeaseCounts {
    std::uint32_t taken = 0;
    std::uint32_t in_flight = 0;  // probes at the member, also overdue ones and those of earlier rounds
    std::uint32_t overdue = 0;
};
[[nodiscard]] LeaseCounts count_leases(const Slot& slot) noexcept;

/// Notes the policy at start. A window of another shape than the last one begins a new generation.
void configure(Slot& slot, const core::Policy& policy, const Process& process) noexcept;

/// The policy of those who use the slot, for a process that does not know the member: it was added at run time, or no
/// configuration has it any more. Whoever holds a lease has noted it before.
[[nodiscard]] core::Policy noted_policy(const Slot& slot) noexcept;

/// The window's sums of the present generation.
[[nodiscard]] core::Sums sums_now(const Slot& slot, const core::Policy& policy, const Process& process) noexcept;

}  // namespace cb::shm

#endif
