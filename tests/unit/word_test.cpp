// The control word: where each field lies, how large it may grow, and how its times wrap.
#include "core/word.hpp"

#include <cstdint>
#include <random>
#include <set>
#include <string_view>

#include "vocabulary.hpp"

namespace cb::test {
namespace {

constexpr std::uint64_t kEverything = ~0ULL;
constexpr Millis kOpenUntilModulus = 1ULL << 36;
constexpr Millis kRampModulus = (1ULL << 26) * kRampUnit;

/// `width` ones whose lowest stands at `shift`.
constexpr std::uint64_t ones(unsigned width, unsigned shift) {
    return (kEverything >> (64 - width)) << shift;
}
constexpr std::uint64_t state_bits(State state) {
    return static_cast<std::uint64_t>(state) << 61;
}

Word of_state(State state) {
    Word word;
    word.state = state;
    return word;
}

TEST(Word, OfAllZeroesIsAClosedBreakerWithNoHistory) {
    EXPECT_EQ(unpack(0), Word{});
    EXPECT_EQ(unpack(0).state, State::closed);
    EXPECT_EQ(pack(Word{}), 0U);
    EXPECT_TRUE(is_quiet(0));
    EXPECT_EQ(next(0, asks(), default_policy(), kNow).decision, Decision::pass);
}

TEST(Word, HoldsStateLevelAndGenerationAboveThePayload) {
    for (const State state : kAllStates) {
        Word word = of_state(state);
        EXPECT_EQ(pack(word), state_bits(state)) << name(state);
        word.level = kMaxLevel;
        EXPECT_EQ(pack(word), state_bits(state) | ones(5, 56)) << name(state);
        word.generation = kGenerationMask;
        EXPECT_EQ(pack(word), state_bits(state) | ones(5, 56) | ones(20, 36)) << name(state);
        EXPECT_EQ(unpack(pack(word)), word);
        EXPECT_EQ(state_of(pack(word)), state);
        EXPECT_EQ(generation_of(pack(word)), kGenerationMask);
    }
}

/// One field of one state: set alone to its largest value it fills exactly its own bits and comes back.
template <typename Field>
void expect_field(State state, Field Word::*field, unsigned width, unsigned shift) {
    Word word = of_state(state);
    word.*field = static_cast<Field>(ones(width, 0));
    EXPECT_EQ(pack(word), state_bits(state) | ones(width, shift));
    EXPECT_EQ(unpack(pack(word)), word);
    for (unsigned bit = 0; bit < width; ++bit) {
        word.*field = static_cast<Field>(1ULL << bit);
        EXPECT_EQ(pack(word), state_bits(state) | (1ULL << (shift + bit)));
        EXPECT_EQ(unpack(pack(word)), word);
    }
}

TEST(Word, OfAClosedBreakerHoldsFailuresInARowAndHowFarItIsProvenWell) {
    expect_field(State::closed, &Word::consecutive, 10, 26);
    expect_field(State::closed, &Word::successes_since_closing, 25, 0);
    Word tripped;
    tripped.tripped = true;
    EXPECT_EQ(pack(tripped), 1ULL << 25);
    EXPECT_EQ(unpack(1ULL << 25), tripped);
}

TEST(Word, OfAnOpenBreakerHoldsTheEndOfItsOpenTime) {
    expect_field(State::open, &Word::open_until, 36, 0);
}

TEST(Word, OfAHalfOpenBreakerHoldsItsSlotsAndItsRound) {
    expect_field(State::half_open, &Word::slots, 16, 20);
    expect_field(State::half_open, &Word::round, 6, 14);
    expect_field(State::half_open, &Word::successes, 6, 8);
    expect_field(State::half_open, &Word::failures, 4, 4);
    expect_field(State::half_open, &Word::neutral, 4, 0);
}

TEST(Word, OfAnEarlyRoundHasAStateFieldOfItsOwnAndIsHalfOpen) {
    Word word = sample(State::half_open);
    const std::uint64_t plain = pack(word);
    EXPECT_FALSE(is_early(plain));
    word.early = true;
    EXPECT_EQ(pack(word), (plain & ones(61, 0)) | kEarlyCode << 61);
    EXPECT_EQ(unpack(pack(word)), word);
    EXPECT_TRUE(is_early(pack(word)));
    EXPECT_EQ(state_of(pack(word)), State::half_open);
    for (const State state : kAllStates) {
        if (state == State::half_open) continue;
        Word other = sample(state);
        other.early = true;  // no field of that state
        EXPECT_EQ(pack(other), pack(sample(state))) << name(state);
    }
}

TEST(Word, OfARecoveringBreakerHoldsTheStartOfItsRampAndFailuresInARow) {
    expect_field(State::recovering, &Word::ramp_start, 26, 10);
    expect_field(State::recovering, &Word::consecutive, 10, 0);
}

TEST(Word, OfAForcedBreakerHasNoPayload) {
    Word word = of_state(State::forced_open);
    word.consecutive = 5;
    word.open_until = 5;
    word.slots = 5;
    EXPECT_EQ(pack(word), state_bits(State::forced_open));
    EXPECT_EQ(unpack(state_bits(State::forced_closed) | ones(36, 0)), of_state(State::forced_closed));
}

TEST(Word, KeepsEveryFieldAtItsLargestValueBesideAllTheOthers) {
    for (const State state : {State::closed, State::open, State::half_open, State::recovering}) {
        const std::uint64_t full = state_bits(state) | ones(61, 0);
        EXPECT_EQ(pack(unpack(full)), full) << name(state);
    }
}

TEST(Word, ComesBackTheSameForAnyBitsOfTheStatesWithAPayload) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 100'000; ++i) {
        const std::uint64_t code = random() % 5;
        const std::uint64_t bits = (random() & ones(61, 0)) | (code == 4 ? kEarlyCode : code) << 61;
        ASSERT_EQ(pack(unpack(bits)), bits) << std::hex << bits;
        ASSERT_EQ(state_of(bits), unpack(bits).state);
        ASSERT_EQ(generation_of(bits), unpack(bits).generation);
    }
}

