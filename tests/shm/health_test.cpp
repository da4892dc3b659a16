// Health checks and the announcement of an open time's end, in shared memory: what counts, and that one process tells.
#include "shm/health.hpp"

#include <gtest/gtest.h>

#include "shm/notice.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

using core::Millis;

struct Open : testing::Test {
    Open() {
        rules.open_time.base = 10'000;
        open();
    }
    void open() { ASSERT_TRUE(call(slot, rules, one, kFatal)); }
    void recover() {
        world.pass(10'000);
        for (int n = 0; n < 3; ++n)
            ASSERT_TRUE(call(slot, rules, one, kGood));
    }
    /// Has one passed by now?
    bool look(Millis ended, bool has_passed, std::uint32_t failures = 0) {
        const bool is_so = shm::note_check(slot, slot.word, {ended, failures, has_passed}, world.board.now);
        EXPECT_EQ(shm::has_passed_check(slot, slot.word), is_so);
        return is_so;
    }
    World world;
    core::Policy rules = policy();
    shm::Slot& slot = world.add("http://a", rules);
    shm::Process one = world.process(1001, &world.recorder);
    shm::Process two = world.process(1002, &world.recorder);
};

constexpr bool kPasses = true, kFails = false;
constexpr Millis kUnderWay = 0;

TEST_F(Open, HasPassedACheckOnlyIfThatBeganAfterTheFirstLook) {
    EXPECT_FALSE(look(1000, kPasses)) << "it was before";
    EXPECT_FALSE(look(1000, kPasses));
    EXPECT_FALSE(look(kUnderWay, kPasses));
    EXPECT_FALSE(look(2000, kFails));
    EXPECT_FALSE(look(2000, kPasses)) << "the one that failed";
    EXPECT_TRUE(look(3000, kPasses));
    EXPECT_TRUE(look(4000, kFails)) << "it stays so";
}

TEST_F(Open, DoesNotCountACheckThatWasUnderWayAtTheFirstLook) {
    EXPECT_FALSE(look(kUnderWay, kPasses));
    EXPECT_FALSE(look(1000, kPasses));
    EXPECT_FALSE(look(kUnderWay, kPasses));
    EXPECT_TRUE(look(2000, kPasses));
}

TEST_F(Open, HasNotPassedACheckThatCountedAsAFailure) {
    (void)look(1000, kPasses, 7);
    EXPECT_FALSE(look(2000, kPasses, 8)) << "a request has hidden that it failed";
    EXPECT_FALSE(look(3000, kPasses, 300)) << "only some bits are kept";
    EXPECT_TRUE(look(4000, kPasses, 300));
}

TEST_F(Open, DoesNotCountTheEndOfACheckThatMayNotHaveBeenMade) {
    (void)look(1000, kPasses);
    shm::doubt_checks(slot);
    EXPECT_FALSE(look(2000, kPasses));
    EXPECT_FALSE(look(2000, kPasses));
    shm::configure(slot, rules, one);  // a restart
    EXPECT_FALSE(look(3000, kPasses));
    EXPECT_TRUE(look(4000, kPasses));
    shm::doubt_checks(slot);
    shm::configure(slot, rules, one);
    EXPECT_TRUE(shm::has_passed_check(slot, slot.word)) << "that has been made";
}

TEST_F(Open, KnowsHowLongAgoACheckEndedWhateverTheWallClockSays) {
    const auto since = [&] { return shm::time_since_check(slot, slot.word, world.board.now); };
    world.pass(7000);
    EXPECT_EQ(since(), 0U) << "nobody has looked";
    (void)look(1'000'000, kPasses);
    world.pass(1000);
    EXPECT_EQ(since(), 1000U);
    (void)look(1'000'000, kPasses);
    (void)look(kUnderWay, kPasses);
    EXPECT_EQ(since(), 1000U);
    (void)look(900'000, kFails);
    EXPECT_EQ(since(), 0U);
    world.pass(2000);
    recover();
    open();
    EXPECT_EQ(since(), 0U);
}

TEST_F(Open, WhoseChecksOpenTimeIsOverKeepsTheNextOne) {
    const std::uint64_t seen = slot.word;
    recover();
    open();
    EXPECT_FALSE(shm::end_open_time(slot, rules, one, seen)) << "it has opened anew since the check was seen";
    EXPECT_GT(core::open_remaining(word_of(slot), world.board.now), 0U);
    EXPECT_TRUE(shm::end_open_time(slot, rules, one, slot.word));
    EXPECT_EQ(core::open_remaining(word_of(slot), world.board.now), 0U);
}

TEST_F(Open, HasToPassAnotherCheckWhenItOpensAgain) {
    (void)look(1000, kPasses);
    ASSERT_TRUE(look(2000, kPasses));
    recover();
    open();
    EXPECT_FALSE(shm::has_passed_check(slot, slot.word));
    EXPECT_FALSE(look(2000, kPasses));
    EXPECT_TRUE(look(3000, kPasses));
}

TEST_F(Open, IsKnownToBeWellSinceThePassingCheck) {
    (void)look(1000, kPasses);
    EXPECT_EQ(slot.proven, 0U);
    world.pass(3000);
    ASSERT_TRUE(look(2000, kPasses));
    EXPECT_EQ(slot.proven, world.board.now);
    world.pass(1000);
    ASSERT_TRUE(look(3000, kPasses));
    EXPECT_EQ(slot.proven, world.board.now - 1000);
}

TEST_F(Open, AnnouncesTheEndOfItsOpenTimeOnceAndInTime) {
    const auto tell = [&](Millis interval = 0) {
        shm::announce_probe(slot, rules, one, interval);
        shm::announce_probe(slot, rules, two, interval);
        return world.board.probes_soon.load();
    };
    EXPECT_EQ(tell(), 0U) << "Off";
    rules.open_time.notice = 3000;
    world.pass(6999);
    EXPECT_EQ(tell(), 0U);
    world.pass(1);
    EXPECT_EQ(tell(), 1U);
    EXPECT_EQ(world.board.soon_left, 3000U);
    world.pass(3000);
    EXPECT_EQ(tell(), 1U);
    recover();
    EXPECT_EQ(tell(), 1U);
    open();
    world.pass(1000);
    const Millis left = core::open_remaining(word_of(slot), world.board.now);
    EXPECT_EQ(tell(left - 3001), 1U);
    EXPECT_EQ(tell(left - 3000), 2U) << "or the next look would be too late";
    EXPECT_EQ(world.board.soon_left, left);
}

TEST_F(Open, AnnouncesAnOpenTimeOnceWhateverEarlyRoundsFailInIt) {
    rules.open_time.notice = 5000;
    rules.open_time.min = 1000;
    world.pass(6000);
    for (int n = 0; n < 3; ++n) {
        shm::announce_probe(slot, rules, one, 0);
        shm::Admission probe = shm::admit(slot, rules, one, {}, true, kLease, nullptr, true);
        ASSERT_EQ(probe.permit.kind, shm::PermitKind::probe);
        shm::finish(slot, rules, one, probe.permit, kBad, {});
        ASSERT_EQ(state_of(slot), core::State::open);
        world.pass(1000);
    }
    shm::announce_probe(slot, rules, one, 0);
    EXPECT_EQ(world.board.probes_soon, 1U);
}

TEST_F(Open, AnnouncesAnEndThatNobodyHasSeenComingLateRatherThanNever) {
    rules.open_time.notice = 1000;
    world.pass(60'000);
    shm::announce_probe(slot, rules, one, 0);
    EXPECT_EQ(world.board.probes_soon, 1U);
    EXPECT_EQ(world.board.soon_left, 0U);
}

}  // namespace
}  // namespace cb::test
