#include "load.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "shm/lease.hpp"

namespace cb::test {

using core::State;
using shm::PermitKind;
using shm::Refusal;

namespace {

constexpr core::Millis kBrief = 3'000;
constexpr core::Millis kForEver = 36ULL * 3'600'000;
constexpr std::uint32_t kConcurrent = 2;

}  // namespace

Members::Members(World& world) : single_rules(policy()), three_rules(policy()) {
    single_rules.slow_call = {1, 100};
    single_rules.open_time = {100, 400, 2000, 0, false};
    single_rules.probes = {6, 3, 1, 4, 12};
    single_rules.ramp_up = {150, 50};
    single_rules.max_concurrent = kConcurrent;
    single_rules.linger = kBrief;
    single_rules.open_time.min = 20;
    three_rules.window = {0, 17};
    three_rules.open_time = {100, 100, 1000, 0, false};
    three_rules.probes = {3, 2, 0, 3, 3};
    three_rules.max_open = 50;
    single = &world.add("single", single_rules);
    for (std::size_t i = 0; i < three.size(); ++i)
        three[i] = &world.add("of-three-" + std::to_string(i), three_rules);
}

std::uint32_t Members::open_of_three() const {
    return static_cast<std::uint32_t>(std::count_if(three.begin(), three.end(), [](const shm::Slot* slot) {
        return state_of(*slot) == State::open || state_of(*slot) == State::half_open;
    }));
}

std::uint64_t Members::calls_in_totals() const {
    std::uint64_t calls = single->totals.calls;
    for (const shm::Slot* slot : three)
        calls += slot->totals.calls;
    return calls;
}

Load::Load(World& world, const Members& members, unsigned desk, Leases leases, std::uint64_t seed)
    : world_(world),
      members_(members),
      recorder_(world.board, world.segment),
      process_(world.process(static_cast<std::uint32_t>(::getpid()), &recorder_)),
      desk_(world.board.desk[desk]),
      leases_(leases),
      random_(seed) {}

void Load::begin() {
    bool is_stale = false;
    column_ = shm::register_child(world_.segment, process_.pid, world_.epoch(), is_stale);
    world_.board.expect(column_ != shm::kNoColumn && !is_stale, "no column for a new child");
}

void Load::step() {
    ++steps_;
    desk_.progress.fetch_add(1);
    world_.pass(random_.below(10));
    if (random_.below(16) == 0) ::sched_yield();
    const std::uint32_t what = random_.below(16);
    if (what == 0) return bind_another();
    if (what == 1) return (void)shm::expire_probes(*members_.single, members_.single_rules, process_);
    if (what < 8) return call_one_of_three();
    call_single();
}

void Load::end() {
    if (hanging_.kind != PermitKind::none) shm::cancel(*members_.single, members_.single_rules, process_, hanging_);
}

shm::Ending Load::ending() {
    // Good times and bad times by turns: windows fill, trips come.
    constexpr std::uint32_t kFailuresOf16[] = {0, 8, 1, 15};
    shm::Ending ending = random_.below(16) < kFailuresOf16[steps_ / 100 % 4] ? kBad : kGood;
    const std::uint32_t draw = random_.below(40);
    if (draw == 0) ending = kNeutral;
    if (draw == 1) ending.verdict = core::Verdict::tolerate;
    if (draw == 2) ending = kFatal;
    ending.slow = draw > 30;
    return ending;
}

void Load::end_call(shm::Slot& slot, const core::Policy& rules, shm::Permit& permit, shm::Peers peers) {
    if (random_.below(20) == 0) return (void)shm::cancel(slot, rules, process_, permit);
    desk_.started.fetch_add(1);
    shm::finish(slot, rules, process_, permit, ending(), peers);
    desk_.done.fetch_add(1);
}

void Load::call_single() {
    shm::Slot& slot = *members_.single;
    const core::Policy& rules = members_.single_rules;
    if (hanging_.kind != PermitKind::none && steps_ > hangs_until_) end_call(slot, rules, hanging_, {});
    const core::Millis lease = leases_ == Leases::brief ? kBrief : kForEver;
    const bool may_hang = leases_ == Leases::brief && hanging_.kind == PermitKind::none && random_.below(4) == 0;
    const shm::InFlight in_flight = may_hang ? shm::InFlight{} : world_.in_flight(slot, column_);
    shm::Admission mine = ask(slot, rules, process_, in_flight, lease);
    if (mine.refusal == Refusal::open && random_.below(4) == 0) {
        mine = shm::admit(slot, rules, process_, in_flight, true, lease, nullptr, true);
    }
    if (mine.refusal != Refusal::none) return;
    const bool is_probe = mine.permit.kind == PermitKind::probe;
    if (is_probe && random_.below(4) > 0) shm::mark(slot, mine.permit, shm::Phase::sent);
    if (is_probe && may_hang) {
        hanging_ = mine.permit;
        // Its lease is taken away, and it comes before the linger has passed or after.
        hangs_until_ = steps_ + 20 + random_.below(1'400);
        return world_.pass(kBrief + shm::Lease::kUnit);
    }
    if (leases_ == Leases::for_ever) {
        if (is_probe) desk_.probes.fetch_add(1);
        desk_.calls.fetch_add(1);
        world_.board.expect(world_.board.probes_held() <= rules.probes.concurrent, "too many probes at once");
        world_.board.expect(world_.board.calls_held() <= kConcurrent, "more calls at once than MaxConcurrent");
        desk_.calls.fetch_sub(1);
        if (is_probe) desk_.probes.fetch_sub(1);
    }
    if (is_probe && random_.below(4) == 0) shm::mark(slot, mine.permit, shm::Phase::success);
    end_call(slot, rules, mine.permit, {});
}

void Load::call_one_of_three() {
    shm::Slot& slot = *members_.three[random_.below(3)];
    const shm::Peers peers{members_.three.data(), 3};
    shm::Admission mine = ask(slot, members_.three_rules, process_, world_.in_flight(slot, column_), kForEver);
    if (mine.refusal == Refusal::none) end_call(slot, members_.three_rules, mine.permit, peers);
}

void Load::bind_another() {
    std::uint32_t index = 0;
    // Some names are everybody's, some this desk's own, so that there is always something new to claim for a while.
    const std::uint32_t draw = random_.below(16);
    const std::string owner = draw < 8 ? "all" : std::to_string(&desk_ - world_.board.desk);
    const std::string name = "run-time-" + owner + "-" + std::to_string(draw);
    if (shm::bind(world_.segment, identity(name), world_.epoch(), process_.pid, index) != shm::BindResult::bound)
        return;
    world_.board.expect(name == world_.segment.slots[index].identity.name, "bound to another member's slot");
}

}  // namespace cb::test
