// Events that wait, and the programs that run for them.
//
// Purpose: the programs of an event run one after the other, in the order of their names; events of one member one
// after the other, in the order they came; different members side by side. Thread safety: one thread. Invariants: never
// more than `most_waiting` events wait and `most_running` run; a program has its own process group, which is gone when
// its event goes on to the next program; whatever is dropped or fails is counted and said. What a program of an opening
// has set for a member stays marked until the program of the same name in clear.d has succeeded. That is run when the
// member is back, and when httpd has been stopped and started: all breakers are closed then, which no event tells.
#ifndef CIRCUITBREAKER_RUNBOOK_QUEUE_HPP
#define CIRCUITBREAKER_RUNBOOK_QUEUE_HPP

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "event.hpp"
#include "marks.hpp"

namespace cb::runbook {

using Time = std::chrono::steady_clock::time_point;

inline constexpr std::chrono::seconds kGrace{1};  // between SIGTERM and SIGKILL

struct Options {
    std::string directory;
    std::string lock_file;
    std::string state_folder;        // of the marks
    std::chrono::seconds limit{30};  // of one program
    std::size_t most_running = 8;
    std::size_t most_waiting = 1000;
};

/// A runner works no longer than that after its httpd has ended.
[[nodiscard]] inline std::chrono::seconds most_after_end(const Options& options) {
    return 2 * options.limit + 3 * kGrace;
}

class Queue {
  public:
    explicit Queue(const Options& options);

    /// Takes the event, or drops it if too many wait.
    void add(Event event);
    /// One that could not be understood, or not be handled in time.
    void drop(const std::string& why);
    /// Starts what may start, ends what has run too long.
    void work(Time now);
    /// Sees after programs that have ended.
    void reap();
    /// When work() is due again, if nothing else happens.
    [[nodiscard]] Time next_work() const;
    [[nodiscard]] bool is_empty() const { return waiting_.empty() && running_.empty(); }
    /// Drops what waits and kills what runs.
    void give_up();

  private:
    struct Program {
        std::string path;
        std::string name;
        bool sets = false;            // what clear.d's program of that name clears
        std::set<std::string> marks;  // that it clears
    };
    struct Run {
        Event event;
        std::vector<Program> programs;  // still to be run; the first is running
        pid_t pid = -1;
        Time deadline;
        bool is_terminated = false;
    };

    [[nodiscard]] bool is_for_nobody(const Event& event) const;
    [[nodiscard]] bool is_busy(const std::string& key) const;
    [[nodiscard]] std::vector<Program> programs_of(const Event& event);
    /// Those that clear what is marked for its breaker.
    [[nodiscard]] std::vector<Program> clear_programs_of(const Event& event);
    /// Events for what is left of an earlier httpd.
    void take_over();
    void note_success(const Run& run);
    void start_waiting();
    void start_next_program(Run& run);
    [[nodiscard]] bool lock(const std::string& key, bool on);
    void fail(const Run& run, const std::string& how);

    const Options options_;
    Marks marks_;
    const std::vector<std::string> environment_;  // of every program
    int lock_ = -1;
    bool is_lock_taken_ = false;  // by the runner of before a graceful restart: look again soon
    Time take_over_again_ = Time::max();
    std::deque<Event> waiting_;
    std::vector<Run> running_;
    std::uint64_t dropped_ = 0;
    std::uint64_t failed_ = 0;
    std::uint64_t dropped_before_spell_ = 0;
    bool is_spell_ = false;  // of drops, because too many wait
};

}  // namespace cb::runbook

#endif
