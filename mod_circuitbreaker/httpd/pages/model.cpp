#include "model.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "httpd/members/health.hpp"
#include "httpd/runtime.hpp"
#include "shm/early.hpp"
#include "shm/stays.hpp"

namespace cb::httpd {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;  // counters, for people

template <std::size_t N>
std::uint64_t sum_of(const std::uint64_t (&counters)[N]) noexcept {
    std::uint64_t sum = 0;
    for (const std::uint64_t each : counters)
        sum += each;
    return sum;
}

void read_counts(Counts& counts, const shm::Totals& totals) noexcept {
    static_assert(sizeof(Counts) == sizeof(shm::Totals));  // nothing but counters
    const shm::Atomic64* from = &totals.calls;
    for (std::uint64_t* to = &counts.calls; to != reinterpret_cast<std::uint64_t*>(&counts + 1); ++to, ++from)
        *to = from->load(kRelaxed);
}

void read_durations(Durations& durations, const shm::Histogram& histogram,
                    const std::uint32_t (&bounds)[shm::kLatencyBuckets - 1]) noexcept {
    durations.bounds = bounds;
    for (std::size_t i = 0; i < shm::kLatencyBuckets; ++i)
        durations.bucket[i] = histogram.bucket[i].load(kRelaxed);
    durations.sum_ms = histogram.sum_ms.load(kRelaxed);
}

void write_id(char (&text)[kIdText], const shm::Identity& identity) noexcept {
    apr_snprintf(text, sizeof text, "%016" APR_UINT64_T_HEX_FMT, shm::hash_bytes(&identity, sizeof identity, 0));
}

/// Like strcmp, but digits compare by the number they write: ":8081" before ":10001".
int compare_names(const char* a, const char* b) noexcept {
    for (;; ++a, ++b) {
        if (apr_isdigit(*a) && apr_isdigit(*b)) {
            while (*a == '0' && apr_isdigit(a[1]))
                ++a;
            while (*b == '0' && apr_isdigit(b[1]))
                ++b;
            const std::size_t length_a = std::strspn(a, "0123456789");
            const std::size_t length_b = std::strspn(b, "0123456789");
            if (length_a != length_b) return length_a < length_b ? -1 : 1;
            if (const int order = std::memcmp(a, b, length_a); order != 0) return order;
            a += length_a - 1;
            b += length_b - 1;
            continue;
        }
        if (*a != *b || *a == '\0') return static_cast<unsigned char>(*a) - static_cast<unsigned char>(*b);
    }
}

/// What members are ordered by, copied: what stands in the segment may change while they are sorted.
struct SortKey {
    std::uint32_t index;
    const char* vhost;
    shm::Identity identity;
};

bool comes_before(const SortKey& a, const SortKey& b) noexcept {
    if (const int order = compare_names(a.vhost, b.vhost); order != 0) return order < 0;
    if (a.identity.vhost != b.identity.vhost) return a.identity.vhost < b.identity.vhost;
    if (const int order = compare_names(a.identity.balancer, b.identity.balancer); order != 0) return order < 0;
    if (const int order = compare_names(a.identity.name, b.identity.name); order != 0) return order < 0;
    if (const int order = compare_names(a.identity.uds_path, b.identity.uds_path); order != 0) return order < 0;
    return a.index < b.index;
}

}  // namespace

std::uint64_t Counts::all_refused() const noexcept {
    return sum_of(refused);
}
std::uint64_t Counts::all_would_refuse() const noexcept {
    return sum_of(would_refuse);
}
std::uint64_t Counts::all_transitions() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& from : transition)
        sum += sum_of(from);
    return sum;
}
std::uint64_t Counts::opened() const noexcept {
    constexpr auto kOpen = static_cast<std::size_t>(core::State::open);
    std::uint64_t sum = 0;
    for (const core::State from : {core::State::closed, core::State::half_open, core::State::recovering})
        sum += transition[static_cast<std::size_t>(from)][kOpen];
    return sum;
}

bool MemberSnapshot::is_out() const noexcept {
    return httpd::is_out(word.state);
}

