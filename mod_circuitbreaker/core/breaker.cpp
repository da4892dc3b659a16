#include "breaker.hpp"

#include <algorithm>
#include <bit>

namespace cb::core {
namespace {

Word renewed(const Word& from, State state) noexcept {
    Word word;
    word.state = state;
    word.level = from.level;
    word.generation = (from.generation + 1) & kGenerationMask;
    return word;
}

Step unchanged(std::uint64_t word, Decision decision, Reason reason = Reason::none) noexcept {
    return {word, decision, false, reason};
}

Step stepped(const Word& word, Decision decision) noexcept {
    return {pack(word), decision, false, Reason::none};
}

Step moved(const Word& word, Decision decision, Reason reason, Millis open_for = 0) noexcept {
    return {pack(word), decision, true, reason, open_for};
}

Step open(const Word& from, std::uint32_t level, Reason reason, const Event& event, const Policy& policy,
          Millis now) noexcept {
    Word word = renewed(from, State::open);
    word.level = static_cast<std::uint8_t>(std::min(level, kMaxLevel));
    Millis time = open_time_at(policy.open_time, word.level + (event.longer ? 1U : 0U), event.draw);
    if (policy.open_time.retry_after) {
        time = std::max(time, std::min(event.least_open_time, policy.open_time.max));
    }
    word.open_until = now + time;
    return moved(word, Decision::counted, reason, time);
}

/// A round that failed. An early one leaves level and open time as they were.
Step reopen(const Word& from, std::uint32_t level, Reason reason, const Event& event, const Policy& policy,
            Millis now) noexcept {
    if (!from.early) return open(from, level, reason, event, policy, now);
    Word word = renewed(from, State::open);
    word.open_until = event.interrupted;
    return {pack(word), Decision::counted, false, reason, open_remaining(word, now)};
}

Step close_after_ramp(const Word& from) noexcept {
    Word word;
    word.level = from.level;
    word.generation = from.generation;
    word.consecutive = from.consecutive;
    word.tripped = true;
    return moved(word, Decision::again, Reason::ramp_over);
}

bool ramp_is_over(const Word& word, const Policy& policy, Millis now) noexcept {
    return ramp_elapsed(word, policy.ramp_up, now) >= policy.ramp_up.duration;
}

Step admit(std::uint64_t bits, const Word& word, const Event& event, const Policy& policy, Millis now) noexcept {
    switch (word.state) {
        case State::closed:
        case State::forced_closed:
            return unchanged(bits, Decision::pass);
        case State::recovering: {
            if (ramp_is_over(word, policy, now)) return close_after_ramp(word);
            const std::uint32_t share = ramp_share(policy.ramp_up, ramp_elapsed(word, policy.ramp_up, now));
            return unchanged(bits, event.draw >> 16 < share ? Decision::pass : Decision::refuse);
        }
        case State::open:
        case State::half_open:
            return unchanged(bits, probe_room(word, policy, now, event.early) > 0 ? Decision::probe : Decision::refuse);
        case State::forced_open:
            break;
    }
    return unchanged(bits, Decision::refuse);
}

Step admit_probe(std::uint64_t bits, const Word& word, const Event& event, const Policy& policy, Millis now) noexcept {
    const auto bit = static_cast<std::uint16_t>(1U << (event.slot & 15U));
    const bool is_due = open_remaining(word, now) == 0;
    if (word.state == State::open && (is_due || event.early)) {
        Word half_open = renewed(word, State::half_open);
        half_open.slots = bit;
        half_open.round = static_cast<std::uint8_t>(
            std::clamp(event.round > 0 ? std::uint32_t{event.round} : policy.probes.round, 1U, kMaxProbes));
        half_open.early = !is_due;
        return {pack(half_open), Decision::probe, is_due, is_due ? Reason::open_time_over : Reason::no_other_member};
    }
    if (word.state == State::half_open && (word.slots & bit) == 0 && probe_room(word, policy, now, event.early) > 0) {
        Word taken = word;
        taken.slots = static_cast<std::uint16_t>(taken.slots | bit);
        return stepped(taken, Decision::probe);
    }
    if (word.state == State::open || word.state == State::half_open) return unchanged(bits, Decision::refuse);
    return admit(bits, word, event, policy, now);
}

/// Opens a closed or recovering breaker. MaxOpen is asked only if it can refuse that.
Step trip(std::uint64_t bits, const Word& word, Reason reason, const Event& event, const Policy& policy,
          Millis now) noexcept {
    if (policy.max_open < 100 && event.max_open == MaxOpen::unasked) return unchanged(bits, Decision::ask_max_open);
    if (policy.max_open < 100 && event.max_open == MaxOpen::denied) {
        return {pack(word), Decision::suppressed, false, reason};
    }
    const bool reopening =
        word.state == State::recovering || (word.tripped && word.successes_since_closing < policy.minimum_calls);
    return open(word, reopening ? word.level + 1U : 0U, reason, event, policy, now);
}

/// A result in closed or recovering whose permit is of this generation.
Step weigh(std::uint64_t bits, const Word& word, const Event& event, const Policy& policy, Millis now) noexcept {
    Word counted = word;
    Reason reason = Reason::none;
    switch (event.verdict) {
        case Verdict::fatal:
            reason = Reason::fatal;
            break;
        case Verdict::failure:
        case Verdict::tolerate:
            counted.consecutive = std::min(word.consecutive + 1, kMaxConsecutiveFailures);
            if (policy.consecutive_failures > 0 && counted.consecutive >= policy.consecutive_failures) {
                reason = Reason::consecutive_failures;
            }
            break;
        case Verdict::success:
            counted.consecutive = 0;
            if (word.state == State::closed && word.tripped) {
                counted.successes_since_closing = std::min(word.successes_since_closing + 1, kMaxSuccessesSinceClosing);
                if (counted.successes_since_closing >= policy.minimum_calls) {
                    counted.tripped = false;  // proven well: the next trip is a first one again
                    counted.successes_since_closing = 0;
                    counted.level = 0;
                }
            }
            break;
        case Verdict::ignore:
            break;
    }
    const bool is_evidence = event.slow || event.verdict == Verdict::failure || event.verdict == Verdict::tolerate;
    if (reason == Reason::none && is_evidence) reason = evidence(event.sums, policy);
    if (reason != Reason::none) return trip(bits, counted, reason, event, policy, now);
    return stepped(counted, Decision::counted);
}

Step settle_probe(std::uint64_t bits, const Word& word, const Event& event, const Policy& policy, Millis now) noexcept {
    const auto bit = static_cast<std::uint16_t>(1U << (event.slot & 15U));
    if (word.state != State::half_open || (word.slots & bit) == 0) return unchanged(bits, Decision::ignored);
    Word settled = word;
    settled.slots = static_cast<std::uint16_t>(settled.slots & ~bit);
    if (event.verdict == Verdict::fatal) return reopen(word, word.level + 1U, Reason::fatal, event, policy, now);
    if (event.verdict == Verdict::failure || event.slow) {
        if (word.failures + 1U > tolerated(policy.probes, word.round)) {
            return reopen(word, word.level + 1U, Reason::probe_failed, event, policy, now);
        }
        ++settled.failures;
    } else if (event.verdict == Verdict::success) {
        ++settled.successes;
        if (settled.successes >= needed(policy.probes, word.round)) {
            Word well = renewed(word, policy.ramp_up.duration > 0 ? State::recovering : State::closed);
            if (well.state == State::recovering) {
                well.ramp_start = static_cast<std::uint32_t>(now / kRampUnit) & ((1U << 26) - 1);
            } else {
                well.tripped = true;
            }
            return moved(well, Decision::counted, Reason::probes_succeeded);
        }
    } else if (!event.by_client) {
        if (word.neutral + 1U >= kMaxNeutral) return reopen(word, word.level, Reason::no_evidence, event, policy, now);
        ++settled.neutral;
    }
    return stepped(settled, Decision::counted);
}

Step operate(std::uint64_t bits, const Word& word, EventKind kind) noexcept {
    State to = State::closed;
    Reason reason = Reason::reset;
    if (kind == EventKind::force_open || kind == EventKind::force_closed) {
        to = kind == EventKind::force_open ? State::forced_open : State::forced_closed;
        reason = Reason::forced;
        if (word.state == to) return unchanged(bits, Decision::ignored);
    }
    const bool is_forced = word.state == State::forced_open || word.state == State::forced_closed;
    if (kind == EventKind::automatic && !is_forced) return unchanged(bits, Decision::ignored);
    Word moved_to = renewed(word, to);
    moved_to.level = 0;
    Step step = moved(moved_to, Decision::counted, reason);
    step.transition = word.state != to;  // a reset of a closed breaker clears its history and is no change of state
    return step;
}

}  // namespace

std::uint32_t probe_room(const Word& word, const Policy& policy, Millis now, bool is_last_resort) noexcept {
    if (word.state == State::open) {
        return is_last_resort || open_remaining(word, now) == 0 ? std::max(policy.probes.concurrent, 1U) : 0;
    }
    if (word.state != State::half_open) return 0;
    const auto in_flight = static_cast<std::uint32_t>(std::popcount(word.slots));
    const std::uint32_t promising = in_flight + word.successes;  // those that may still become successes, and have
    const std::uint32_t admitted = promising + word.failures;
    const std::uint32_t round = std::max<std::uint32_t>(word.round, 1);
    const std::uint32_t concurrent = std::clamp(policy.probes.concurrent, 1U, kMaxConcurrent);
    if (in_flight >= concurrent) return 0;
    if (is_last_resort) return concurrent - in_flight;
    // A failed probe is replaced only if the round could not end otherwise. One probe there always is: a round that
    // began under a policy that needed more successes ends with the next one.
    const std::uint32_t wanted = needed(policy.probes, round);
    std::uint32_t room = in_flight == 0 ? 1 : 0;
    if (round > admitted) room = std::max(room, round - admitted);
    if (wanted > promising) room = std::max(room, wanted - promising);
    return std::min(room, concurrent - in_flight);
}

bool has_waited_in_vain(const Word& word, const Policy& policy, Millis probed_at, Millis now) noexcept {
    if (word.state != State::open && word.state != State::half_open) return false;
    Millis waited = now > probed_at ? now - probed_at : 0;  // another process's clock reading may be later than ours
    // A half-open one was probed when it became so: its last probe says it all.
    if (word.state == State::open) waited = std::min(waited, due_for(word, now));
    constexpr std::uint32_t kNoJitter = 1U << 31U;
    return waited >= open_time_at(policy.open_time, word.level, kNoJitter);
}

Reason evidence(const Sums& sums, const Policy& policy) noexcept {
    if (policy.failure_rate > 0 && sums.calls >= policy.minimum_calls &&
        std::uint64_t{sums.failures} * 100 >= std::uint64_t{policy.failure_rate} * sums.calls && sums.failures > 0) {
        return Reason::failure_rate;
    }
    if (policy.failure_count > 0 && sums.calls >= policy.minimum_calls && sums.failures >= policy.failure_count) {
        return Reason::failure_count;
    }
    if (policy.slow_call.has_rate() && sums.timed_calls >= policy.minimum_calls &&
        std::uint64_t{sums.slow_calls} * 100 >= std::uint64_t{policy.slow_call.rate} * sums.timed_calls &&
        sums.slow_calls > 0) {
        return Reason::slow_rate;
    }
    return Reason::none;
}

Step next(std::uint64_t bits, const Event& event, const Policy& policy, Millis now) noexcept {
    const Word word = unpack(bits);
    switch (event.kind) {
        case EventKind::admit:
            return admit(bits, word, event, policy, now);
        case EventKind::admit_probe:
            return admit_probe(bits, word, event, policy, now);
        case EventKind::result:
            if (event.late || event.generation != word.generation) return unchanged(bits, Decision::ignored);
            if (word.state != State::closed && word.state != State::recovering) {
                return unchanged(bits, Decision::ignored);
            }
            if (word.state == State::recovering && ramp_is_over(word, policy, now)) return close_after_ramp(word);
            return weigh(bits, word, event, policy, now);
        case EventKind::settle_probe:
            return settle_probe(bits, word, event, policy, now);
        case EventKind::force_open:
        case EventKind::force_closed:
        case EventKind::reset:
        case EventKind::automatic:
            return operate(bits, word, event.kind);
        case EventKind::reshape: {
            Word reshaped = word;
            reshaped.generation = (word.generation + 2) & kGenerationMask;  // no reset: see is_change()
            return stepped(reshaped, Decision::counted);
        }
        case EventKind::end_open_time: {
            if (word.state != State::open || event.generation != word.generation || open_remaining(word, now) == 0) {
                return unchanged(bits, Decision::ignored);
            }
            Word due = word;
            due.open_until = now;
            return stepped(due, Decision::counted);
        }
    }
    return unchanged(bits, Decision::ignored);
}

const char* name(Reason reason) noexcept {
    switch (reason) {
        case Reason::none:
            return "none";
        case Reason::failure_rate:
            return "failure rate";
        case Reason::slow_rate:
            return "slow call rate";
        case Reason::consecutive_failures:
            return "consecutive failures";
        case Reason::fatal:
            return "fatal outcome";
        case Reason::open_time_over:
            return "open time over";
        case Reason::no_other_member:
            return "probed early: no other member";
        case Reason::probe_failed:
            return "probe failed";
        case Reason::no_evidence:
            return "probes proved nothing";
        case Reason::probes_succeeded:
            return "probes succeeded";
        case Reason::ramp_over:
            return "ramp over";
        case Reason::forced:
            return "operator";
        case Reason::reset:
            return "operator reset";
        case Reason::failure_count:
            return "failure count";
    }
    return "unknown";
}

}  // namespace cb::core
