#include "single_step.hpp"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "executors.hpp"

namespace cb::test {

SingleStep::SingleStep(const std::function<void()>& work)
    : child_(fork_child([&] {
          if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(99);
          ::raise(SIGSTOP);
          work();
      })) {
    wait();
}

SingleStep::~SingleStep() {
    if (has_ended_) return;
    ::kill(child_, SIGKILL);
    while (!has_ended_)
        wait();
}

bool SingleStep::is_possible() {
    SingleStep attempt([] {});
    return !attempt.has_ended() && attempt.step();
}

bool SingleStep::step() {
    if (has_ended_) return false;
    if (::ptrace(PTRACE_SINGLESTEP, child_, nullptr, nullptr) != 0) return false;
    wait();
    return !has_ended_;
}

void SingleStep::run_on() {
    if (!has_ended_) ::ptrace(PTRACE_DETACH, child_, nullptr, nullptr);
    while (!has_ended_)
        wait();
}

void SingleStep::wait() {
    int status = 0;
    while (::waitpid(child_, &status, 0) != child_) {
        if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
    }
    if (WIFSTOPPED(status)) return;
    has_ended_ = true;
    exit_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace cb::test
