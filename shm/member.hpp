// One member's breaker in shared memory: next() applied by CAS.
//
// Purpose: the verbs of a call. peek() looks, admit() takes a permit, mark() notes how far a probe has come, finish()
// gives the permit back with its outcome; operate() is the operator's hand. One CAS loop (apply) is behind them all.
// Thread safety: all of it, across threads and processes; lock-free. A Permit itself belongs to one thread at a time.
// Invariants: a permit is given back exactly once (giving it back again does nothing); a change of state is carried
// out by exactly one process, which alone gets to report it.
#ifndef CIRCUITBREAKER_SHM_MEMBER_HPP
#define CIRCUITBREAKER_SHM_MEMBER_HPP

#include <cstdint>

#include "clock.hpp"
#include "core/breaker.hpp"
#include "core/flapping.hpp"
#include "core/kept_calls.hpp"
#include "layout.hpp"
#include "lease.hpp"

namespace cb::shm {

/// A change of state that this process carried out.
struct Change {
    core::State from;
    core::State to;
    core::Reason reason;
    std::uint64_t number;  // of the change (changes.hpp)
    std::uint32_t level;
    core::Sums sums;            // at a trip: the window; otherwise zero
    std::uint32_t consecutive;  // failures in a row that led here
    core::Word before;          // half-open's counts, for the log
    core::Millis open_for;      // to open: the open time
};

/// An early round that has begun or failed. The breaker is as it was before, so this is no change of state.
struct EarlyRound {
    bool has_failed;
    bool is_repeated;   // it began, and the one before was an early one too
    core::Word before;  // open, or with the round's counts
    core::Millis left;  // of the open time
};

/// Hears what happened; called by the process whose CAS won, outside any loop. Must not block.
class Observer {
  public:
    virtual void on_change(const Slot& slot, const Change& change) noexcept = 0;
    /// An operator's reset of a breaker that was closed already; `number` as of a change.
    virtual void on_reset(const Slot& slot, std::uint64_t number) noexcept = 0;
    /// A trip that MaxOpen did not allow; once per generation.
    virtual void on_suppressed(const Slot& slot, core::Reason reason, const core::Sums& sums) noexcept = 0;
    /// A probe that was sent and whose deadline passed without an answer.
    virtual void on_probe_lost(const Slot& slot) noexcept = 0;
    virtual void on_early_round(const Slot& slot, const EarlyRound& round) noexcept = 0;
    /// It opens again and again; once until it has been well.
    virtual void on_flapping(const Slot& slot, const core::Flapping& figures, const core::Policy& policy) noexcept = 0;
    /// Most calls on kept connections are stale; once until they have been well.
    virtual void on_stale(const Slot& slot, const core::KeptCalls& calls) noexcept = 0;

