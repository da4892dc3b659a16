#include "executors.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "shm/step.hpp"

namespace cb::test {
namespace {

constexpr std::chrono::seconds kPatience{60};  // only a failing test ever waits that long

void lose_the_cpu(const char*) noexcept {
    thread_local std::uint64_t random = shm::jitter_draw(&random);
    random = random * 6364136223846793005U + 1442695040888963407U;
    if (random >> 62U == 0) ::sched_yield();
}

const char* deadly_place = nullptr;
unsigned passings_left = 0;

void die_in_time(const char* place) noexcept {
    if (std::strcmp(place, deadly_place) == 0 && --passings_left == 0) ::kill(::getpid(), SIGKILL);
}

const char* other_place = nullptr;
unsigned passings_before_other = 0;
std::function<void()> other_work;

void do_other_work(const char* place) noexcept {
    if (!other_work || (other_place != nullptr && std::strcmp(place, other_place) != 0)) return;
    if (--passings_before_other > 0) return;
    const std::function<void()> once = std::move(other_work);
    other_work = nullptr;
    once();
}

}  // namespace

pid_t fork_child(const std::function<void()>& work) {
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (child > 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    work();
    ::_exit(0);
}

int wait_for(pid_t child) {
    int status = 0;
    while (::waitpid(child, &status, 0) != child) {
        if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
    }
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void meet(Board& board, unsigned workers) {
    const std::uint64_t arrival = board.at_line.fetch_add(1);
    const std::uint64_t all = (arrival / workers + 1) * workers;
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (board.at_line.load() < all) {
        if (std::chrono::steady_clock::now() > deadline) return board.expect(false, "a worker never came to the line");
        ::sched_yield();
    }
}

void Threads::run(World& world, unsigned workers, const Work& work) {
    bool is_stale = false;
    const std::uint32_t column = shm::register_child(world.segment, kThreadsPid, world.epoch(), is_stale);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < workers; ++i) {
        threads.emplace_back([&, i] { work({i, workers, kThreadsPid, column}); });
    }
    for (std::thread& thread : threads)
        thread.join();
    if (const char* wrong = shm::validate(world.segment)) world.board.expect(false, wrong);
    world.child_exited(kThreadsPid);
}

void Processes::run(World& world, unsigned workers, const Work& work) {
    std::vector<pid_t> children;
    for (unsigned i = 0; i < workers; ++i) {
        children.push_back(fork_child([&] {
            bool is_stale = false;
            const auto pid = static_cast<std::uint32_t>(::getpid());
            const std::uint32_t column = shm::register_child(world.segment, pid, world.epoch(), is_stale);
            work({i, workers, pid, column});
        }));
    }
    for (const pid_t child : children)
        world.board.expect(wait_for(child) == 0, "a worker did not end well");
    // Before the parent cleans up: nothing may be left for it.
    if (const char* wrong = shm::validate(world.segment)) world.board.expect(false, wrong);
    for (const pid_t child : children)
        world.child_exited(static_cast<std::uint32_t>(child));
}

Restless::Restless() {
    shm::on_step = lose_the_cpu;
}

Restless::~Restless() {
    shm::on_step = nullptr;
}

Between::Between(const char* place, std::function<void()> other, unsigned nth) {
    passings_before_other = nth;
    other_place = place;
    other_work = std::move(other);
    shm::on_step = do_other_work;
}

Between::~Between() {
    shm::on_step = nullptr;
    other_work = nullptr;
}

bool Between::has_happened() const {
    return !other_work;
}

void die_at(const char* place, unsigned n) noexcept {
    deadly_place = place;
    passings_left = n;
    shm::on_step = die_in_time;
}

}  // namespace cb::test
