#include "process.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "temp_dir.hpp"

namespace cb::test {
namespace {

std::vector<std::string> environment_with(const Environment& more) {
    std::vector<std::string> lines;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view line(*entry);
        bool replaced = false;
        for (const auto& [name, value] : more)
            replaced |= line.starts_with(name + "=");
        if (!replaced) lines.emplace_back(line);
    }
    for (const auto& [name, value] : more) {
        std::string line = name;
        lines.push_back(line.append("=").append(value));
    }
    return lines;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts)
        pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

/// In the child, between fork and exec: only what is safe there, as the test may have threads.
[[noreturn]] void become(pid_t test, int output, char* const* argv, char* const* environment) {
    ::setsid();
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != test) ::_exit(126);  // the test died before the line above
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup2(input, STDIN_FILENO);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    ::execvpe(argv[0], argv, environment);
    static constexpr char failed[] = "can't be executed\n";
    (void)!::write(STDERR_FILENO, failed, sizeof failed - 1);
    ::_exit(127);
}

}  // namespace

Process::Process(const Command& command) {
    if (::gettid() != ::getpid())
        throw std::logic_error(
            "start processes on the main thread: PR_SET_PDEATHSIG ends them with the starting thread");
    std::vector<std::string> arguments = command.argv;
    std::vector<std::string> variables = environment_with(command.environment);
    const std::vector<char*> argv = pointers_to(arguments);
    const std::vector<char*> environment = pointers_to(variables);
    const std::string file = command.output_file.empty() ? "/dev/null" : command.output_file.string();
    const int output = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (output < 0) throw std::system_error(errno, std::generic_category(), file);
    const pid_t test = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) become(test, output, argv.data(), environment.data());
    const int error = errno;
    ::close(output);
    if (pid_ < 0) throw std::system_error(error, std::generic_category(), "fork");
}

Process::~Process() {
    if (exit_status_) return;
    kill_group();
    while (!exit_status_)
        (void)wait_for_exit(patience);
}

bool Process::has_exited() const {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid_;
}

bool Process::running() {
    if (!exit_status_ && has_exited()) reap();
    return !exit_status_.has_value();
}

void Process::signal(int number) {
    if (running()) ::kill(pid_, number);
}

void Process::kill_group() {
    // Until it is reaped, nobody else can get its pid, nor a group of that number. Before its setsid() there is no such
    // group: hence both.
    if (exit_status_) return;
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
}

std::optional<int> Process::wait_for_exit(milliseconds timeout) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (running() && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(2ms);
    return exit_status_;
}

void Process::reap() {
    // The pid is still ours, as nobody has waited for it: the group can be looked at, and killed, without mistaking it.
    const auto survivors = [this] { return processes_in_group(pid_); };
    const auto deadline = std::chrono::steady_clock::now() + 3s;
    while (!survivors().empty() && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(2ms);
    for (const ProcessInfo& survivor : survivors()) {
        left_behind_.push_back(survivor.name + " (" + std::to_string(survivor.pid) + ")");
        ::kill(survivor.pid, SIGKILL);
    }
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    exit_status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

CommandResult run_command(Command command, milliseconds timeout) {
    const TempDir folder("cb-command");
    command.output_file = folder.path() / "output";
    Process process(command);
    CommandResult result;
    if (!process.wait_for_exit(timeout)) process.kill_group();
    result.exit_status = process.wait_for_exit(patience).value_or(-1);
    result.output = read_file(command.output_file);
    return result;
}

std::optional<ProcessInfo> process_info(pid_t pid) {
    // "pid (name) state ppid pgrp ...", and the name may hold spaces and parentheses.
    const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    const auto open = stat.find('(');
    const auto close = stat.rfind(')');
    if (open == std::string::npos || close == std::string::npos) return std::nullopt;
    ProcessInfo info;
    info.pid = pid;
    info.name = stat.substr(open + 1, close - open - 1);
    std::istringstream rest(stat.substr(close + 1));
    if (!(rest >> info.state >> info.parent >> info.group)) return std::nullopt;
    return info;
}

/// Of those that `is_wanted`. Most tests ask for one group; to read of every process of the machine would take long.
template <typename IsWanted>
static std::vector<ProcessInfo> processes_that(IsWanted is_wanted) {
    std::vector<ProcessInfo> processes;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string name = entry.path().filename().string();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        const pid_t pid = std::stoi(name);
        if (!is_wanted(pid)) continue;
        if (auto info = process_info(pid)) processes.push_back(std::move(*info));
    }
    return processes;
}

std::vector<ProcessInfo> all_processes() {
    return processes_that([](pid_t) { return true; });
}

/// Its first thread may be gone, and be shown as a zombie, while others still hold its descriptors.
static bool has_ended(const ProcessInfo& process) {
    if (process.state == 'X') return true;
    if (process.state != 'Z') return false;
    std::error_code gone;
    unsigned threads = 0;
    for (auto entry = std::filesystem::directory_iterator("/proc/" + std::to_string(process.pid) + "/task", gone);
         !gone && entry != std::filesystem::directory_iterator(); entry.increment(gone))
        ++threads;
    return threads <= 1;
}

std::vector<ProcessInfo> processes_in_group(pid_t group) {
    std::vector<ProcessInfo> processes = processes_that([group](pid_t pid) { return ::getpgid(pid) == group; });
    std::erase_if(processes, [group](const auto& p) { return p.group != group || has_ended(p); });
    return processes;
}

std::filesystem::path executable_of(pid_t pid) {
    std::error_code gone;
    return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", gone);
}

std::size_t resident_kib(pid_t pid) {
    std::istringstream lines(read_file("/proc/" + std::to_string(pid) + "/status"));
    std::string word;
    while (lines >> word) {
        std::size_t kib = 0;
        if (word == "VmRSS:" && lines >> kib) return kib;
    }
    return 0;
}

std::string read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    if (file) text << file.rdbuf();
    return text.str();
}

}  // namespace cb::test
