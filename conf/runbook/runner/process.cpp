#include "process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstring>

extern char** environ;

namespace cb::runbook {
namespace {

/// The runner's own environment without what could be taken for the event's, the event's, and `own`.
std::vector<char*> environment_of(const Event& event, const std::vector<std::string>& own) {
    std::vector<char*> variables;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        if (std::strncmp(*variable, "CB_", 3) != 0) variables.push_back(*variable);
    }
    for (const auto* more : {&event.environment, &own}) {
        for (const std::string& variable : *more)
            variables.push_back(const_cast<char*>(variable.c_str()));
    }
    variables.push_back(nullptr);
    return variables;
}

}  // namespace

pid_t start(const std::string& program, const Event& event, const std::vector<std::string>& own) {
    std::vector<char*> environment = environment_of(event, own);
    char* arguments[] = {const_cast<char*>(program.c_str()), nullptr};
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
    // An event is shorter than the room in a new pipe, so this does not block.
    const bool is_written =
        ::write(ends[1], event.line.data(), event.line.size()) == static_cast<ssize_t>(event.line.size());
    ::close(ends[1]);
    const pid_t parent = ::getpid();
    const pid_t pid = is_written ? ::fork() : -1;
    if (pid == 0) {
        ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(1);
        for (const int number : {SIGTERM, SIGPIPE, SIGHUP, SIGINT})
            (void)::signal(number, SIG_DFL);
        sigset_t none;
        ::sigemptyset(&none);
        (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
        ::dup2(ends[0], STDIN_FILENO);
        ::dup2(STDERR_FILENO, STDOUT_FILENO);
        ::execve(program.c_str(), arguments, environment.data());
        ::_exit(126);
    }
    ::close(ends[0]);
    if (pid > 0) ::setpgid(pid, pid);  // whoever of the two comes first
    return pid;
}

}  // namespace cb::runbook
