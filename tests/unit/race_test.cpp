// Several threads, one word: next() and a CAS are all it takes for each change to be carried out by exactly one of
// them.
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "vocabulary.hpp"

namespace cb::test {
namespace {

constexpr unsigned kThreads = 6;
constexpr int kRounds = 60'000;

/// A change of generation, or the end of a ramp within one, as the thread that won it saw it.
struct Change {
    Word before;
    Word after;
    bool is_transition;
};

class Race {
  public:
    explicit Race(std::uint32_t generation) : first_(pack(fresh_closed(generation))), word_(first_) {
        policy_.mode = Mode::on;
        policy_.minimum_calls = 5;
        policy_.consecutive_failures = 3;
        policy_.open_time = {100, 400, 2000, 50, false};
        policy_.probes = {4, 3, 1, 3, 4};
        policy_.ramp_up = {256, 20};
    }

    void run() {
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < kThreads; ++i)
            threads.emplace_back([this, i] { live(i); });
        for (std::thread& thread : threads)
            thread.join();
    }

    [[nodiscard]] Word first() const { return unpack(first_); }
    [[nodiscard]] Word last() const { return unpack(word_.load()); }
    [[nodiscard]] const std::vector<Change>& changes() const { return changes_; }
    [[nodiscard]] int probes_taken() const { return taken_; }
    [[nodiscard]] int probes_too_many() const { return too_many_; }

  private:
    void live(unsigned seed) {
        std::mt19937 random(seed);  // the seeds are fixed, the order of the threads is not
        std::vector<Change> won;
        for (int round = 0; round < kRounds; ++round) {
            clock_.fetch_add(random() % 8);
            Event event = asks(static_cast<std::uint32_t>(random()));
            Decision decision = carry_out(event, won);
            const std::uint32_t generation = generation_of(word_.load());
            if (decision == Decision::probe) probe(random, won);
            if (decision == Decision::pass) {
                event = ended(random() % 3 == 0 ? Verdict::success : Verdict::failure);
                event.generation = generation;
                carry_out(event, won);
            }
            if (random() % 2000 == 0) carry_out(of_kind(EventKind::force_open), won);
            if (random() % 300 == 0) carry_out(of_kind(EventKind::automatic), won);
            if (random() % 2000 == 0) carry_out(of_kind(EventKind::reset), won);
            if (random() % 2000 == 0) carry_out(of_kind(EventKind::reshape), won);
            if (random() % 64 == 0) std::this_thread::yield();
        }
        const std::lock_guard lock(mutex_);
        changes_.insert(changes_.end(), won.begin(), won.end());
    }

    /// Takes a lease, then its slot of the round, and gives both back.
    void probe(std::mt19937& random, std::vector<Change>& won) {
        for (unsigned slot = 0; slot < policy_.probes.concurrent; ++slot) {
            if (leases_[slot].exchange(true)) continue;
            if (carry_out(asks_with_lease(slot), won) == Decision::probe) {
                taken_.fetch_add(1);
                std::this_thread::yield();
                carry_out(probe_ended(slot, random() % 4 == 0 ? Verdict::failure : Verdict::success), won);
            }
            leases_[slot].store(false);
            return;
        }
    }

    Decision carry_out(const Event& event, std::vector<Change>& won) {
        std::uint64_t seen = word_.load();
        for (;;) {
            const Step step = next(seen, event, policy_, clock_.load());
            if (step.word == seen) return step.decision;
            if (!word_.compare_exchange_strong(seen, step.word)) continue;
            const Word after = unpack(step.word);
            const auto in_flight = static_cast<std::uint32_t>(std::popcount(after.slots));
            const std::uint32_t promising = in_flight + after.successes;
            if (in_flight > policy_.probes.concurrent ||
                (promising + after.failures > after.round && promising > needed(policy_.probes, after.round))) {
                too_many_.fetch_add(1);
            }
            if (step.transition || generation_of(step.word) != generation_of(seen)) {
                won.push_back({unpack(seen), after, step.transition});
            }
            if (step.decision != Decision::again) return step.decision;
            seen = word_.load();
        }
    }

    Policy policy_;
    const std::uint64_t first_;
    std::atomic<std::uint64_t> word_;
    std::atomic<Millis> clock_{kNow};
    std::array<std::atomic<bool>, 16> leases_{};
    std::atomic<int> taken_{0};
    std::atomic<int> too_many_{0};
    std::mutex mutex_;
    std::vector<Change> changes_;
};

class RaceOfThreads : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(RaceOfThreads, WinsEachGenerationExactlyOnceAndLeavesNoGap) {
    Race race(GetParam());
    race.run();
    ASSERT_GT(race.changes().size(), 1000U);
    ASSERT_LT(race.changes().size(), kGenerationMask);  // else a number might come twice

    // By the generation each change began: its one beginner, and the one end of a ramp within it. (Another shape takes
    // two generations.)
    std::vector<const Change*> begun(2 * race.changes().size() + 1, nullptr);
    std::vector<const Change*> ramp_ended(2 * race.changes().size() + 1, nullptr);
    std::size_t generations = 0;
    for (const Change& change : race.changes()) {
        const std::size_t number = (change.after.generation - race.first().generation) & kGenerationMask;
        ASSERT_LT(number, begun.size()) << "a generation was skipped";
        const bool is_end_of_ramp = change.after.generation == change.before.generation;
        const Change*& place = is_end_of_ramp ? ramp_ended[number] : begun[number];
        ASSERT_EQ(place, nullptr) << "generation " << change.after.generation << " was won twice";
        place = &change;
        generations += (change.after.generation - change.before.generation) & kGenerationMask;
    }

    State state = State::closed;
    for (std::size_t number = 0; number <= generations; ++number) {
        if (number > 0) {
            const bool is_first_of_two = begun[number] == nullptr;
            if (is_first_of_two) ++number;
            ASSERT_LE(number, generations);
            ASSERT_NE(begun[number], nullptr) << "nobody won generation " << number;
            ASSERT_EQ(begun[number]->before.state, state) << number;
            const std::uint32_t took = is_first_of_two ? 2 : 1;
            ASSERT_EQ(begun[number]->after.generation, (begun[number]->before.generation + took) & kGenerationMask);
            ASSERT_EQ(is_change(pack(begun[number]->before), pack(begun[number]->after)), !is_first_of_two) << number;
            ASSERT_EQ(begun[number]->is_transition, begun[number]->after.state != state) << number;
            state = begun[number]->after.state;
        }
        if (ramp_ended[number] != nullptr) {
            ASSERT_EQ(state, State::recovering) << number;
            ASSERT_EQ(ramp_ended[number]->after.state, State::closed) << number;
            state = State::closed;
        }
    }
    EXPECT_EQ(race.last().state, state);
    EXPECT_EQ(race.last().generation, (race.first().generation + generations) & kGenerationMask);
}

TEST_P(RaceOfThreads, NeverHasMoreProbesUnderWayThanARoundAllowsAndGetsThemAllBack) {
    Race race(GetParam());
    race.run();
    EXPECT_GT(race.probes_taken(), 1000);
    EXPECT_EQ(race.probes_too_many(), 0);
    EXPECT_TRUE(race.last().state != State::half_open || race.last().slots == 0) << "a slot was never given back";
}

INSTANTIATE_TEST_SUITE_P(FromAnyGeneration, RaceOfThreads, ::testing::Values(0U, kGenerationMask - 500));

}  // namespace
}  // namespace cb::test
