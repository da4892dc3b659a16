// The typed suites of many at once: the same tests for threads of one child and for children of their own.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "executors.hpp"

namespace cb::test {

template <typename Executor>
class AtOnce : public testing::Test {
  protected:
    static constexpr unsigned kWorkers = 4;

    /// Runs the work in all workers at once, lets go of the CPU wherever it hurts, and sees that nothing is left over.
    void run(World& world, const Work& work, unsigned workers = kWorkers) {
        const Restless restless;
        Executor::run(world, workers, work);
        const char* const wrong = world.board.wrong.load();
        EXPECT_EQ(wrong, nullptr) << wrong;
        EXPECT_EQ(shm::validate(world.segment), nullptr);
        world.board.at_line = 0;
    }
};

using Executors = testing::Types<Threads, Processes>;
class ExecutorNames {
  public:
    template <typename Executor>
    static std::string GetName(int) {
        return std::is_same_v<Executor, Threads> ? "Threads" : "Processes";
    }
};

}  // namespace cb::test
