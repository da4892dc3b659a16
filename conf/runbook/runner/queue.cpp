#include "queue.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>

extern char** environ;

namespace cb::runbook {
namespace {

constexpr std::chrono::milliseconds kLockRetry{100};

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

/// Starts the program with the event on its standard input; -1 if it can't be.
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

/// Why a folder can't be read; none if it can be.
std::error_code unreadable(const std::string& folder) {
    std::error_code error;
    std::filesystem::directory_iterator{folder, error};
    return error;
}

}  // namespace

void say(const std::string& text) {
    const std::string line = "circuitbreaker-runbook: " + text + "\n";
    (void)!::write(STDERR_FILENO, line.data(), line.size());
}

Queue::Queue(const Options& options)
    : options_(options), environment_{"CB_RUNBOOK=" + options.directory, "CB_SERVER=" + std::to_string(::getppid())} {
    if (const std::error_code error = unreadable(options_.directory)) {
        say("can't read " + options_.directory + ": " + error.message() + "; no program runs until that gets better");
    }
    if (options_.lock_file.empty()) return;
    lock_ = ::open(options_.lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock_ < 0) {
        say("can't open the lock file " + options_.lock_file + ": " + std::strerror(errno) +
            "; for a while after a graceful restart, programs of one member may run side by side");
    }
}

void Queue::add(Event event) {
    if (waiting_.size() >= options_.most_waiting) {
        ++dropped_;
        if (!is_spell_) {
            is_spell_ = true;
            dropped_before_spell_ = dropped_ - 1;
            say(std::to_string(waiting_.size()) + " events wait: further ones are dropped until that gets better");
        }
        return;
    }
    waiting_.push_back(std::move(event));
}

void Queue::drop(const std::string& why) {
    ++dropped_;
    say(why + " (" + std::to_string(dropped_) + " dropped so far)");
}

bool Queue::is_busy(const std::string& key) const {
    return std::any_of(running_.begin(), running_.end(), [&](const Run& run) { return run.event.key == key; });
}

std::vector<std::string> Queue::programs_of(const Event& event) {
    std::vector<std::string> programs;
    const std::string folder = options_.directory + "/" + event.folder;
    std::error_code error;
    std::error_code ignored;
    auto entry = std::filesystem::directory_iterator(folder, error);
    for (; !error && entry != std::filesystem::directory_iterator{}; entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        // A link that leads nowhere is a program that can't be run.
        if (name.front() == '.' || name.back() == '~' || entry->is_directory(ignored)) continue;
        programs.push_back(entry->path().string());
    }
    // Nobody needs a folder for each event.
    if (error && (error != std::errc::no_such_file_or_directory || unreadable(options_.directory))) {
        drop("can't read " + folder + ": " + error.message());
    }
    std::sort(programs.begin(), programs.end());
    return programs;
}

bool Queue::lock(const std::string& key, bool on) {
    if (lock_ < 0) return true;
    struct flock range {};
    range.l_type = static_cast<short>(on ? F_WRLCK : F_UNLCK);
    range.l_whence = SEEK_SET;
    range.l_start = static_cast<off_t>(std::hash<std::string>{}(key) >> 2U);
    range.l_len = 1;
    return ::fcntl(lock_, F_OFD_SETLK, &range) == 0 || (errno != EAGAIN && errno != EACCES);
}

void Queue::fail(const Run& run, const std::string& how) {
    ++failed_;
    say(run.programs.front() + ": " + how + " (member " + run.event.member + ", " + std::to_string(failed_) +
        " failed so far)");
}

void Queue::start_next_program(Run& run) {
    for (; !run.programs.empty(); run.programs.erase(run.programs.begin())) {
        if (::access(run.programs.front().c_str(), X_OK) != 0) {
            fail(run, std::string("can't be run: ") + std::strerror(errno));
            continue;
        }
        run.pid = start(run.programs.front(), run.event, environment_);
        run.deadline = std::chrono::steady_clock::now() + options_.limit;
        run.is_terminated = false;
        if (run.pid > 0) return;
        fail(run, std::string("can't be started: ") + std::strerror(errno));
    }
    run.pid = -1;
}

void Queue::start_waiting() {
    is_lock_taken_ = false;
    std::set<std::string> passed_over;  // a later event of the same member must not overtake
    for (auto event = waiting_.begin(); event != waiting_.end() && running_.size() < options_.most_running;) {
        if (passed_over.contains(event->key) || is_busy(event->key)) {
            ++event;
            continue;
        }
        Run run;
        run.programs = programs_of(*event);
        if (!run.programs.empty() && !lock(event->key, true)) {
            is_lock_taken_ = true;
            passed_over.insert(event->key);
            ++event;
            continue;
        }
        run.event = std::move(*event);
        event = waiting_.erase(event);
        if (run.programs.empty()) continue;
        start_next_program(run);
        if (run.pid < 0) {
            (void)lock(run.event.key, false);
        } else {
            running_.push_back(std::move(run));
        }
    }
}

void Queue::work(Time now) {
    for (Run& run : running_) {
        if (now < run.deadline) continue;
        if (!run.is_terminated) {
            fail(run, "killed after " + std::to_string(options_.limit.count()) + " s");
            run.is_terminated = true;
            run.deadline = now + kGrace;
            ::kill(-run.pid, SIGTERM);
        } else {
            ::kill(-run.pid, SIGKILL);
            run.deadline = now + kGrace;
        }
    }
    start_waiting();
    if (is_spell_ && waiting_.size() <= options_.most_waiting / 2) {
        is_spell_ = false;
        say("fewer events wait; " + std::to_string(dropped_ - dropped_before_spell_) + " were dropped");
    }
}

void Queue::reap() {
    for (auto run = running_.begin(); run != running_.end();) {
        siginfo_t info{};
        if (::waitid(P_PID, static_cast<id_t>(run->pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
            ++run;
            continue;
        }
        // What it has started and left goes too, while its process group can't be anybody else's yet.
        ::kill(-run->pid, SIGKILL);
        int status = 0;
        ::waitpid(run->pid, &status, 0);
        if (!run->is_terminated && status != 0) {
            fail(*run, WIFEXITED(status) ? "exit status " + std::to_string(WEXITSTATUS(status))
                                         : "killed by signal " + std::to_string(WTERMSIG(status)));
        }
        run->programs.erase(run->programs.begin());
        start_next_program(*run);
        if (run->pid > 0) {
            ++run;
            continue;
        }
        (void)lock(run->event.key, false);
        run = running_.erase(run);
    }
}

Time Queue::next_work() const {
    Time next = Time::max();
    for (const Run& run : running_)
        next = std::min(next, run.deadline);
    if (is_lock_taken_) next = std::min(next, std::chrono::steady_clock::now() + kLockRetry);
    return next;
}

void Queue::give_up() {
    for (const Run& run : running_) {
        fail(run, "killed, as httpd has ended");
        ::kill(-run.pid, SIGKILL);
    }
    if (!waiting_.empty()) {
        dropped_ += waiting_.size() - 1;
        drop(std::to_string(waiting_.size()) + " events were not handled before the end");
    }
    waiting_.clear();
    running_.clear();
}

}  // namespace cb::runbook
