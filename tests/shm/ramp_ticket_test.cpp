// Tickets of a ramp: one for a request and a member, a session's own, and what comes between look and permit.
#include <gtest/gtest.h>

#include "shm/member.hpp"
#include "shm/newcomers.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::Decision;
using core::State;
using shm::PermitKind;
using shm::RampTicket;
using shm::Refusal;

/// A breaker whose probe may begin its ramp.
class Ticket : public testing::Test {
  protected:
    Ticket() : slot(world.add("http://a", rules)) {
        rules.probes = {1, 1, 0, 1, 1};
        rules.ramp_up = {100'000, 20};
        call(slot, rules, one, kFatal);
        world.pass(1000);
    }
    void recover() {
        ASSERT_TRUE(call(slot, rules, one, kGood));
        ASSERT_EQ(state_of(slot), State::recovering);
    }
    [[nodiscard]] shm::Admission admit(RampTicket* ticket) {
        return shm::admit(slot, rules, one, {}, true, kLease, ticket);
    }
    static RampTicket at(double place) {
        return {RampTicket::Kind::taken, static_cast<std::uint32_t>(place * 4294967296.0)};
    }

    World world;
    core::Policy rules = policy();
    shm::Slot& slot;
    shm::Process one = world.process(1001, &world.recorder);
};

TEST_F(Ticket, IsTakenOnceHoweverOftenItIsShown) {
    recover();
    unsigned let_in = 0;
    for (int n = 0; n < 1'000; ++n) {
        RampTicket ticket;
        const Decision first = shm::peek(slot, rules, one, &ticket);
        for (int again = 0; again < 3; ++again)
            EXPECT_EQ(shm::peek(slot, rules, one, &ticket), first);
        EXPECT_EQ(admit(&ticket).refusal, first == Decision::pass ? Refusal::none : Refusal::ramp);
        let_in += first == Decision::pass ? 1 : 0;
    }
    EXPECT_EQ(slot.ramp_asked.load(), 1'000U);
    EXPECT_NEAR(let_in, 200, 2);
}

TEST_F(Ticket, OfASessionIsLetInFromItsPlaceOnAndEverAfter) {
    recover();
    RampTicket ticket = at(0.6);  // half way from 20 to 100 percent
    for (int n = 0; n < 50; ++n) {
        EXPECT_EQ(shm::peek(slot, rules, one, &ticket), Decision::refuse) << n;
        EXPECT_EQ(admit(&ticket).refusal, Refusal::ramp);
        world.pass(990);
    }
    world.pass(1'000);
    while (state_of(slot) == State::recovering) {
        EXPECT_EQ(shm::peek(slot, rules, one, &ticket), Decision::pass);
        EXPECT_EQ(admit(&ticket).permit.kind, PermitKind::call);
        world.pass(1'000);
    }
    EXPECT_EQ(slot.ramp_asked.load(), 0U) << "the others' sequence is not disturbed";
}

TEST_F(Ticket, ThatIsAlwaysLetInIsSoFromTheFirstMomentOfARampThatBeginsWithNothing) {
    rules.ramp_up.from = 0;
    recover();
    RampTicket ticket{RampTicket::Kind::always, 0xFFFFFFFF};
    EXPECT_EQ(shm::peek(slot, rules, one, &ticket), Decision::pass);
    EXPECT_EQ(admit(&ticket).permit.kind, PermitKind::call);
    RampTicket other;
    EXPECT_EQ(shm::peek(slot, rules, one, &other), Decision::refuse);
    shm::operate(slot, rules, one, core::EventKind::force_open);
    EXPECT_EQ(shm::peek(slot, rules, one, &ticket), Decision::refuse) << "by a ramp, not by anything else";
    EXPECT_EQ(admit(&ticket).refusal, Refusal::forced_open);
}

TEST_F(Ticket, IsAskedForWhenTheRampHasBegunBetweenLookAndPermit) {
    rules.probes = {2, 2, 0, 1, 2};
    RampTicket refused = at(0.9);
    RampTicket let_in = at(0.1);
    RampTicket untaken;
    EXPECT_EQ(shm::peek(slot, rules, one, &refused), Decision::probe);
    EXPECT_EQ(shm::peek(slot, rules, one, &untaken), Decision::probe);
    EXPECT_EQ(untaken.kind, RampTicket::Kind::untaken);
    recover();
    EXPECT_EQ(admit(&refused).refusal, Refusal::ramp);
    EXPECT_EQ(admit(&let_in).permit.kind, PermitKind::call);
    (void)admit(&untaken);
    EXPECT_EQ(untaken.kind, RampTicket::Kind::taken);
}

TEST_F(Ticket, OfASessionThatBeganDuringTheRampIsKnownUntilTheNextRamp) {
    recover();
    const auto hash_of = [](std::uint64_t n) { return (n + 1) * 0x9E3779B97F4A7C15U; };
    for (std::uint64_t n = 0; n < 200; ++n)
        shm::note_newcomer(slot, hash_of(n));
    for (std::uint64_t n = 0; n < 200; ++n)
        EXPECT_TRUE(shm::is_newcomer(slot, hash_of(n))) << n;
    unsigned mistaken = 0;
    for (std::uint64_t n = 1'000; n < 11'000; ++n)
        mistaken += shm::is_newcomer(slot, hash_of(n)) ? 1 : 0;
    EXPECT_LT(mistaken, 100U) << "of 10,000";
    call(slot, rules, one, kFatal);
    world.pass(5'000);
    recover();
    for (std::uint64_t n = 0; n < 200; ++n)
        EXPECT_FALSE(shm::is_newcomer(slot, hash_of(n))) << n;
}

}  // namespace
}  // namespace cb::test