TEST(Word, DoesNotLetATimeThatOutgrowsItsFieldSpillIntoItsNeighbours) {
    Word open = of_state(State::open);
    open.open_until = kOpenUntilModulus + 5;
    EXPECT_EQ(pack(open), state_bits(State::open) | 5U);
    Word recovering = of_state(State::recovering);
    recovering.ramp_start = (1U << 26) + 5;
    EXPECT_EQ(unpack(pack(recovering)).ramp_start, 5U);
    EXPECT_EQ(generation_of(pack(recovering)), 0U);
}

TEST(Word, IsQuietOnlyWhenClosedWithNothingToWriteOnASuccess) {
    EXPECT_TRUE(is_quiet(pack(fresh_closed(0))));
    EXPECT_TRUE(is_quiet(pack(fresh_closed(kGenerationMask))));
    for (unsigned bit = 0; bit < 64; ++bit) {
        const bool is_of_generation = bit >= 36 && bit < 56;
        EXPECT_EQ(is_quiet(1ULL << bit), is_of_generation) << "bit " << bit;
    }
}

TEST(Word, NamesItsStatesAsLogsSpellThem) {
    EXPECT_STREQ(name(State::closed), "closed");
    EXPECT_STREQ(name(State::open), "open");
    EXPECT_STREQ(name(State::half_open), "half-open");
    EXPECT_STREQ(name(State::recovering), "recovering");
    EXPECT_STREQ(name(State::forced_open), "forced-open");
    EXPECT_STREQ(name(State::forced_closed), "forced-closed");
}

// ---- The end of an open time, 36 bits of milliseconds.

TEST(OpenTime, IsLeftUntilItsEndAndNotAMillisecondLonger) {
    const Word word = open_until(5000);
    EXPECT_EQ(open_remaining(word, 4000), 1000U);
    EXPECT_EQ(open_remaining(word, 4999), 1U);
    EXPECT_EQ(open_remaining(word, 5000), 0U);
    EXPECT_EQ(open_remaining(word, 5001), 0U);
    EXPECT_EQ(open_remaining(word, 5000 + 30 * kDay), 0U);
}

