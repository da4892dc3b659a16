// Processes that are killed, and many restarts: no slot, no place and no count is lost with a child, a server leaves
// nothing behind, and nothing grows.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <set>
#include <sstream>
#include <string>

#include "restarts.hpp"
#include "traffic.hpp"

namespace cb::test {
namespace {

class Killed : public TrafficTest {
  protected:
    /// Enough children at the start to kill most of them: httpd looks for dead ones, and makes new ones, once a second.
    [[nodiscard]] static HttpdOptions many_children(HttpdOptions options, unsigned children, unsigned threads) {
        options.children = children;
        options.threads = threads;
        return options;
    }

    /// Kills all children but a few, one at a time under that load, and returns how many. All are buried when it
    /// returns.
    static unsigned kill_under(const BackgroundLoad& load, const Httpd& httpd, unsigned survivors) {
        const std::vector<pid_t> children = httpd.children();
        EXPECT_GT(children.size(), survivors);
        std::vector<pid_t> killed;
        while (killed.size() + survivors < children.size()) {
            EXPECT_TRUE(load.wait_for_answers(5)) << httpd.describe();
            const pid_t victim = children[killed.size()];
            EXPECT_TRUE(httpd.kill_child(victim));
            killed.push_back(victim);
        }
        expect_burial_of(killed);
        return static_cast<unsigned>(killed.size());
    }
    static void expect_burial_of(const std::vector<pid_t>& killed) {
        EXPECT_TRUE(wait_until(
            [&] { return std::ranges::none_of(killed, [](pid_t pid) { return process_info(pid).has_value(); }); },
            patience, "the parent to bury its children"));
    }

    /// The children that have a connection to the backend.
    static std::vector<pid_t> callers_of(const Httpd& httpd, const Backend& backend) {
        std::set<std::string> sockets;
        std::istringstream lines(read_file("/proc/net/tcp"));
        std::string line;
        for (std::getline(lines, line); std::getline(lines, line);) {
            std::istringstream fields(line);
            std::string number, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
            fields >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >> inode;
            const auto port = std::stoul(remote.substr(remote.find(':') + 1), nullptr, 16);
            if (port == backend.port()) sockets.insert("socket:[" + inode + "]");
        }
        std::vector<pid_t> callers;
        for (const pid_t child : httpd.children()) {
            std::error_code gone;
            for (const auto& fd : std::filesystem::directory_iterator("/proc/" + std::to_string(child) + "/fd", gone)) {
                if (sockets.contains(std::filesystem::read_symlink(fd.path(), gone).string())) {
                    callers.push_back(child);
                    break;
                }
            }
        }
        return callers;
    }

    static std::uint64_t sum(const Httpd& httpd, const std::string& key) {
        std::uint64_t total = 0;
        const BreakerPage page(httpd);
        for (const BreakerBlock& block : page.members())
            total += block.number(key);
        return total;
    }

