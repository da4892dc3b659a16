#include "outages.hpp"

#include <algorithm>
#include <numeric>
#include <span>

#include "history.hpp"
#include "recorder.hpp"

namespace cb::shm {
namespace {

using core::Millis;
using core::Outage;
using core::State;
using core::WaitedIn;

constexpr auto kRelaxed = std::memory_order_relaxed;  // figures for people

WaitedIn waited_in(State state) noexcept {
    switch (state) {
        case State::open:
            return WaitedIn::open;
        case State::half_open:
            return WaitedIn::half_open;
        case State::recovering:
            return WaitedIn::recovering;
        default:
            return WaitedIn::none;
    }
}

/// How much of a stay was our own waiting. `proven` as in Slot. What goes on after a ramp waits for a request, not for
/// us.
Millis waiting_in(const HistoryEntry& stay, Millis end, Millis proven, const core::Policy& policy) noexcept {
    if (proven == 0) return 0;
    Millis wanted = between(stay.at, end);
    if (stay.to == State::recovering) wanted = std::min(wanted, policy.ramp_up.duration);
    const Millis until_proof = between(stay.at, proven);  // 0 also if that was before
    return wanted > until_proof ? wanted - until_proof : 0;
}

/// The outage that the last entry has ended. `lasted` is 0 if its beginning is not known.
Outage outage_of(std::span<const HistoryEntry> entries, std::uint64_t number, Millis proven,
                 const core::Policy& policy) noexcept {
    Outage outage;
    Millis waited[4] = {};
    std::size_t first = entries.size() - 1;
    for (; first > 0 && waited_in(entries[first - 1].to) != WaitedIn::none; --first) {
        const HistoryEntry& stay = entries[first - 1];
        WaitedIn in = waited_in(stay.to);
        // A round that began early is not in the history: the probes that it waited for.
        if (in == WaitedIn::open && entries[first].to != State::half_open) in = WaitedIn::half_open;
        waited[static_cast<std::size_t>(in)] += waiting_in(stay, entries[first].at, proven, policy);
    }
    const bool is_whole = first > 0 || number == entries.size();  // what was before it is known
    if (!is_whole) return outage;
    outage.lasted = between(entries[first].at, entries.back().at);
    outage.waited = std::accumulate(std::begin(waited), std::end(waited), Millis{0});
    outage.most_in = static_cast<WaitedIn>(std::max_element(std::begin(waited), std::end(waited)) - waited);
    return outage;
}

}  // namespace

void note_proof(Slot& slot, Millis now) noexcept {
    std::uint64_t none = 0;
    slot.proven.compare_exchange_strong(none, now, kRelaxed);
}

void forget_proof(Slot& slot) noexcept {
    slot.proven.store(0, kRelaxed);
}

void note_first_probe(Slot& slot, Millis idle, Millis now) noexcept {
    std::uint64_t proven = slot.proven.load(kRelaxed);
    if (proven == 0 || proven >= now) return;
    slot.proven.compare_exchange_strong(proven, proven + std::min(idle, now - proven), kRelaxed);
}

void note_end_of_outage(Slot& slot, std::uint64_t number, const core::Policy& policy, const Process& process) noexcept {
    HistoryEntry entries[kHistory];
    const std::uint32_t count = read_history(slot, number, entries);
    const Millis proven = slot.proven.exchange(0, kRelaxed);
    if (count == 0) return;
    const Outage outage = outage_of({entries, count}, number, proven & core::kTimeMask, policy);
    if (outage.lasted == 0) return;
    note_duration(slot.outage_duration, outage.lasted, kOutageBounds);
    note_duration(slot.outage_waiting, outage.waited, kOutageBounds);
    if (!core::is_too_cautious(outage)) {
        slot.too_cautious.store(0, kRelaxed);
        return;
    }
    // Said once, until an outage is not like that. The exchange alone decides who says it.
    const bool is_news = slot.too_cautious.exchange(core::pack(outage), kRelaxed) == 0;
    if (is_news && process.observer != nullptr) process.observer->on_too_cautious(slot, outage, policy);
}

}  // namespace cb::shm
