// A second implementation of the state machine to compare next() with: in plain variables, without packed bits.
//
// It says what the step must be and then takes it. Only the open time and the ramp's share come from the core; they
// have tests of their own.
#ifndef CIRCUITBREAKER_TESTS_UNIT_REFERENCE_HPP
#define CIRCUITBREAKER_TESTS_UNIT_REFERENCE_HPP

#include <bitset>
#include <cmath>

#include "vocabulary.hpp"

namespace cb::test {

class Reference {
  public:
    struct Answer {
        Decision decision;
        bool transition = false;
        friend bool operator==(const Answer&, const Answer&) = default;
    };

    explicit Reference(std::uint64_t generation) : generation_(generation) {}

    /// What the event does; `open_for` is how long the breaker stays open if it opens.
    Answer take(const Event& event, const Policy& policy, Millis now, Millis open_for) {
        switch (event.kind) {
            case EventKind::admit:
            case EventKind::admit_probe:
                return admit(event, policy, now);
            case EventKind::result:
                return result(event, policy, now, open_for);
            case EventKind::settle_probe:
                return settle(event, policy, now, open_for);
            case EventKind::force_open:
                return force(State::forced_open);
            case EventKind::force_closed:
                return force(State::forced_closed);
            case EventKind::reset:
                return clear();
            case EventKind::automatic:
                return is_forced() ? clear() : Answer{Decision::ignored};
            case EventKind::reshape:
                generation_ += 2;
                return {Decision::counted};
            case EventKind::end_open_time:
                if (state_ != State::open || now >= open_until_) return {Decision::ignored};
                if (event.generation != generation_ % (1U << 20)) return {Decision::ignored};
                open_until_ = now;
                return {Decision::counted};
        }
        return {Decision::ignored};
    }

    /// The word that a breaker in this state must have.
    [[nodiscard]] Word word() const {
        Word word;
        word.state = state_;
        word.level = static_cast<std::uint8_t>(level_);
        word.generation = static_cast<std::uint32_t>(generation_ % (1U << 20));
        if (state_ == State::closed || state_ == State::recovering) word.consecutive = consecutive_;
        if (state_ == State::closed) {
            word.tripped = !is_proven_;
            word.successes_since_closing = successes_since_closing_;
        }
        if (state_ == State::open) word.open_until = open_until_ % (1ULL << 36);
        if (state_ == State::recovering) {
            word.ramp_start = static_cast<std::uint32_t>(ramp_start_ / 64 % (1U << 26));
        }
        if (state_ == State::half_open) {
            word.slots = static_cast<std::uint16_t>(slots_.to_ulong());
            word.round = static_cast<std::uint8_t>(round_);
            word.successes = static_cast<std::uint8_t>(successes_);
            word.failures = static_cast<std::uint8_t>(failures_);
            word.neutral = static_cast<std::uint8_t>(neutral_);
            word.early = is_early_;
        }
        return word;
    }

  private:
    [[nodiscard]] bool is_forced() const { return state_ == State::forced_open || state_ == State::forced_closed; }

    void enter(State state) {
        state_ = state;
        ++generation_;
        consecutive_ = 0;
        successes_since_closing_ = 0;
    }

    Answer open(std::uint32_t level, Millis now, Millis open_for) {
        enter(State::open);
        level_ = std::min(level, 31U);
        open_until_ = now + open_for;
        return {Decision::counted, true};
    }

    /// A round has failed. An early one has never been, but for the generation.
    Answer reopen(std::uint32_t level, Millis now, Millis open_for) {
        if (!is_early_) return open(level, now, open_for);
        enter(State::open);
        return {Decision::counted};
    }

    Answer force(State state) {
        if (state_ == state) return {Decision::ignored};
        enter(state);
        level_ = 0;
        return {Decision::counted, true};
    }

    Answer clear() {
        const bool is_change = state_ != State::closed;
        enter(State::closed);
        level_ = 0;
        is_proven_ = true;
        return {Decision::counted, is_change};
    }

    [[nodiscard]] bool is_ramp_over(const Policy& policy, Millis now) const {
        return ramp_so_far(now) >= policy.ramp_up.duration;
    }
    [[nodiscard]] Millis ramp_so_far(Millis now) const { return (now / 64 - ramp_start_ / 64) * 64; }

    Answer end_ramp() {
        state_ = State::closed;  // the same generation, the same count
        is_proven_ = false;
        successes_since_closing_ = 0;
        return {Decision::again, true};
    }

    Answer admit(const Event& event, const Policy& policy, Millis now) {
        const bool has_lease = event.kind == EventKind::admit_probe;
        switch (state_) {
            case State::closed:
            case State::forced_closed:
                return {Decision::pass};
            case State::forced_open:
                return {Decision::refuse};
            case State::recovering:
                if (is_ramp_over(policy, now)) return end_ramp();
                return {event.draw / 65536 < ramp_share(policy.ramp_up, ramp_so_far(now)) ? Decision::pass
                                                                                          : Decision::refuse};
            case State::open:
                if (now < open_until_ && !event.early) return {Decision::refuse};
                if (!has_lease) return {Decision::probe};
                enter(State::half_open);
                slots_.reset();
                slots_.set(event.slot);
                round_ = event.round > 0 ? event.round : policy.probes.round;
                successes_ = failures_ = neutral_ = 0;
                is_early_ = now < open_until_;
                return {Decision::probe, !is_early_};
            case State::half_open:
                if (!event.early && !has_round_for_more(policy)) return {Decision::refuse};
                if (slots_.count() >= policy.probes.concurrent) return {Decision::refuse};
                if (!has_lease) return {Decision::probe};
                if (slots_.test(event.slot)) return {Decision::refuse};
                slots_.set(event.slot);
                return {Decision::probe};
        }
        return {Decision::refuse};
    }