  protected:
    ~Observer() = default;
};

/// What a process brings along to every verb.
struct Process {
    Clock clock;
    std::uint32_t pid = 0;
    Observer* observer = nullptr;  // may be nullptr
};

/// The members of a balancer, for MaxOpen: those that mod_proxy could use, oneself included; nullptr stands for one
/// without a breaker.
struct Peers {
    Slot* const* slots = nullptr;
    std::uint32_t count = 0;
};

enum class PermitKind : std::uint8_t { none, call, probe };

struct Permit {
    PermitKind kind = PermitKind::none;
    std::uint8_t slot = 0;         // probe: its lease
    std::uint32_t generation = 0;  // call: the generation it decides in
    std::uint64_t lease = 0;       // probe: the lease word as we hold it
    core::Millis taken_at = 0;
    Atomic32* cell = nullptr;  // calls in flight of this child, counted up by one
};

/// What a ramp lets a request in by: its session's place among all, or one of an evenly spread sequence, taken when a
/// ramp first asks. One for a request and a member, so that asking again changes nothing.
struct RampTicket {
    enum class Kind : std::uint8_t { untaken, taken, always };
    Kind kind = Kind::untaken;
    std::uint32_t draw = 0;  // uniform over 32 bits: let in once the share has grown past it
};

/// Would a request be let through now? Reads only, but for the count of requests that asked during a ramp.
/// Decision::pass, probe or refuse. `ticket` nullptr: one for this look alone.
[[nodiscard]] core::Decision peek(Slot& slot, const core::Policy& policy, const Process& process,
                                  RampTicket* ticket = nullptr) noexcept;

/// May a request that finds no other member be a probe? Of an open breaker once it has been open for
/// policy.open_time.min; of a half-open one within `concurrent`, whatever its round. A look only.
[[nodiscard]] bool may_probe_early(Slot& slot, const core::Policy& policy, const Process& process) noexcept;
/// Time until an open breaker may be probed: at the end of its open time, or `early`, after the minimum. 0 for others.
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

/// Takes a permit after peek() said pass or probe. `may_probe` false: refused where only a probe would do.
/// `lease_span`: a probe's lease, ms (connect timeout + probe timeout + settle + 1 s; at most 36 hours).
/// `ticket`: as in peek(); nullptr: a ramp has let the request in already.
/// `is_last_resort`: there is no other member; an open one may be probed as may_probe_early() says.
[[nodiscard]] Admission admit(Slot& slot, const core::Policy& policy, const Process& process, InFlight in_flight,
                              bool may_probe, core::Millis lease_span, RampTicket* ticket = nullptr,
                              bool is_last_resort = false) noexcept;

/// Notes a probe's phase in its lease; `due`, unless 0, becomes its deadline if that is earlier than the one it has.
/// Does nothing for other permits, or when the lease has been taken away.
void mark(Slot& slot, Permit& permit, Phase phase, core::Millis due = 0) noexcept;

/// Its probe's deadline has passed and no answer had come: it decides nothing any more, and its call should end.
[[nodiscard]] bool is_over(const Permit& permit, const Process& process) noexcept;

/// How a call ended.
struct Ending {
    core::Outcome outcome = core::Outcome::none;
    core::Verdict verdict = core::Verdict::ignore;
    bool slow = false;
    core::Millis least_open_time = 0;
    bool is_kept = false;        // on a connection that had served another request
    bool is_timed = false;       // `latency` is a measurement of the member's speed
    core::Millis latency = 0;    // what the flight recorder keeps of a failing call:
    std::uint8_t method = 0;     // httpd's method number
    const char* path = nullptr;  // nullptr: not kept
};

/// Gives the permit back with the call's outcome and weighs the evidence. A permit of kind none is one call that was
/// made without asking (Observe): its outcome feeds the totals only. Leaves the permit as `none`.
void finish(Slot& slot, const core::Policy& policy, const Process& process, Permit& permit, const Ending& ending,
            Peers peers) noexcept;

/// A response that was judged by its headers has broken off since: in the totals only.
void count_broken_off(Slot& slot) noexcept;

/// Gives the permit back without a call: a probe's is neutral, an ordinary one leaves no trace.
void cancel(Slot& slot, const core::Policy& policy, const Process& process, Permit& permit) noexcept;

/// force_open, force_closed, reset, automatic, end_open_time. True if the breaker was changed.
bool operate(Slot& slot, const core::Policy& policy, const Process& process, core::EventKind kind) noexcept;

/// Ends every probe whose deadline has passed. True if there was one. The lease is free then if the member had
/// answered; otherwise it is overdue, and free when its holder gives it back or `policy.linger` later.
bool expire_probes(Slot& slot, const core::Policy& policy, const Process& process) noexcept;

/// The parent's: takes back every probe of a dead process, as neutral, and its intent to trip. What the dead one was
/// just ending for a holder that lives is that one's, overdue.
void reap(Slot& slot, const core::Policy& policy, const Process& process, std::uint32_t dead_pid) noexcept;

/// Leases of a member that are not free, and what they say of its probes.
struct LeaseCounts {
    std::uint32_t taken = 0;
    std::uint32_t in_flight = 0;  // probes at the member, of earlier rounds and overdue ones too
    std::uint32_t overdue = 0;
};
[[nodiscard]] LeaseCounts count_leases(const Slot& slot) noexcept;

/// Notes the policy at start. Another shape of the window than before begins a new generation.
void configure(Slot& slot, const core::Policy& policy, const Process& process) noexcept;

/// The policy of those who use the slot, for a process that does not know the member: one that was added at run time,
/// or that no configuration has any more. Whoever holds a lease has noted it before.
[[nodiscard]] core::Policy noted_policy(const Slot& slot) noexcept;

/// The window's sums of the present generation.
[[nodiscard]] core::Sums sums_now(const Slot& slot, const core::Policy& policy, const Process& process) noexcept;

}  // namespace cb::shm

#endif
