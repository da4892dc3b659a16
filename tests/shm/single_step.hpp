// A child that goes one machine instruction at a time, so that it can be looked at, or overtaken, between any two.
//
// Thread safety: belongs to the test's only thread.
#pragma once

#include <sys/types.h>

#include <functional>

namespace cb::test {

class SingleStep {
  public:
    /// Forks the child and holds it before its work.
    explicit SingleStep(const std::function<void()>& work);
    /// A child that has not ended is killed.
    ~SingleStep();
    SingleStep(const SingleStep&) = delete;
    SingleStep& operator=(const SingleStep&) = delete;

    /// False where the system does not let a process trace its child.
    [[nodiscard]] static bool is_possible();
    [[nodiscard]] pid_t pid() const { return child_; }
    [[nodiscard]] bool has_ended() const { return has_ended_; }
    [[nodiscard]] int exit_status() const { return exit_status_; }
    /// One instruction. False once it has ended.
    bool step();
    /// At its own pace to the end.
    void run_on();

  private:
    void wait();
    pid_t child_ = -1;
    bool has_ended_ = false;
    int exit_status_ = -1;
};

}  // namespace cb::test
