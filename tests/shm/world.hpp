// What the tests of shm/ share: a segment in memory as the server's processes have it, a clock that is moved by hand,
// and the calls of a proxy reduced to their verbs.
//
// Thread safety: Board and what it holds may be used from every thread and every forked child; World belongs to the
// test.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "shm/changes.hpp"
#include "shm/member.hpp"
#include "shm/table.hpp"

namespace cb::test {

/// Zeroed anonymous memory that children forked later share.
class SharedMemory {
  public:
    explicit SharedMemory(std::size_t size);
    ~SharedMemory();
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;
    [[nodiscard]] void* data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return size_; }

  private:
    std::size_t size_;
    void* data_;
};

/// One change, as the process that carried it out reported it; a reset of a closed breaker is one from closed to
/// closed.
struct Reported {
    shm::Atomic64 number;
    std::atomic<std::uint32_t> slot;
    std::atomic<std::uint32_t> from;
    std::atomic<std::uint32_t> to;
    std::atomic<std::uint32_t> is_written;
};

/// What one worker tells the others and the test; it outlives the worker's death.
struct alignas(64) Desk {
    shm::Atomic64 probes;    // probes it holds
    shm::Atomic64 calls;     // calls it has in flight
    shm::Atomic64 progress;  // grows with every step of its work
    shm::Atomic64 started;   // calls whose finish() has begun
    shm::Atomic64 done;      // calls whose finish() has returned
};

/// The tests' own shared memory. All-zero is its start.
struct Board {
    static constexpr std::size_t kDesks = 16;
    static constexpr std::size_t kReports = 1U << 17U;
    static constexpr std::size_t kCounters = 4096;

    shm::Atomic64 now;  // ms: what the clock says
    shm::Atomic64 at_line;
    shm::Atomic64 stop;
    std::atomic<const char*> wrong;  // the first thing a worker found wrong
    shm::Atomic64 consecutive;       // failures in a row that led to the last change
    shm::Atomic64 lost;              // on_probe_lost
    shm::Atomic64 probes;            // on_probe
    shm::ProbeEnd probe;             // the last of them
    shm::Atomic64 suppressed;        // on_suppressed
    shm::Atomic64 early_begun;       // on_early_round
    shm::Atomic64 early_failed;
    shm::Atomic64 early_repeated;
    shm::Atomic64 flapping;           // on_flapping
    shm::Atomic64 stale;              // on_stale
    shm::Atomic64 too_cautious;       // on_too_cautious
    core::Outage outage;              // of the last of them
    shm::Atomic64 probes_soon;        // on_probe_soon
    shm::Atomic64 soon_left;          // of the last of them
    core::Flapping flapping_figures;  // of the last of them
    Desk desk[Board::kDesks];
    shm::Atomic64 counter[kCounters];
    shm::Atomic64 counter2[kCounters];
    shm::Atomic64 reports;
    Reported report[kReports];

    /// For workers, whose own assertions nobody would see: text must be a literal.
    void expect(bool holds, const char* text) noexcept;
    [[nodiscard]] std::uint64_t probes_held() const noexcept;
    [[nodiscard]] std::uint64_t calls_held() const noexcept;
};

/// Writes everything it hears to the board.
class Recorder final : public shm::Observer {
  public:
    Recorder(Board& board, const shm::Segment& segment) : board_(board), segment_(segment) {}
    void on_change(const shm::Slot& slot, const shm::Change& change) noexcept override;
    void on_reset(const shm::Slot& slot, std::uint64_t number) noexcept override;
    void on_suppressed(const shm::Slot& slot, core::Reason reason, const core::Sums& sums) noexcept override;
    void on_probe_lost(const shm::Slot& slot) noexcept override;
    void on_probe(const shm::Slot& slot, const shm::ProbeEnd& end) noexcept override;
    void on_early_round(const shm::Slot& slot, const shm::EarlyRound& round) noexcept override;
    void on_flapping(const shm::Slot& slot, const core::Flapping& figures,
                     const core::Policy& policy) noexcept override;
    void on_too_cautious(const shm::Slot& slot, const core::Outage& outage,
                         const core::Policy& policy) noexcept override;
    void on_probe_soon(const shm::Slot& slot, core::Millis left) noexcept override;
    void on_stale(const shm::Slot& slot, const core::KeptCalls& calls) noexcept override;

  private:
    void write(const shm::Slot& slot, std::uint64_t number, core::State from, core::State to) noexcept;

    Board& board_;
    const shm::Segment& segment_;
};

inline constexpr core::Millis kStart = 1'000'000;      // where a world's clock begins
inline constexpr std::uint32_t kThreadsPid = 400'000;  // of a "child" that is only threads of the test

