// Child processes that can't outlive the test, and what /proc tells of them.
//
// Thread safety: a Process belongs to one thread at a time. The kernel ties the child's life to the *thread* that
// started it, so start only from the main thread (checked).
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wait.hpp"

namespace cb::test {

using Environment = std::vector<std::pair<std::string, std::string>>;

struct Command {
    std::vector<std::string> argv{};      // argv[0] is looked up in PATH
    Environment environment{};            // on top of the test's own
    std::filesystem::path output_file{};  // of stdout and stderr, appended; empty: nowhere
};

/// One started program, in a session and process group of its own; everything it starts in turn stays in that group
/// (unless it leaves it on purpose). If the test dies, the kernel sends the program SIGTERM.
class Process {
  public:
    explicit Process(const Command& command);
    /// Whatever is still there is killed.
    ~Process();
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] bool running();
    void signal(int number);
    /// The exit status (128 + signal, if one killed it), or none if it still runs then.
    [[nodiscard]] std::optional<int> wait_for_exit(milliseconds timeout);
    /// SIGKILL to the program and all it has started.
    void kill_group();
    /// After the exit: who was still in its group three seconds later, as "name (pid)". They have been killed.
    [[nodiscard]] const std::vector<std::string>& left_behind() const { return left_behind_; }

  private:
    [[nodiscard]] bool has_exited() const;
    void reap();

    pid_t pid_ = -1;
    std::optional<int> exit_status_;
    std::vector<std::string> left_behind_;
};

struct CommandResult {
    int exit_status = -1;  // 128 + signal, if one killed it; it is killed at the timeout
    std::string output;    // stdout and stderr
};

/// Runs a program to its end.
[[nodiscard]] CommandResult run_command(Command command, milliseconds timeout = patience);

struct ProcessInfo {
    pid_t pid = 0;
    pid_t parent = 0;
    pid_t group = 0;
    char state = '?';
    std::string name;  // as in /proc/PID/stat: at most 15 characters
};

/// None if there is no such process (any more).
[[nodiscard]] std::optional<ProcessInfo> process_info(pid_t pid);
[[nodiscard]] std::vector<ProcessInfo> all_processes();
/// Not those that have exited and only wait to be reaped.
[[nodiscard]] std::vector<ProcessInfo> processes_in_group(pid_t group);
/// The file it executes; empty if it is gone.
[[nodiscard]] std::filesystem::path executable_of(pid_t pid);
/// Resident memory, 0 if it is gone.
[[nodiscard]] std::size_t resident_kib(pid_t pid);

[[nodiscard]] std::string read_file(const std::filesystem::path& path);

}  // namespace cb::test
