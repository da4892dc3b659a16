#include "queue.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "process.hpp"
#include "say.hpp"

namespace cb::runbook {
namespace {

constexpr std::chrono::milliseconds kLockRetry{100};

/// Why a folder can't be read; none if it can be.
std::error_code unreadable(const std::string& folder) {
    std::error_code error;
    std::filesystem::directory_iterator{folder, error};
    return error;
}

}  // namespace

Queue::Queue(const Options& options)
    : options_(options),
      marks_(options.state_folder),
      environment_{"CB_RUNBOOK=" + options.directory, "CB_SERVER=" + std::to_string(::getppid())} {
    if (const std::error_code error = unreadable(options_.directory)) {
        say("can't read " + options_.directory + ": " + error.message() + "; no program runs until that gets better");
    }
    take_over();
    // An earlier httpd's runner may still be at work, and set something now.
    take_over_again_ = std::chrono::steady_clock::now() + most_after_end(options_);
    if (options_.lock_file.empty()) return;
    lock_ = ::open(options_.lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock_ < 0) {
        say("can't open the lock file " + options_.lock_file + ": " + std::strerror(errno) +
            "; for a while after a graceful restart, programs of one member may run side by side");
    }
}

/// Nothing would run for it. There may be many such events (a probe's), and none may take the place of another one.
bool Queue::is_for_nobody(const Event& event) const {
    if (event.sets || event.clears || unreadable(options_.directory)) return false;
    std::error_code error;
    return !std::filesystem::exists(options_.directory + "/" + event.folder, error) && !error;
}

void Queue::add(Event event) {
    if (is_for_nobody(event)) return;
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

void Queue::take_over() {
    for (Event& event : marks_.of_earlier_httpds())
        waiting_.push_back(std::move(event));
}

void Queue::drop(const std::string& why) {
    ++dropped_;
    say(why + " (" + std::to_string(dropped_) + " dropped so far)");
}

bool Queue::is_busy(const std::string& key) const {
    return std::any_of(running_.begin(), running_.end(), [&](const Run& run) { return run.event.key == key; });
}

std::vector<Queue::Program> Queue::programs_of(const Event& event) {
    std::vector<Program> programs;
    if (event.folder.empty()) return programs;
    const std::string folder = options_.directory + "/" + event.folder;
    std::error_code error;
    std::error_code ignored;
    auto entry = std::filesystem::directory_iterator(folder, error);
    for (; !error && entry != std::filesystem::directory_iterator{}; entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        // A link that leads nowhere is a program that can't be run.
        if (name.front() == '.' || name.back() == '~' || entry->is_directory(ignored)) continue;
        programs.push_back({entry->path().string(), name, event.sets, {}});
    }
    // Nobody needs a folder for each event.
    if (error && (error != std::errc::no_such_file_or_directory || unreadable(options_.directory))) {
        drop("can't read " + folder + ": " + error.message());
    }
    std::sort(programs.begin(), programs.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return programs;
}

std::vector<Queue::Program> Queue::clear_programs_of(const Event& event) {
    std::vector<Program> programs;
    if (!event.clears || unreadable(options_.directory)) return programs;
    for (auto& [name, marks] : marks_.of(event)) {
        const std::string path = options_.directory + "/clear.d/" + name;
        std::error_code error;
        // A link that leads nowhere is a program that can't be run, here too.
        if (std::filesystem::symlink_status(path, error).type() == std::filesystem::file_type::not_found) {
            marks_.drop(marks);
        } else {
            programs.push_back({path, name, false, marks});
        }
    }
    return programs;
}

void Queue::note_success(const Run& run) {
    const Program& program = run.programs.front();
    if (program.sets) marks_.set(run.event, program.name);
    marks_.drop(program.marks);
}

bool Queue::lock(const std::string& key, bool on) {
    if (lock_ < 0) return true;
    struct flock range {};
    range.l_type = static_cast<short>(on ? F_WRLCK : F_UNLCK);
    range.l_whence = SEEK_SET;
    range.l_start = static_cast<off_t>(fnv1a(key) >> 2U);
    range.l_len = 1;
    return ::fcntl(lock_, F_OFD_SETLK, &range) == 0 || (errno != EAGAIN && errno != EACCES);
}

void Queue::fail(const Run& run, const std::string& how) {
    ++failed_;
    say(run.programs.front().path + ": " + how + " (member " + run.event.member + ", " + std::to_string(failed_) +
        " failed so far)");
}

void Queue::start_next_program(Run& run) {
    for (; !run.programs.empty(); run.programs.erase(run.programs.begin())) {
        if (::access(run.programs.front().path.c_str(), X_OK) != 0) {
            fail(run, std::string("can't be run: ") + std::strerror(errno));
            continue;
        }
        run.pid = start(run.programs.front().path, run.event, environment_);
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
        // What is to be cleared is known only when no other runner works for this member.
        const bool needs_lock = !run.programs.empty() || event->clears;
        if (needs_lock && !lock(event->key, true)) {
            is_lock_taken_ = true;
            passed_over.insert(event->key);
            ++event;
            continue;
        }
        for (Program& program : clear_programs_of(*event))
            run.programs.push_back(std::move(program));
        run.event = std::move(*event);
        event = waiting_.erase(event);
        if (!needs_lock) continue;
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
    if (now >= take_over_again_) {
        take_over_again_ = Time::max();
        take_over();
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
        if (!run->is_terminated) {
            if (status == 0) {
                note_success(*run);
            } else {
                fail(*run, WIFEXITED(status) ? "exit status " + std::to_string(WEXITSTATUS(status))
                                             : "killed by signal " + std::to_string(WTERMSIG(status)));
            }
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
    Time next = take_over_again_;
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