bool read_member(MemberSnapshot& member, std::uint32_t index) noexcept {
    if (!shm::read_identity(runtime.segment, index, member.identity)) return false;
    const shm::Slot& slot = runtime.segment.slots[index];
    write_id(member.id, member.identity);
    member.breaker = breaker_at(index);
    member.policy = member.breaker != nullptr ? member.breaker->policy : shm::noted_policy(slot);
    member.name = member.breaker != nullptr ? member.breaker->name : member.identity.name;
    member.balancer = member.identity.balancer;
    member.vhost = member.breaker != nullptr ? member.breaker->vhost : "";
    const shm::Stays stays = shm::read_stays(slot, runtime.process.clock);
    member.word = core::unpack(stays.at.word);
    member.changes_ever = stays.at.number;
    member.since = stays.since;
    member.now = stays.now;
    member.changes = shm::read_history(slot, member.changes_ever, member.change);
    member.reason = core::Reason::none;
    if (member.changes > 0 && member.change[member.changes - 1].to == member.word.state)
        member.reason = member.change[member.changes - 1].reason;
    if (member.word.early) member.reason = core::Reason::no_other_member;
    member.was_probed_early = shm::was_probed_early(slot.interrupted.load(kRelaxed), stays.at.word);
    member.next_probe_in = member.word.state == core::State::open ? core::open_remaining(member.word, member.now) : 0;
    member.sums = shm::sums_now(slot, member.policy, runtime.process);
    member.ramp_percent = 0;
    if (member.word.state == core::State::recovering) {
        const core::Millis elapsed = core::ramp_elapsed(member.word, member.policy.ramp_up, member.now);
        member.ramp_percent = core::ramp_share(member.policy.ramp_up, elapsed) * 100 / 65536;
    }
    member.in_flight = 0;
    const auto columns = runtime.segment.header->columns_used.load(kRelaxed);
    for (std::uint64_t column = 0; column < columns; ++column)
        member.in_flight += runtime.segment.row(index)[column].load(kRelaxed);
    member.is_awaiting_check = member.breaker != nullptr && is_awaiting_check(*member.breaker, slot);
    member.too_cautious = core::unpack_outage(slot.too_cautious.load(kRelaxed));
    member.is_flapping = slot.flapping.load(kRelaxed) != 0;
    member.leases = shm::count_leases(slot);
    read_counts(member.counts, slot.totals);
    std::copy(std::begin(stays.ms), std::end(stays.ms), member.counts.state_ms);
    read_durations(member.calls, slot.call_duration, shm::kLatencyBounds);
    read_durations(member.probes, slot.probe_duration, shm::kLatencyBounds);
    read_durations(member.outages, slot.outage_duration, shm::kOutageBounds);
    read_durations(member.waiting, slot.outage_waiting, shm::kOutageBounds);
    member.failed_calls = shm::read_failed_calls(slot, member.failed_call);
    return true;
}

const Breaker* breaker_at(std::uint32_t index) noexcept {
    return runtime.registry != nullptr ? runtime.registry->at(index) : nullptr;
}

core::Mode mode_of_member(std::uint32_t index) noexcept {
    const Breaker* const breaker = breaker_at(index);
    return breaker != nullptr ? breaker->policy.mode : shm::noted_policy(runtime.segment.slots[index]).mode;
}

core::State state_of_member(std::uint32_t index) noexcept {
    return core::state_of(runtime.segment.slots[index].word.load(kRelaxed));
}

Outage outage_of(const MemberSnapshot& member) noexcept {
    Outage outage;
    for (std::uint32_t i = member.changes; i > 0; --i) {
        const shm::HistoryEntry& change = member.change[i - 1];
        outage.is_whole = change.to == core::State::closed || change.to == core::State::forced_closed;
        if (outage.is_whole) break;
        // A half-open that is not the present one has ended in another opening or a recovery that did not last.
        if (change.to == core::State::half_open && i != member.changes) ++outage.rounds;
        outage.since = change.at;
        outage.reason = change.reason;
    }
    outage.is_whole = outage.is_whole || member.changes == member.changes_ever;
    return outage;
}

MemberList list_members(apr_pool_t* p, Order order) noexcept {
    if (!runtime.segment.is_valid()) return {};
    if (runtime.registry != nullptr) runtime.registry->know_all_members();
    const std::uint32_t capacity = runtime.segment.header->capacity;
    std::uint32_t most = 0;
    for (std::uint32_t i = 0; i < capacity; ++i)
        most += runtime.segment.is_ready(i) ? 1U : 0U;
    auto* const keys = static_cast<SortKey*>(apr_palloc(p, (std::size_t{most} + 1) * sizeof(SortKey)));
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < capacity && count < most; ++i) {
        if (!shm::read_identity(runtime.segment, i, keys[count].identity)) continue;
        const Breaker* const breaker = breaker_at(i);
        keys[count].index = i;
        keys[count++].vhost = breaker != nullptr ? breaker->vhost : "";
    }
    if (order == Order::by_name) std::sort(keys, keys + count, comes_before);
    auto* const index = static_cast<std::uint32_t*>(apr_palloc(p, (std::size_t{count} + 1) * sizeof(std::uint32_t)));
    std::transform(keys, keys + count, index, [](const SortKey& key) noexcept { return key.index; });
    return {index, count};
}

apr_time_t wall_time(const MemberSnapshot& member, core::Millis at) noexcept {
    const auto ago = static_cast<apr_time_t>(member.now) - static_cast<apr_time_t>(at);
    return apr_time_now() - ago * 1000;
}

bool find_member(const char* id, std::uint32_t& index) noexcept {
    if (!runtime.segment.is_valid()) return false;
    if (runtime.registry != nullptr) runtime.registry->know_all_members();
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < runtime.segment.header->capacity; ++i) {
        shm::Identity identity;
        if (!shm::read_identity(runtime.segment, i, identity)) continue;
        char text[kIdText];
        write_id(text, identity);
        if (std::strcmp(text, id) != 0) continue;
        index = i;
        ++found;
    }
    return found == 1;
}

const char* mode_name(core::Mode mode) noexcept {
    return mode == core::Mode::on ? "On" : mode == core::Mode::observe ? "Observe" : "Off";
}

}  // namespace cb::httpd