class World {
  public:
    explicit World(std::uint32_t capacity = 8, std::uint32_t columns = 8);
    /// Another world in memory of its own, in which everything stands as in `other` now (but for the reports).
    World(const World& other);
    World& operator=(const World&) = delete;

    [[nodiscard]] shm::Process process(std::uint32_t pid, shm::Observer* observer = nullptr) const;
    /// The test's own process, which also plays the parent.
    [[nodiscard]] shm::Process parent(shm::Observer* observer = nullptr) const;
    /// The segment's memory, and the slot of another world here.
    [[nodiscard]] const SharedMemory& memory() const { return memory_; }
    [[nodiscard]] shm::Slot& here(const shm::Slot& slot_of, const World& other) const {
        return segment.slots[other.segment.index_of(slot_of)];
    }
    [[nodiscard]] shm::InFlight in_flight(const shm::Slot& slot, std::uint32_t column) const;

    /// Binds a member, as the parent does in post_config.
    shm::Slot& add(const std::string& name, const core::Policy& policy);
    /// Binds what should be there or fit, as a child of this epoch does; the slot's index.
    std::uint32_t bound(const shm::Identity& identity, std::uint32_t pid = 1001) const;
    /// What the parent does at a restart, save the binding of what is configured.
    void restart() const { segment.header->epoch.fetch_add(1); }
    [[nodiscard]] std::uint64_t epoch() const { return segment.header->epoch.load(); }
    /// Forgets the reports so far; those of later changes must follow on the states as they are now.
    void begin_reports();
    void pass(core::Millis span) { board.now.fetch_add(span); }
    /// The parent hears that a child has ended.
    void child_exited(std::uint32_t pid) const;

  private:
    SharedMemory memory_;
    SharedMemory board_memory_;

  public:
    shm::Segment segment;
    Board& board;
    Recorder recorder;

    /// How a breaker stood when its reports began.
    struct Before {
        shm::NumberedWord last{};
        std::uint64_t changes = 0;  // of state, in the totals
        std::uint64_t behind = 0;   // reports that were missing already
    };
    std::vector<Before> before_reports;
};

/// An identity of balancer `b`, worker `name`.
[[nodiscard]] shm::Identity identity(const std::string& name, const std::string& balancer = "balancer://b",
                                     const std::string& uds_path = "", std::uint64_t vhost = 1);

/// A policy with round numbers: 10 s, 50 % of at least 4 calls, 5 in a row, open for 1000 ms without jitter, 3 probes.
[[nodiscard]] core::Policy policy();
/// The same, but nothing trips it save `fatal`.
[[nodiscard]] core::Policy untrippable();

inline constexpr shm::Ending kGood{static_cast<core::Outcome>(200), core::Verdict::success, false, 0};
inline constexpr shm::Ending kBad{core::Outcome::reset, core::Verdict::failure, false, 0};
inline constexpr shm::Ending kFatal{core::Outcome::reset, core::Verdict::fatal, false, 0};
inline constexpr shm::Ending kNeutral{core::Outcome::client, core::Verdict::ignore, false, 0};
inline constexpr core::Millis kLease = 10'000;

/// peek(), then admit() unless refused.
[[nodiscard]] shm::Admission ask(shm::Slot& slot, const core::Policy& policy, const shm::Process& process,
                                 shm::InFlight in_flight = {}, core::Millis lease = kLease);
/// One whole call. False if it was refused.
bool call(shm::Slot& slot, const core::Policy& policy, const shm::Process& process, const shm::Ending& ending,
          shm::Peers peers = {});

[[nodiscard]] core::Word word_of(const shm::Slot& slot);
[[nodiscard]] core::State state_of(const shm::Slot& slot);

/// Drives a breaker to closed by nothing but time and successes. False if that does not get it there.
bool recovers(World& world, shm::Slot& slot, const core::Policy& policy);

/// The column that a child has registered, or kNoColumn.
[[nodiscard]] std::uint32_t column_of(const shm::Segment& segment, std::uint32_t pid);
/// What a dead child must not leave behind, as text; empty if there is nothing. Others may be at work meanwhile, but
/// nobody has been given its column yet.
[[nodiscard]] std::string remains_of(const shm::Segment& segment, std::uint32_t pid, std::uint32_t column);

/// Every change of `slot` was reported once, under the number that comes after that of the one before, and began where
/// that one ended; and the totals agree.
/// `may_be_missing`: reports that died with the process that owed them. Empty if all is well.
[[nodiscard]] std::string wrong_with_reports(const World& world, const shm::Slot& slot,
                                             std::uint64_t may_be_missing = 0);

}  // namespace cb::test