    Backend one_{"one"};
    Backend two_{"two"};
};

INSTANTIATE_TEST_SUITE_P(Httpd, Killed, each_mpm, mpm_name);

TEST_P(Killed, ChildrenUnderLoadLoseNoPlaceAndNoCountButTheirLast) {
    constexpr unsigned threads = 6;
    Httpd httpd(many_children(site(counting_policy, balancer_of(member_line(one_) + member_line(two_))), 24, 2));
    httpd.start();
    ASSERT_TRUE(httpd.wait_for_children(24));
    BackgroundLoad load(httpd.url("/app/"), {.threads = threads, .time_limit = 60s, .keep_connections = false});
    const unsigned kills = kill_under(load, httpd, 3);
    EXPECT_TRUE(load.wait_for_answers(50));
    const LoadResult result = load.finish();
    EXPECT_GT(result.with_status(200), kills) << result.describe();
    EXPECT_EQ(result.with_status(200) + result.with_status(0), result.total()) << result.describe();
    EXPECT_TRUE(one_.wait_until_quiet() && two_.wait_until_quiet());
    for (const Backend* backend : {&one_, &two_}) {
        EXPECT_TRUE(wait_for_no_permits(httpd, *backend));
        EXPECT_EQ(state_of(httpd, *backend), "closed");
        EXPECT_EQ(BreakerPage(httpd).member(*backend).number("Verdict-failure"), 0U)
            << "a death is no failure of the member";
    }
    // A killed child takes along, at most, the calls that it was just making.
    const std::uint64_t calls = sum(httpd, "Calls");
    EXPECT_LE(calls, one_.requests() + two_.requests());
    EXPECT_GE(calls + std::uint64_t{kills} * 2, result.with_status(200));
    EXPECT_EQ(calls, sum(httpd, "Verdict-success") + sum(httpd, "Verdict-ignore"));
}

TEST_P(Killed, ChildrenWithProbesGiveTheirSlotsBackAsNeutral) {
    Httpd httpd(many_children(site(quick_policy + std::string("CircuitBreakerOpenTime 100ms jitter=0\n"
                                                              "CircuitBreakerProbes 16 concurrent=16\n"),
                                   plain_worker(one_, "disablereuse=on")),  // no idle connections
                              28, 2));
    httpd.start();
    ASSERT_TRUE(httpd.wait_for_children(28));
    one_.answer_next(3, Reply::status(503));
    EXPECT_EQ(statuses(3, httpd.url("/app/")), "503 503 503");
    std::vector<std::future<Response>> probes;
    const auto probe_and_die = [&](unsigned count) {
        EXPECT_TRUE(wait_for_end_of_open_time(httpd, one_));
        one_.hold();
        for (unsigned i = 0; i < count; ++i)
            probes.push_back(get_later(httpd.url("/app/")));
        ASSERT_TRUE(one_.wait_for_concurrent(count)) << httpd.describe();
        EXPECT_EQ(BreakerPage(httpd).member(one_).number("Probes-in-flight"), count);
        const std::vector<pid_t> holders = callers_of(httpd, one_);
        EXPECT_GE(holders.size(), count / 2);  // up to two threads each
        EXPECT_LE(holders.size(), count);
        for (const pid_t child : holders)
            EXPECT_TRUE(httpd.kill_child(child));
        expect_burial_of(holders);
        for (auto& probe : probes)
            EXPECT_NE(probe.get().code, CURLE_OK);
        probes.clear();
        one_.release();
        EXPECT_TRUE(one_.wait_until_quiet());
        EXPECT_TRUE(wait_for_no_permits(httpd, one_)) << httpd.describe();
    };
    // Fifteen that proved nothing end the round, at the same level: nothing is probed for ever.
    probe_and_die(15);
    EXPECT_TRUE(httpd.wait_for_error_line(": half-open -> open:"));
    EXPECT_EQ(transitions(httpd, "half-open", "open"), 1U) << httpd.describe();
    EXPECT_EQ(BreakerPage(httpd).member(one_).number("Level"), 0U) << "a death is no evidence against it";
    // Fewer leave it half-open, with room for as many again.
    probe_and_die(9);
    EXPECT_EQ(state_of(httpd, one_), "half-open");
    EXPECT_EQ(BreakerPage(httpd).member(one_).number("Probes"), 24U);
    for (int i = 0; i < 16; ++i)
        EXPECT_EQ(get(httpd.url("/app/")).status, 200) << i << httpd.describe();
    EXPECT_EQ(state_of(httpd, one_), "closed");
}

TEST_P(Killed, ChildrenUnderAFailingLoadNeverBreakTheCapOfProbes) {
    constexpr unsigned probes = 2;
    Httpd httpd(many_children(site(quick_policy + std::string("CircuitBreakerOpenTime 100ms max=100ms jitter=0\n"
                                                              "CircuitBreakerProbes 2\n"),
                                   plain_worker(one_)),
                              24, 2));
    httpd.start();
    ASSERT_TRUE(httpd.wait_for_children(24));
    one_.answer(Reply::status(503));
    EXPECT_EQ(statuses(3, httpd.url("/app/")), "503 503 503");
    EXPECT_TRUE(one_.wait_until_quiet());
    one_.answer(Reply::status(503).after(5ms));
    one_.forget();
    BackgroundLoad load(httpd.url("/app/"), {.threads = 8, .time_limit = 60s, .keep_connections = false});
    (void)kill_under(load, httpd, 3);
    EXPECT_TRUE(one_.wait_for_requests(10));
    const LoadResult result = load.finish();
    // A dead child's slot may be another's before the backend has seen the closed connection.
    EXPECT_LE(one_.peak(), 2 * probes) << result.describe();
    EXPECT_TRUE(wait_for_no_permits(httpd, one_)) << httpd.describe();
    one_.answer_as_usual();
    EXPECT_TRUE(wait_until(
        [&] {
            (void)get(httpd.url("/app/"));
            return state_of(httpd, one_) == "closed";
        },
        patience, "it to recover"));
}

/// The files in /dev/shm that a process has mapped. (mod_slotmem_shm has some; ours is to have no name.)
std::set<std::string> named_memory_of(pid_t pid) {
    std::set<std::string> files;
    std::istringstream lines(read_file("/proc/" + std::to_string(pid) + "/maps"));
    for (std::string line; std::getline(lines, line);) {
        const std::size_t at = line.find("/dev/shm/");
        if (at != std::string::npos && !line.ends_with("(deleted)")) files.insert(line.substr(at));
    }
    return files;
}

/// Shared memory, semaphores and message queues of System V on this machine.
std::string system_v() {
    std::string text;
    for (const char* table : {"shm", "sem", "msg"})
        text += read_file("/proc/sysvipc/" + std::string(table));
    return text;
}

TEST_P(Killed, ServerStartsCleanAndNothingOfItStays) {
    const std::string two_members = balancer_of(member_line(one_) + member_line(two_));
    Httpd httpd(site(quick_policy + std::string(long_open), two_members));
    const std::string config = httpd.options().config;
    httpd.options().circuitbreaker = false;
    httpd.set_config(two_members);
    const std::string before = system_v();
    httpd.start();
    std::set<std::string> files = named_memory_of(httpd.parent());
    const auto lines_without = std::ranges::count(system_v(), '\n');
    EXPECT_EQ(httpd.stop(), 0);
    EXPECT_EQ(system_v(), before) << "somebody else uses it: this test can't tell";
    httpd.options().circuitbreaker = true;
    httpd.set_config(config);

    httpd.start();
    EXPECT_EQ(named_memory_of(httpd.parent()).size(), files.size()) << "it has none with a name";
    EXPECT_EQ(std::ranges::count(system_v(), '\n'), lines_without);
    files.merge(named_memory_of(httpd.parent()));
    one_.answer(Reply::status(503));
    two_.answer(Reply::status(503));
    for (int i = 0; i < 6; ++i)
        (void)get(httpd.url("/app/"));
    EXPECT_EQ(state_of(httpd, one_), "open");
    httpd.kill_all();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(httpd.root() / "run")) {
        EXPECT_EQ(entry.path().string().find("circuit"), std::string::npos) << entry.path();
    }
    httpd.start();
    const BreakerBlock block = BreakerPage(httpd).member(one_);
    EXPECT_EQ(block.at("State"), "closed");
    EXPECT_EQ(block.number("Calls"), 0U);
    EXPECT_EQ(block.number("In-flight"), 0U);
    files.merge(named_memory_of(httpd.parent()));
    EXPECT_FALSE(files.empty());
    EXPECT_EQ(httpd.stop(), 0);
    EXPECT_TRUE(httpd.left_behind().empty());
    EXPECT_TRUE(std::filesystem::is_empty(httpd.root() / "run"));
    for (const std::string& file : files)
        EXPECT_FALSE(std::filesystem::exists(file)) << file;
    EXPECT_EQ(std::ranges::count(system_v(), '\n'), std::ranges::count(before, '\n'));
}

/// Mappings of a process: all of them, and those of shared memory without a name.
struct Mappings {
    std::size_t all = 0;
    std::size_t shared = 0;
    std::size_t ours = 0;
    std::size_t kib = 0;
};

Mappings mappings_of(pid_t pid) {
    Mappings mappings;
    std::istringstream lines(read_file("/proc/" + std::to_string(pid) + "/maps"));
    for (std::string line; std::getline(lines, line);) {
        ++mappings.all;
        const bool is_shared = line.find(" rw-s ") != std::string::npos;
        if (is_shared) ++mappings.shared;
        if (line.find("circuitbreaker") != std::string::npos) ++mappings.ours;
        std::uint64_t from = 0;
        std::uint64_t to = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx", &from, &to) == 2 && is_shared) mappings.kib += (to - from) / 1024;
    }
    return mappings;
}

class GracefulRestarts : public Killed {};

INSTANTIATE_TEST_SUITE_P(Httpd, GracefulRestarts, each_mpm, mpm_name);

TEST_P(GracefulRestarts, LeaveTheParentAsLargeAsItWasAfterThirtyOfThem) {
    Httpd httpd(site(quick_policy + std::string(long_open),
                     balancer_of(member_line(one_) + member_line(two_)) + plain_worker(one_, "disablereuse=on")));
    httpd.start();
    BackgroundLoad load(httpd.url("/app/"), {.threads = 2, .time_limit = 60s, .keep_connections = false});
    Mappings first;
    std::size_t first_kib = 0;
    std::set<std::string> first_files;
    const auto system_v_lines = std::ranges::count(system_v(), '\n');
    constexpr int warm_up = 5;
    for (int restart = 0; restart < warm_up + 30; ++restart) {
        if (restart == warm_up) {
            ASSERT_TRUE(graceful_to_the_end(httpd)) << httpd.describe();
            first = mappings_of(httpd.parent());
            first_kib = httpd.parent_resident_kib();
            first_files = named_memory_of(httpd.parent());
        }
        ASSERT_TRUE(httpd.graceful()) << httpd.describe();
    }
    ASSERT_TRUE(graceful_to_the_end(httpd)) << httpd.describe();
    const LoadResult result = load.finish();
    EXPECT_TRUE(result.all(200)) << result.describe() << httpd.describe();
    const Mappings last = mappings_of(httpd.parent());
    EXPECT_GT(first.shared, 0U);
    EXPECT_EQ(last.shared, first.shared);
    EXPECT_EQ(last.kib, first.kib);
    EXPECT_EQ(last.ours, first.ours) << "unloaded at each restart";
    EXPECT_LE(last.all, first.all + 3);
    EXPECT_LE(httpd.parent_resident_kib(), first_kib + 512);
    EXPECT_EQ(named_memory_of(httpd.parent()).size(), first_files.size());
    for (const std::string& file : first_files)
        EXPECT_FALSE(std::filesystem::exists(file)) << file;
    EXPECT_EQ(std::ranges::count(system_v(), '\n'), system_v_lines);
}

}  // namespace
}  // namespace cb::test
