// The work of a child that may die at any instant: it passes every place of every protocol, and notes on its desk what
// it has begun and what it has ended.
//
// Thread safety: Members is shared by the test and its children; a Load belongs to one child.
#pragma once

#include <array>

#include "executors.hpp"
#include "world.hpp"

namespace cb::test {

/// Four members: one with a time window, slow calls, a ramp and MaxConcurrent 2; three that share MaxOpen 50 % (so at
/// most one of them is open), with count windows.
struct Members {
    explicit Members(World& world);
    [[nodiscard]] std::uint32_t open_of_three() const;
    [[nodiscard]] std::uint64_t calls_in_totals() const;

    core::Policy single_rules;
    core::Policy three_rules;
    shm::Slot* single;
    std::array<shm::Slot*, 3> three;
};

/// How long a probe's lease is. With `brief` ones some probes hang, and are ended by whoever looks.
enum class Leases { for_ever, brief };

class Load {
  public:
    Load(World& world, const Members& members, unsigned desk, Leases leases, std::uint64_t seed);
    /// Registers, as a child does first of all.
    void begin();
    /// One thing of what children do.
    void step();
    /// Gives back what hangs; after that nothing is held.
    void end();

  private:
    void call_single();
    void call_one_of_three();
    void bind_another();
    void end_call(shm::Slot& slot, const core::Policy& rules, shm::Permit& permit, shm::Peers peers);
    [[nodiscard]] shm::Ending ending();

    World& world_;
    const Members& members_;
    Recorder recorder_;
    shm::Process process_;
    Desk& desk_;
    Leases leases_;
    Random random_;
    std::uint32_t column_ = shm::kNoColumn;
    std::uint32_t steps_ = 0;
    shm::Permit hanging_;
    std::uint32_t hangs_until_ = 0;
};

}  // namespace cb::test
