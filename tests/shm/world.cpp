#include "world.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <sstream>
#include <system_error>

#include "shm/lease.hpp"

namespace cb::test {

using core::State;
using core::Verdict;

SharedMemory::SharedMemory(std::size_t size)
    : size_(size), data_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (data_ == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
}

SharedMemory::~SharedMemory() {
    ::munmap(data_, size_);
}

void Board::expect(bool holds, const char* text) noexcept {
    const char* nothing = nullptr;
    if (!holds) wrong.compare_exchange_strong(nothing, text);
}

std::uint64_t Board::probes_held() const noexcept {
    std::uint64_t sum = 0;
    for (const Desk& one : desk)
        sum += one.probes.load();
    return sum;
}

std::uint64_t Board::calls_held() const noexcept {
    std::uint64_t sum = 0;
    for (const Desk& one : desk)
        sum += one.calls.load();
    return sum;
}

void Recorder::on_change(const shm::Slot& slot, const shm::Change& change) noexcept {
    write(slot, change.number, change.from, change.to);
    board_.consecutive = change.consecutive;
}

void Recorder::on_reset(const shm::Slot& slot, std::uint64_t number) noexcept {
    write(slot, number, State::closed, State::closed);
}

void Recorder::write(const shm::Slot& slot, std::uint64_t number, State from, State to) noexcept {
    const std::uint64_t at = board_.reports.fetch_add(1);
    if (at >= Board::kReports) return;
    Reported& report = board_.report[at];
    report.slot = segment_.index_of(slot);
    report.number = number;
    report.from = static_cast<std::uint32_t>(from);
    report.to = static_cast<std::uint32_t>(to);
    report.is_written = 1;
}

void Recorder::on_suppressed(const shm::Slot&, core::Reason, const core::Sums&) noexcept {
    board_.suppressed.fetch_add(1);
}

void Recorder::on_probe_lost(const shm::Slot&) noexcept {
    board_.lost.fetch_add(1);
}

void Recorder::on_probe(const shm::Slot&, const shm::ProbeEnd& end) noexcept {
    board_.probe = end;
    board_.probes.fetch_add(1);
}

void Recorder::on_early_round(const shm::Slot&, const shm::EarlyRound& round) noexcept {
    (round.has_failed ? board_.early_failed : board_.early_begun).fetch_add(1);
    if (round.is_repeated) board_.early_repeated.fetch_add(1);
}

void Recorder::on_stale(const shm::Slot&, const core::KeptCalls&) noexcept {
    board_.stale.fetch_add(1);
}

void Recorder::on_too_cautious(const shm::Slot&, const core::Outage& outage, const core::Policy&) noexcept {
    board_.outage = outage;
    board_.too_cautious.fetch_add(1);
}

void Recorder::on_probe_soon(const shm::Slot&, core::Millis left) noexcept {
    board_.soon_left = left;
    board_.probes_soon.fetch_add(1);
}

void Recorder::on_flapping(const shm::Slot&, const core::Flapping& figures, const core::Policy&) noexcept {
    board_.flapping_figures = figures;
    board_.flapping.fetch_add(1);
}

World::World(std::uint32_t capacity, std::uint32_t columns)
    : memory_(shm::segment_size(capacity, columns)),
      board_memory_(sizeof(Board)),
      segment(shm::format(memory_.data(), capacity, columns, shm::monotonic_ns())),
      board(*static_cast<Board*>(board_memory_.data())),
      recorder(board, segment),
      before_reports(capacity) {
    segment.header->epoch = 1;
    board.now = kStart;
}

World::World(const World& other) : World(other.segment.header->capacity, other.segment.header->columns) {
    std::memcpy(memory_.data(), other.memory_.data(), memory_.size());
    board.now = other.board.now.load();
    begin_reports();
}

shm::Process World::process(std::uint32_t pid, shm::Observer* observer) const {
    return {shm::Clock{segment.header->start_ns, &board.now}, pid, observer};
}

shm::Process World::parent(shm::Observer* observer) const {
    return process(static_cast<std::uint32_t>(::getpid()), observer);
}

shm::InFlight World::in_flight(const shm::Slot& slot, std::uint32_t column) const {
    const shm::Atomic32* const row = segment.row(segment.index_of(slot));
    return {segment.row(segment.index_of(slot)) + column, row, segment.header->columns};
}

shm::Slot& World::add(const std::string& name, const core::Policy& policy) {
    std::uint32_t index = 0;
    const auto pid = static_cast<std::uint32_t>(::getpid());
    if (shm::bind(segment, identity(name), epoch(), pid, index) != shm::BindResult::bound) {
        throw std::runtime_error("no slot for " + name);
    }
    shm::Slot& slot = segment.slots[index];
    slot.since = board.now.load();
    shm::configure(slot, policy, parent());
    return slot;
}

std::uint32_t World::bound(const shm::Identity& identity, std::uint32_t pid) const {
    std::uint32_t index = segment.header->capacity;
    EXPECT_EQ(shm::bind(segment, identity, epoch(), pid, index), shm::BindResult::bound) << identity.name;
    return index;
}

void World::child_exited(std::uint32_t pid) const {
    shm::child_exited(segment, parent(), pid);
}

shm::Identity identity(const std::string& name, const std::string& balancer, const std::string& uds_path,
                       std::uint64_t vhost) {
    shm::Identity identity{};
    if (!shm::make_identity(identity, vhost, balancer.c_str(), name.c_str(), uds_path.c_str())) {
        throw std::runtime_error("too long: " + name);
    }
    return identity;
}

core::Policy policy() {
    core::Policy policy;
    policy.mode = core::Mode::on;
    policy.minimum_calls = 4;
    policy.open_time = {1000, 60'000, 2000, 0, false};
    return policy;
}

core::Policy untrippable() {
    core::Policy none = policy();
    none.failure_rate = 0;
    none.consecutive_failures = 0;
    return none;
}

shm::Admission ask(shm::Slot& slot, const core::Policy& policy, const shm::Process& process, shm::InFlight in_flight,
                   core::Millis lease) {
    if (shm::peek(slot, policy, process) == core::Decision::refuse) return {shm::Refusal::open, {}};
    return shm::admit(slot, policy, process, in_flight, true, lease);
}

bool call(shm::Slot& slot, const core::Policy& policy, const shm::Process& process, const shm::Ending& ending,
          shm::Peers peers) {
    shm::Admission admission = ask(slot, policy, process);
    if (admission.refusal != shm::Refusal::none) return false;
    shm::finish(slot, policy, process, admission.permit, ending, peers);
    return true;
}

core::Word word_of(const shm::Slot& slot) {
    return core::unpack(slot.word.load());
}

State state_of(const shm::Slot& slot) {
    return core::state_of(slot.word.load());
}

bool recovers(World& world, shm::Slot& slot, const core::Policy& policy) {
    for (int i = 0; i < 1000; ++i) {
        if (state_of(slot) == State::closed) return true;
        const bool was_let_in = call(slot, policy, world.parent(), kGood);
        if (!was_let_in || state_of(slot) == State::recovering) world.pass(1000);
    }
    return false;
}

std::uint32_t column_of(const shm::Segment& segment, std::uint32_t pid) {
    for (std::uint32_t c = 0; c < segment.header->columns; ++c) {
        const std::uint64_t word = segment.children[c].load();
        if (word != 0 && (word & shm::kPidMask) == pid) return c;
    }
    return shm::kNoColumn;
}

std::string remains_of(const shm::Segment& segment, std::uint32_t pid, std::uint32_t column) {
    std::ostringstream found;
    if (column_of(segment, pid) != shm::kNoColumn) found << "its column; ";
    for (std::uint32_t i = 0; i < segment.header->capacity; ++i) {
        const std::uint64_t entry = segment.directory[i].load();
        const bool is_claiming = entry >> 62U == 1;  // table.cpp: state:2 | pid:22 | hash:40
        if (column != shm::kNoColumn && segment.row(i)[column].load() != 0) found << "calls in flight to " << i << "; ";
        if (is_claiming && (entry >> 40U & shm::kPidMask) == pid) found << "half-made claim of slot " << i << "; ";
        const shm::Slot& slot = segment.slots[i];
        for (std::uint32_t n = 0; n < shm::kLeases; ++n) {
            const shm::Lease lease = shm::Lease::of(slot.lease[n].load());
            if (lease.state != shm::LeaseState::free && (lease.pid == pid || lease.holder() == pid)) {
                found << "lease " << n << " of slot " << i << " in state " << static_cast<int>(lease.state) << "; ";
            }
        }
        const std::uint64_t intent = slot.intent.load();
        if (intent != 0 && (intent & shm::kPidMask) == pid) found << "intent in slot " << i << "; ";
    }
    return found.str();
}

namespace {

std::uint64_t changes_counted(const shm::Slot& slot) {
    std::uint64_t counted = 0;
    for (const auto& row : slot.totals.transition) {
        for (const auto& one : row)
            counted += one.load();
    }
    return counted;
}

std::uint64_t reports_behind(const shm::Slot& slot) {
    return shm::numbered_word(slot).number - slot.reports.load();
}

}  // namespace

void World::begin_reports() {
    for (std::uint64_t n = 0; n < std::min<std::uint64_t>(board.reports, Board::kReports); ++n) {
        board.report[n].is_written = 0;
    }
    board.reports = 0;
    for (std::uint32_t i = 0; i < segment.header->capacity; ++i) {
        const shm::Slot& slot = segment.slots[i];
        before_reports[i] = {shm::numbered_word(slot), changes_counted(slot), reports_behind(slot)};
    }
}

namespace {

/// The state that the last report led to: an early round is none of its own.
std::uint32_t reported_state(std::uint64_t word) {
    return static_cast<std::uint32_t>(core::is_early(word) ? core::State::open : core::state_of(word));
}

}  // namespace

std::string wrong_with_reports(const World& world, const shm::Slot& slot, std::uint64_t may_be_missing) {
    const std::uint32_t index = world.segment.index_of(slot);
    const std::uint64_t reports = world.board.reports.load();
    if (reports > Board::kReports) return "more reports than the board has room for";
    const World::Before& before = world.before_reports[index];
    std::map<std::uint64_t, const Reported*> by_number;
    std::uint64_t transitions = 0;
    for (std::uint64_t n = 0; n < reports; ++n) {
        const Reported& report = world.board.report[n];
        if (report.slot != index || report.is_written == 0) continue;
        if (report.from != report.to) ++transitions;
        if (!by_number.emplace(report.number.load(), &report).second) {
            return "number " + std::to_string(report.number.load()) + " was reported twice";
        }
    }
    std::uint64_t missing = 0;
    std::uint64_t last = before.last.number;
    std::uint32_t state = reported_state(before.last.word);
    for (const auto& [number, report] : by_number) {
        if (number <= last) return "number " + std::to_string(number) + " was taken before these reports began";
        missing += number - last - 1;
        if (number == last + 1 && report->from != state) {
            return "number " + std::to_string(number) + " does not begin where the one before it ended";
        }
        last = number;
        state = report->to;
    }
    const shm::NumberedWord now = shm::numbered_word(slot);
    if (now.number < last) return "number " + std::to_string(last) + " was never reached";
    missing += now.number - last;
    if (now.number == last && reported_state(now.word) != state) {
        return "the last change did not lead to where it is now";
    }
    if (missing > may_be_missing) return std::to_string(missing) + " changes were not reported";
    const std::uint64_t counted = changes_counted(slot) - before.changes;
    if (counted < transitions || counted > transitions + may_be_missing) {
        return std::to_string(counted) + " changes counted, " + std::to_string(transitions) + " reported";
    }
    const std::uint64_t gap = reports_behind(slot) - before.behind;
    if (gap > may_be_missing) return "reports are " + std::to_string(gap) + " behind the changes";
    return "";
}

}  // namespace cb::test
