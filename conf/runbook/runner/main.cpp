// circuitbreaker-runbook: for `CircuitBreakerEventLog "|/usr/lib/mod_circuitbreaker/circuitbreaker-runbook DIRECTORY"`.
//
// Reads events line by line and runs the programs of DIRECTORY/on-STATE.d/ or on-EVENT.d/ for each, with the event as
// JSON on their standard input and as CB_... in their environment. It always reads at once, so the pipe never fills up
// because of a slow program; what can't be handled is counted and said on stderr, httpd's error log.
//
// httpd sends SIGTERM at each restart, while children of before may still have events to tell: the end of the input is
// what ends this program, after what is left has been done, but about two time limits later at most.
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "queue.hpp"

namespace cb::runbook {
namespace {

const char* const kUsage =
    "usage: circuitbreaker-runbook [-t SECONDS] [-j PROGRAMS] [-q EVENTS] [-l LOCKFILE] [-s FOLDER] DIRECTORY\n"
    "  -t  time limit of one program (30)\n"
    "  -j  programs at the same time (8)\n"
    "  -q  events that may wait (1000)\n"
    "  -l  lock file for the time when two of these run, after a graceful restart\n"
    "      (/run/circuitbreaker-runbook.lock)\n"
    "  -s  folder that remembers what is to be cleared (/run/circuitbreaker-runbook)\n";

bool read_number(const char* text, long most, long& number) {
    char* end = nullptr;
    number = std::strtol(text, &end, 10);
    return end != text && *end == '\0' && number >= 1 && number <= most;
}

bool read_options(int argc, char** argv, Options& options) {
    options.lock_file = "/run/circuitbreaker-runbook.lock";
    options.state_folder = "/run/circuitbreaker-runbook";
    for (int option = 0; (option = ::getopt(argc, argv, "t:j:q:l:s:")) != -1;) {
        long number = 0;
        if (option == 't' && read_number(optarg, 86400, number)) {
            options.limit = std::chrono::seconds(number);
        } else if (option == 'j' && read_number(optarg, 1000, number)) {
            options.most_running = static_cast<std::size_t>(number);
        } else if (option == 'q' && read_number(optarg, 1000000, number)) {
            options.most_waiting = static_cast<std::size_t>(number);
        } else if (option == 'l') {
            options.lock_file = optarg;
        } else if (option == 's') {
            options.state_folder = optarg;
        } else {
            return false;
        }
    }
    if (optind != argc - 1) return false;
    options.directory = argv[optind];
    return true;
}

class Input {
  public:
    /// Reads what is there; false at its end.
    bool read(Queue& queue) {
        char bytes[65536];
        const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
        if (count < 0) return errno == EINTR || errno == EAGAIN;
        if (count == 0) return false;
        rest_.append(bytes, static_cast<std::size_t>(count));
        std::size_t begin = 0;
        for (std::size_t end = 0; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1)
            take(queue, rest_.substr(begin, end - begin));
        rest_.erase(0, begin);
        rest_.resize(std::min(rest_.size(), kMaxLine + 1));  // too long already, whatever follows
        return true;
    }

  private:
    static void take(Queue& queue, const std::string& line) {
        if (line.empty()) return;
        if (line.size() > kMaxLine) {
            queue.drop("a line is too long: it is no event");
        } else if (std::optional<Event> event = parse_event(line)) {
            queue.add(std::move(*event));
        } else {
            queue.drop("a line is no event");
        }
    }
    std::string rest_;
};

int time_to_wait(Time until) {
    if (until == Time::max()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    return static_cast<int>(std::clamp<long long>(left.count(), 0, 60'000));
}

int run(const Options& options) {
    sigset_t child_ended;
    ::sigemptyset(&child_ended);
    ::sigaddset(&child_ended, SIGCHLD);
    (void)::sigprocmask(SIG_BLOCK, &child_ended, nullptr);
    for (const int number : {SIGTERM, SIGPIPE, SIGHUP, SIGINT})
        (void)::signal(number, SIG_IGN);
    const int children = ::signalfd(-1, &child_ended, SFD_NONBLOCK | SFD_CLOEXEC);
    Queue queue(options);
    Input input;
    bool is_open = true;
    Time end = Time::max();
    while (is_open || !queue.is_empty()) {
        queue.work(std::chrono::steady_clock::now());
        if (!is_open && queue.is_empty()) break;
        pollfd what[] = {{children, POLLIN, 0}, {is_open ? STDIN_FILENO : -1, POLLIN, 0}};
        if (::poll(what, 2, time_to_wait(std::min(queue.next_work(), end))) < 0 && errno != EINTR) break;
        signalfd_siginfo ignored;
        while (::read(children, &ignored, sizeof ignored) > 0) {
        }
        queue.reap();
        if (is_open && what[1].revents != 0 && !input.read(queue)) {
            is_open = false;
            end = std::chrono::steady_clock::now() + most_after_end(options);
        }
        if (std::chrono::steady_clock::now() >= end) {
            queue.give_up();
            return 1;
        }
    }
    return 0;
}

}  // namespace
}  // namespace cb::runbook

int main(int argc, char** argv) {
    cb::runbook::Options options;
    if (!cb::runbook::read_options(argc, argv, options)) {
        (void)std::fputs(cb::runbook::kUsage, stderr);
        return 2;
    }
    return cb::runbook::run(options);
}
