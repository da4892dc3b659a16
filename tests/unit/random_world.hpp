// A server that never was: random policies, a fake clock, a table of leases, calls and probes under way, and whatever
// can befall them. It plays the part of shm/ around next() and shows every step to a visitor.
#ifndef CIRCUITBREAKER_TESTS_UNIT_RANDOM_WORLD_HPP
#define CIRCUITBREAKER_TESTS_UNIT_RANDOM_WORLD_HPP

#include <array>
#include <optional>
#include <random>
#include <vector>

#include "vocabulary.hpp"

namespace cb::test {

/// One call of next().
struct Seen {
    int number;
    std::uint64_t bits;  // before
    Event event;
    const Policy& policy;
    Millis now;
    Step step;
};

class RandomWorld {
  public:
    explicit RandomWorld(std::uint64_t seed) : random_(seed) {
        policy_ = some_policy();
        // Some begin where a field will soon wrap.
        generation_ = one_in(4) ? kGenerationMask - upto(3) : upto(kGenerationMask);
        now_ = one_in(4) ? (Millis{1} << 36) - upto(100'000) : upto(kDay);
        bits_ = pack(fresh_closed(generation_));
    }

    [[nodiscard]] std::uint32_t first_generation() const { return generation_; }

    /// Lets so many things happen; stops at the first fatal failure of the visitor's expectations.
    template <typename Visit>
    void live(int happenings, Visit visit) {
        for (int i = 0; i < happenings && !::testing::Test::HasFatalFailure(); ++i) {
            happen([&](const Event& event) { return carry_out(event, visit); });
        }
    }

  private:
    struct Call {
        std::uint32_t generation;
    };

    std::uint32_t upto(std::uint64_t most) {
        return static_cast<std::uint32_t>(std::uniform_int_distribution<std::uint64_t>(0, most)(random_));
    }
    std::uint32_t between(std::uint32_t least, std::uint32_t most) { return least + upto(most - least); }
    bool one_in(std::uint32_t n) { return upto(n - 1) == 0; }

    Policy some_policy() {
        Policy policy;
        policy.mode = Mode::on;
        policy.minimum_calls = one_in(3) ? 1 : between(2, 30);
        policy.consecutive_failures = one_in(3) ? 0 : between(1, 8);
        policy.failure_rate = policy.consecutive_failures > 0 && one_in(3) ? 0 : between(1, 100);
        if (one_in(3)) policy.failure_count = between(1, 12);
        if (one_in(2)) policy.slow_call = {200, one_in(5) ? 0 : between(1, 100)};
        const std::uint32_t factors[] = {1000, 1500, 2000, 3000, 100'000};
        const Millis base = one_in(5) ? between(100, static_cast<std::uint32_t>(kDay)) : between(100, 3000);
        policy.open_time = {base, base + upto(kDay - base), factors[upto(4)], upto(100), one_in(2)};
        policy.max_open = one_in(3) ? 50 : 100;
        const std::uint32_t round = one_in(6) ? between(1, kMaxProbes) : between(1, 6);
        policy.probes.round = round;
        policy.probes.concurrent = between(1, std::min(round, kMaxConcurrent));
        policy.probes.tolerate = one_in(2) ? 0 : upto(kMaxTolerate);
        policy.probes.successes = one_in(3) ? 0 : between(1, round);
        if (one_in(3)) policy.probes.is_tolerate_share = true, policy.probes.tolerate = upto(100);
        if (one_in(4)) policy.probes.is_successes_share = true, policy.probes.successes = between(1, 100);
        policy.probes.max = round;
        if (one_in(2)) policy.ramp_up = {one_in(5) ? kDay : between(100, 5000), upto(100)};
        return policy;
    }

    Verdict some_verdict() {
        if (upto(99) < health_) return Verdict::success;
        if (is_neutral_) return one_in(2) ? Verdict::ignore : Verdict::tolerate;
        constexpr Verdict kOthers[] = {Verdict::failure,  Verdict::failure, Verdict::failure, Verdict::tolerate,
                                       Verdict::tolerate, Verdict::ignore,  Verdict::ignore,  Verdict::fatal};
        return kOthers[upto(is_fatal_possible_ ? 7 : 6)];
    }

    bool is_slow() { return policy_.slow_call.has_rate() && !is_neutral_ && upto(99) >= health_; }

    template <typename Carry>
    void happen(Carry carry) {
        now_ += upto(20);
        const std::uint32_t what = upto(999);
        if (what < 350) return request(carry);
        if (what < 650) return end_a_call(carry);
        if (what < 850) return end_a_probe(carry, some_verdict());
        if (what < 880) return end_a_probe(carry, Verdict::ignore);  // its child died
        if (what < 890) return void(carry(probe_ended(upto(15), some_verdict())));
        if (what < 900) return stray_result(carry);
        if (what < 920) return void(now_ += upto(3000));
        if (what < 960) return void(now_ += open_remaining(unpack(bits_), now_));
        if (what < 963) return void(now_ += upto(2 * kDay));
        if (what < 966) return void(carry(of_kind(EventKind::force_open)));
        if (what < 969) return void(carry(of_kind(EventKind::force_closed)));
        if (what < 970) return void(carry(of_kind(EventKind::reset)));
        if (what < 980) return void(carry(of_kind(EventKind::automatic)));
        if (what < 983) return void(carry(end_of_open_time(generation_of(bits_) - (one_in(4) ? 1 : 0))));
        if (what < 986) return void(carry(of_kind(EventKind::reshape)));
        if (what < 989) return void(policy_ = some_policy());
        if (what < 991) return void(sums_ = {});  // the window has passed
        health_ = one_in(3) ? 100 : upto(99);
        is_fatal_possible_ = one_in(4);
        is_neutral_ = one_in(8);
        if (is_neutral_) health_ = 0;
    }

    template <typename Carry>
    void request(Carry carry) {
        Event asked = asks(upto(~0U));
        asked.early = one_in(8);  // it finds no other member
        Decision decision = carry(asked);
        if (decision == Decision::probe) {
            std::vector<unsigned> free;
            for (unsigned i = 0; i < policy_.probes.concurrent; ++i) {
                if (!is_leased_[i]) free.push_back(i);
            }
            if (free.empty()) return;  // no lease, no probe
            const unsigned slot = free[upto(free.size() - 1)];
            Event event = asks_with_lease(slot, one_in(5) ? static_cast<std::uint8_t>(between(1, kMaxProbes)) : 0);
            event.draw = upto(~0U);
            event.early = asked.early;
            decision = carry(event);
            is_leased_[slot] = decision == Decision::probe;
        }
        if (decision == Decision::pass) calls_.push_back({generation_of(bits_)});
    }

    Event of_call(std::uint32_t generation) {
        Event event = ended(some_verdict());
        event.generation = generation;
        event.slow = is_slow();
        event.draw = upto(~0U);
        event.least_open_time = one_in(4) ? upto(2 * kDay) : 0;
        return event;
    }

    template <typename Carry>
    void end_a_call(Carry carry) {
        if (calls_.empty()) return;
        const std::size_t which = upto(calls_.size() - 1);
        const Event event = of_call(calls_[which].generation);
        calls_[which] = calls_.back();
        calls_.pop_back();
        if (one_in(50)) return;  // its child died
        write_window(event);
        carry(event);
    }

    template <typename Carry>
    void stray_result(Carry carry) {
        Event event = of_call(one_in(2) ? upto(kGenerationMask) : generation_of(bits_));
        event.late = event.generation == generation_of(bits_);
        carry(event);
    }

    template <typename Carry>
    void end_a_probe(Carry carry, Verdict verdict) {
        std::vector<unsigned> leased;
        for (unsigned i = 0; i < is_leased_.size(); ++i) {
            if (is_leased_[i]) leased.push_back(i);
        }
        if (leased.empty()) return;
        const unsigned slot = leased[upto(leased.size() - 1)];
        Event event = probe_ended(slot, verdict, is_slow());
        event.draw = upto(~0U);
        event.least_open_time = one_in(4) ? upto(2 * kDay) : 0;
        carry(event);
        is_leased_[slot] = false;
    }

    void write_window(const Event& event) {
        if (event.generation != generation_of(bits_)) return;
        if (event.verdict == Verdict::ignore && !event.slow) return;
        sums_.calls += 1;
        sums_.failures += event.verdict != Verdict::success && event.verdict != Verdict::ignore;
        if (!policy_.slow_call.has_rate()) return;
        sums_.timed_calls += 1;
        sums_.slow_calls += event.slow;
    }

    template <typename Visit>
    Decision carry_out(Event event, Visit& visit) {
        for (;;) {
            event.sums = sums_;
            event.interrupted = is_early(bits_) ? interrupted_ : 0;
            const Step step = next(bits_, event, policy_, now_);
            visit(Seen{number_++, bits_, event, policy_, now_, step});
            if (generation_of(step.word) != generation_of(bits_)) sums_ = {};
            if (is_early(step.word) && !is_early(bits_)) interrupted_ = unpack(bits_).open_until;
            bits_ = step.word;
            if (::testing::Test::HasFatalFailure()) return Decision::ignored;
            if (step.decision == Decision::ask_max_open) {
                event.max_open = one_in(3) ? MaxOpen::denied : MaxOpen::granted;
            } else if (step.decision != Decision::again) {
                return step.decision;
            }
        }
    }

    std::mt19937_64 random_;
    Policy policy_;
    Millis now_ = 0;
    std::uint32_t generation_ = 0;
    std::uint64_t bits_ = 0;
    std::vector<Call> calls_;
    std::array<bool, 16> is_leased_{};
    Sums sums_;
    Millis interrupted_ = 0;
    std::uint32_t health_ = 50;  // percent of calls that succeed in time
    bool is_fatal_possible_ = false;
    bool is_neutral_ = false;  // every probe proves nothing
    int number_ = 0;
};

}  // namespace cb::test

#endif