    /// At least one success; none fewer than the round has probes that may not fail.
    [[nodiscard]] std::uint32_t needed(const Policy& policy) const {
        const Probes& probes = policy.probes;
        double wanted = probes.successes;
        if (probes.is_successes_share) wanted = std::ceil(round_ * probes.successes / 100.0);
        if (probes.successes == 0) wanted = round_ - 1.0 * tolerated(policy);
        return static_cast<std::uint32_t>(std::max(1.0, std::min<double>(wanted, round_)));
    }
    [[nodiscard]] std::uint32_t tolerated(const Policy& policy) const {
        const double share = policy.probes.is_tolerate_share ? round_ / 100.0 : 1.0;
        return std::min(15U, static_cast<std::uint32_t>(std::floor(share * policy.probes.tolerate + 1e-9)));
    }
    /// The round has probes left; or it can't succeed without one more; or nothing else will end it.
    [[nodiscard]] bool has_round_for_more(const Policy& policy) const {
        const std::size_t at_most = slots_.count() + successes_;
        return slots_.none() || at_most < needed(policy) || at_most + failures_ < round_;
    }

    static bool is_rate_reached(std::uint32_t bad, std::uint32_t calls, std::uint32_t percent, const Policy& policy) {
        return calls >= policy.minimum_calls && bad > 0 && 100.0 * bad >= 1.0 * percent * calls;
    }

    Answer result(const Event& event, const Policy& policy, Millis now, Millis open_for) {
        if (event.late || event.generation != generation_ % (1U << 20)) return {Decision::ignored};
        if (state_ != State::closed && state_ != State::recovering) return {Decision::ignored};
        if (state_ == State::recovering && is_ramp_over(policy, now)) return end_ramp();
        const bool is_failure = event.verdict == Verdict::failure || event.verdict == Verdict::tolerate;
        const std::uint32_t in_a_row = consecutive_ + 1;
        bool trips = event.verdict == Verdict::fatal;
        if (is_failure && policy.consecutive_failures > 0) trips |= in_a_row >= policy.consecutive_failures;
        if (is_failure || event.slow) {
            const Sums& sums = event.sums;
            if (policy.failure_rate > 0) {
                trips |= is_rate_reached(sums.failures, sums.calls, policy.failure_rate, policy);
            }
            if (policy.failure_count > 0 && sums.calls >= policy.minimum_calls) {
                trips |= sums.failures >= policy.failure_count;
            }
            if (policy.slow_call.threshold > 0 && policy.slow_call.rate > 0) {
                trips |= is_rate_reached(sums.slow_calls, sums.timed_calls, policy.slow_call.rate, policy);
            }
        }
        const bool can_be_denied = policy.max_open < 100;
        if (trips && can_be_denied && event.max_open == MaxOpen::unasked) return {Decision::ask_max_open};
        if (is_failure) consecutive_ = std::min(in_a_row, 1023U);
        if (event.verdict == Verdict::success) count_success(policy);
        if (!trips) return {Decision::counted};
        if (can_be_denied && event.max_open == MaxOpen::denied) return {Decision::suppressed};
        const bool is_first =
            state_ == State::closed && (is_proven_ || successes_since_closing_ >= policy.minimum_calls);
        return open(is_first ? 0 : level_ + 1, now, open_for);
    }

    void count_success(const Policy& policy) {
        consecutive_ = 0;
        if (state_ != State::closed || is_proven_) return;
        if (++successes_since_closing_ < policy.minimum_calls) return;
        is_proven_ = true;
        successes_since_closing_ = 0;
        level_ = 0;
    }

    Answer settle(const Event& event, const Policy& policy, Millis now, Millis open_for) {
        if (state_ != State::half_open || !slots_.test(event.slot)) return {Decision::ignored};
        slots_.reset(event.slot);
        if (event.verdict == Verdict::fatal) return reopen(level_ + 1, now, open_for);
        if (event.verdict == Verdict::failure || event.slow) {
            if (++failures_ > tolerated(policy)) return reopen(level_ + 1, now, open_for);
        } else if (event.verdict != Verdict::success) {
            if (++neutral_ == 15) return reopen(level_, now, open_for);
        } else if (++successes_ >= needed(policy)) {
            enter(policy.ramp_up.duration > 0 ? State::recovering : State::closed);
            ramp_start_ = now;
            is_proven_ = false;
            return {Decision::counted, true};
        }
        return {Decision::counted};
    }

    State state_ = State::closed;
    std::uint32_t level_ = 0;
    std::uint64_t generation_;
    std::uint32_t consecutive_ = 0;
    bool is_proven_ = true;
    std::uint32_t successes_since_closing_ = 0;
    Millis open_until_ = 0;
    Millis ramp_start_ = 0;
    bool is_early_ = false;  // half-open
    std::bitset<16> slots_;
    std::uint32_t round_ = 0;
    std::uint32_t successes_ = 0;
    std::uint32_t failures_ = 0;
    std::uint32_t neutral_ = 0;
};

}  // namespace cb::test

#endif