TEST(OpenTime, RunsOnWhereTheClockOutgrowsItsField) {
    for (const Millis turn : {kOpenUntilModulus, 5 * kOpenUntilModulus}) {
        const Word word = open_until(turn + 400);
        EXPECT_EQ(open_remaining(word, turn - 600), 1000U);
        EXPECT_EQ(open_remaining(word, turn), 400U);
        EXPECT_EQ(open_remaining(word, turn + 399), 1U);
        EXPECT_EQ(open_remaining(word, turn + 400), 0U);
        EXPECT_EQ(open_remaining(word, turn + 401), 0U);
    }
}

TEST(OpenTime, FurtherAheadThanTheLongestLegalOneHasPassed) {
    EXPECT_EQ(open_remaining(open_until(kNow + kMaxOpenTime), kNow), kMaxOpenTime);
    EXPECT_EQ(open_remaining(open_until(kNow + kMaxOpenTime + 1), kNow), 0U);
    EXPECT_EQ(open_remaining(open_until(kNow + kOpenUntilModulus / 2), kNow), 0U);
}

// ---- The start of a ramp, 26 bits of 64 ms.

Word ramp_from(Millis start) {
    Word word = of_state(State::recovering);
    word.ramp_start = static_cast<std::uint32_t>(start / kRampUnit % (1U << 26));
    return word;
}

TEST(Ramp, HasRunForTheTimeSinceItsStartAndNeverLongerThanItself) {
    const RampUp ramp{60'000, 10};
    const Millis start = 6400;
    EXPECT_EQ(ramp_elapsed(ramp_from(start), ramp, start), 0U);
    EXPECT_EQ(ramp_elapsed(ramp_from(start), ramp, start + 64), 64U);
    EXPECT_EQ(ramp_elapsed(ramp_from(start), ramp, start + 32'000), 32'000U);
    EXPECT_EQ(ramp_elapsed(ramp_from(start), ramp, start + 60'000 + 64), 60'000U);
    EXPECT_EQ(ramp_elapsed(ramp_from(start), ramp, start + 30 * kDay), 60'000U);
}

TEST(Ramp, ThatAnotherProcessWillBeginInAMomentHasNotRunAtAll) {
    const RampUp ramp{60'000, 10};
    for (const Millis ahead : {64U, 128U, 1'024U, 10'048U}) {
        EXPECT_EQ(ramp_elapsed(ramp_from(kNow + ahead), ramp, kNow), 0U) << ahead;
    }
    EXPECT_EQ(ramp_elapsed(ramp_from(64), ramp, 0), 0U);
}

TEST(Ramp, RunsOnWhereTheClockOutgrowsItsField) {
    const RampUp ramp{kDay, 10};
    for (const Millis turn : {kRampModulus, 7 * kRampModulus}) {
        EXPECT_EQ(ramp_elapsed(ramp_from(turn - 640), ramp, turn - 640), 0U);
        EXPECT_EQ(ramp_elapsed(ramp_from(turn - 640), ramp, turn), 640U);
        EXPECT_EQ(ramp_elapsed(ramp_from(turn - 640), ramp, turn + 640), 1280U);
        EXPECT_EQ(ramp_elapsed(ramp_from(turn), ramp, turn - 64), 0U);
        EXPECT_EQ(ramp_elapsed(ramp_from(turn - 640), ramp, turn + 2 * kDay), kDay);
    }
}

TEST(Ramp, WhoseStartIsFurtherAheadThanAnyClocksDisagreeIsOver) {
    const RampUp ramp{kDay, 10};
    EXPECT_EQ(ramp_elapsed(ramp_from(kNow + 2 * kDay), ramp, kNow), kDay);
    EXPECT_EQ(ramp_elapsed(ramp_from(kNow + kRampModulus / 2), ramp, kNow), kDay);
}

TEST(Ramp, SwitchedOffMeanwhileIsOver) {
    EXPECT_EQ(ramp_elapsed(ramp_from(kNow), RampUp{}, kNow), 0U);
    Word word = sample(State::recovering);
    EXPECT_EQ(apply(word, asks(kLargestDraw), default_policy()).decision, Decision::pass);
    EXPECT_EQ(word.state, State::closed);
}

}  // namespace
}  // namespace cb::test
