// Workers that do the same work at once: as threads of one child, or as children of their own.
//
// Thread safety: run() belongs to the test's only thread; the work runs in all workers at once.
#pragma once

#include <sys/types.h>

#include <functional>

#include "world.hpp"

namespace cb::test {

struct Worker {
    unsigned index;
    unsigned workers;
    std::uint32_t pid;
    std::uint32_t column;  // of the calls in flight
};

using Work = std::function<void(const Worker&)>;

/// Forks a child that dies with the test, does `work` and exits with 0.
[[nodiscard]] pid_t fork_child(const std::function<void()>& work);
/// Waits for it. 0: it did its work; a negative signal number, or its exit status.
[[nodiscard]] int wait_for(pid_t child);

/// All workers meet here; whoever waits for long finds that wrong.
void meet(Board& board, unsigned workers);

/// Threads of one child: one pid, one column.
struct Threads {
    static void run(World& world, unsigned workers, const Work& work);
};
/// A process each: own pid, own column.
struct Processes {
    static void run(World& world, unsigned workers, const Work& work);
};

/// While it lives, every place between two steps of a protocol is a good place to lose the CPU. Workers started
/// meanwhile inherit it.
class Restless {
  public:
    Restless();
    ~Restless();
    Restless(const Restless&) = delete;
    Restless& operator=(const Restless&) = delete;
};

/// While it lives, one passing of a named place (or of any, nullptr) does something else in between, as another process
/// might: the n-th, from 1.
class Between {
  public:
    Between(const char* place, std::function<void()> other, unsigned nth = 1);
    ~Between();
    Between(const Between&) = delete;
    Between& operator=(const Between&) = delete;
    [[nodiscard]] bool has_happened() const;
};

/// From here on this process dies by SIGKILL at the n-th passing (1: the next) of the named place.
void die_at(const char* place, unsigned n) noexcept;

/// xorshift64: small, and the same everywhere.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15U + 1) {}
    std::uint64_t operator()() noexcept {
        state_ ^= state_ << 13U;
        state_ ^= state_ >> 7U;
        state_ ^= state_ << 17U;
        return state_ >> 11U;
    }
    /// Uniform enough over 0..n-1.
    std::uint32_t below(std::uint32_t n) noexcept { return static_cast<std::uint32_t>((*this)() % n); }

  private:
    std::uint64_t state_;
};

}  // namespace cb::test
