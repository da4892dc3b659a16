// Calls on kept connections through the verbs: who says that most are stale, and when again.
#include <gtest/gtest.h>

#include "executors.hpp"
#include "world.hpp"

namespace cb::test {
namespace {

class KeptCalls : public testing::Test {
  protected:
    void make(unsigned count, core::Outcome outcome, bool is_kept = true) {
        for (unsigned i = 0; i < count; ++i) {
            shm::Ending ending;
            ending.outcome = outcome;
            ending.verdict = core::builtin_verdict(outcome);
            ending.is_kept = is_kept;
            ASSERT_TRUE(call(slot, rules, i % 2 == 0 ? one : two, ending));
        }
    }
    World world;
    core::Policy rules = policy();
    shm::Slot& slot = world.add("http://a", rules);
    shm::Process one = world.process(1001, &world.recorder);
    shm::Process two = world.process(1002, &world.recorder);
};

TEST_F(KeptCalls, ThatAreMostlyStaleAreSaidOnceByAllProcessesTogether) {
    make(9, core::Outcome::stale);
    make(20, core::Outcome::stale, false);
    EXPECT_EQ(world.board.stale.load(), 0U);
    make(20, core::Outcome::stale);
    EXPECT_EQ(world.board.stale.load(), 1U);
}

TEST_F(KeptCalls, ThatGoWellSayNothing) {
    make(1, core::Outcome::stale);
    make(200, core::status_outcome(200));
    make(100, core::Outcome::stale);
    EXPECT_EQ(world.board.stale.load(), 0U);
}

TEST_F(KeptCalls, AreSaidAgainAfterAReset) {
    make(10, core::Outcome::stale);
    (void)shm::operate(slot, rules, one, core::EventKind::reset);
    make(10, core::Outcome::stale);
    EXPECT_EQ(world.board.stale.load(), 2U);
}

}  // namespace
}  // namespace cb::test
