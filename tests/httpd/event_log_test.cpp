// CircuitBreakerEventLog: one line of JSON per event, to a file or a program, whole and valid whatever the names are;
// what is not taken is counted, and no request waits for it.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "config_check.hpp"
#include "events.hpp"
#include "metrics_page.hpp"
#include "restarts.hpp"
#include "traffic.hpp"

namespace cb::test {
namespace {

constexpr const char* to_file = "CircuitBreakerEventLog events.json\n";  // below the ServerRoot

std::filesystem::path events_file(const Httpd& httpd) {
    return httpd.root() / "events.json";
}

double events_lost(const Httpd& httpd) {
    return MetricsPage(httpd).series().at("httpd_circuitbreaker_events_lost_total");
}

class EventLog : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, EventLog, any_mpm, mpm_name);

/// What many children, restarts and a program of its own do.
class EventLogOfProcesses : public EventLog {};
INSTANTIATE_TEST_SUITE_P(Mpms, EventLogOfProcesses, each_mpm, mpm_name);

TEST_P(EventLog, HasOneLineForEachChangeOfStateWithWhatLedToIt) {
    Backend app("app");
    Httpd httpd(
        site(std::string(quick_policy) + to_file + "CircuitBreakerSlowCall 60s\n", balancer_of(member_line(app))));
    httpd.start();
    EXPECT_EQ(get(httpd.url("/app/x")).status, 200);
    app.answer(Reply::status(502));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "502 502 502");
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    EXPECT_EQ(get(httpd.url("/app/x"), {.method = "POST"}).status, 502) << "a probe";
    app.answer_as_usual();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    EXPECT_EQ(statuses(2, httpd.url("/app/x")), "200 200");
    ASSERT_TRUE(wait_for_no_permits(httpd, app));

    const std::vector<Event> events = read_events(events_file(httpd));
    ASSERT_EQ(summary(events), (std::vector<std::string>{"closed -> open", "open -> half-open", "half-open -> open",
                                                         "open -> half-open", "half-open -> closed"}));
    for (const Event& event : events) {
        EXPECT_EQ(event.text("member"), app.member());
        EXPECT_EQ(event.text("balancer"), "balancer://app");
        EXPECT_EQ(event.text("vhost"), "127.0.0.1");
        const std::string time = event.text("time");
        EXPECT_TRUE(time.size() == 24 && time.starts_with("20") && time.ends_with("Z") && time[10] == 'T') << time;
        EXPECT_GT(event.number("pid"), 1);
    }
    const Event& trip = events[0];
    EXPECT_EQ(trip.text("reason"), "consecutive failures");
    EXPECT_EQ(trip.number("calls"), 4);
    EXPECT_EQ(trip.number("failures"), 3);
    EXPECT_EQ(trip.number("slow"), 0);
    EXPECT_EQ(trip.number("failure_rate"), 75);
    EXPECT_EQ(trip.number("level"), 0);
    EXPECT_EQ(trip.number("generation"), 1);
    EXPECT_EQ(trip.number("open_for_ms"), 500);
    ASSERT_EQ(trip.list("recent").size(), 3U) << trip.line();
    for (const Event& call : trip.list("recent")) {
        EXPECT_EQ(call.text("outcome"), "502");
        EXPECT_EQ(call.text("method"), "GET");
        EXPECT_LT(call.number("latency_ms"), 10'000);
        EXPECT_LE(call.text("time"), trip.text("time"));
        EXPECT_FALSE(call.has("path")) << "not without CircuitBreakerRecordPath";
    }
    EXPECT_EQ(events[1].text("reason"), "open time over");
    EXPECT_TRUE(events[1].list("recent").empty());
    EXPECT_EQ(events[2].text("reason"), "probe failed");
    EXPECT_EQ(events[2].number("level"), 1);
    EXPECT_EQ(events[2].number("generation"), 3);
    EXPECT_EQ(events[2].number("open_for_ms"), 1000);
    EXPECT_EQ(events[2].number_in("probes", "failed"), 1);
    EXPECT_EQ(events[2].list("recent").size(), 4U);
    EXPECT_EQ(events[2].list("recent")[3].text("method"), "POST") << "the newest comes last";
    EXPECT_EQ(events[4].number_in("probes", "succeeded"), 1);
}

TEST_P(EventLog, TellsOfNoProbeWhereAFatalCallOpensAClosedBreaker) {
    Backend app("app");
    Httpd httpd(
        site(quick_policy + std::string(long_open) + to_file + "CircuitBreakerVerdict fatal 418\n", plain_worker(app)));
    httpd.start();
    app.answer(Reply::status(418));
    EXPECT_EQ(get(httpd.url("/app/x")).status, 418);
    ASSERT_TRUE(wait_for_events(events_file(httpd), 1)) << httpd.describe();
    const std::vector<Event> events = read_events(events_file(httpd));
    EXPECT_EQ(summary(events), std::vector<std::string>{"closed -> open"});
    EXPECT_EQ(events[0].number("failures"), 1);
    EXPECT_EQ(events[0].number_in("probes", "failed"), 0);
}

TEST_P(EventLogOfProcesses, OfManyMembersThatTripAtOnceInManyChildrenHasWholeLinesOnly) {
    std::vector<std::unique_ptr<Backend>> backends;
    std::string proxied;
    for (int i = 0; i < 12; ++i) {
        Backend& backend = *backends.emplace_back(std::make_unique<Backend>("b" + std::to_string(i)));
        backend.answer(Reply::status(502));
        proxied += "ProxyPass /" + backend.name() + " " + backend.member() + "\n";
    }
    Httpd httpd(crowded(std::string(quick_policy) + long_open + to_file, proxied));
    httpd.start();
    std::vector<std::future<LoadResult>> loads;
    for (const auto& backend : backends) {
        loads.push_back(std::async(std::launch::async, [url = httpd.url("/" + backend->name() + "/x")] {
            return load(url, {.threads = 2, .requests_per_thread = 4});
        }));
    }
    for (auto& each : loads)
        EXPECT_TRUE(each.get().errors.empty());
    for (const auto& backend : backends)
        ASSERT_TRUE(wait_for_no_permits(httpd, *backend));
    const std::vector<Event> events = read_events(events_file(httpd));
    EXPECT_EQ(events.size(), 12U);
    std::set<std::string> members;
    for (const Event& event : events) {
        EXPECT_EQ(event.text("to"), "open");
        members.insert(event.text("member"));
    }
    EXPECT_EQ(members.size(), 12U) << "each once";
}

TEST_P(EventLogOfProcesses, GoesOnOverRestartsAndTellsOfSuppressedTrips) {
    Backend one("one");
    Backend two("two");
    const std::string policy =
        std::string(quick_policy) + long_open + to_file + "CircuitBreakerMaxOpen 50\nCircuitBreakerRecordPath On\n";
    Httpd httpd(site(policy, balancer_of(member_line(one) + member_line(two))));
    httpd.start();
    one.answer(Reply::status(502));
    ASSERT_TRUE(wait_until(
        [&] {
            (void)get(httpd.url("/app/x"));
            return one.requests() >= 3;
        },
        patience, "the trip"));
    ASSERT_TRUE(wait_for_events(events_file(httpd), 1));
    ASSERT_TRUE(graceful_to_the_end(httpd));
    two.answer(Reply::status(502));
    EXPECT_EQ(answerers(5, httpd.url("/app/x")), "two two two two two");
    ASSERT_TRUE(wait_for_no_permits(httpd, two));
    const std::vector<Event> events = read_events(events_file(httpd));
    ASSERT_EQ(summary(events), (std::vector<std::string>{"closed -> open", "suppressed"}));
    EXPECT_EQ(events[1].text("member"), two.member());
    EXPECT_EQ(events[1].text("from"), "closed");
    EXPECT_TRUE(events[1].is_null("to"));
    EXPECT_EQ(events[1].text("reason"), "consecutive failures");
    ASSERT_EQ(events[1].list("recent").size(), 3U);
    EXPECT_EQ(events[1].list("recent")[0].text("path"), "/app/x");
}

/// A named pipe with room for one page, and the test at its reading end.
class NarrowPipe {
  public:
    explicit NarrowPipe(const std::filesystem::path& path) : path_(path) {
        EXPECT_EQ(::mkfifo(path.c_str(), 0666), 0);
        open();
    }
    void open() {
        end_ = Socket(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
        EXPECT_TRUE(end_.valid());
        EXPECT_GE(::fcntl(end_.fd(), F_SETPIPE_SZ, 4096), 4096);
    }
    void close() { end_.close(); }
    std::string read() {
        char text[65536];
        const ssize_t count = ::read(end_.fd(), text, sizeof text);
        return {text, count > 0 ? static_cast<std::size_t>(count) : 0};
    }

  private:
    std::filesystem::path path_;
    Socket end_;
};

TEST_P(EventLog, ThatIsFullOrGoneLosesLinesWhichAreCountedAndNoRequestWaits) {
    Backend app("app");
    Httpd httpd(site(std::string(quick_policy) +
                         "CircuitBreakerOpenTime 100ms factor=1 jitter=0\n"
                         "CircuitBreakerEventLog pipe\n" +
                         metrics_location,
                     plain_worker(app)));
    NarrowPipe pipe(httpd.root() / "pipe");
    httpd.start();
    const std::vector<pid_t> children = httpd.children();
    app.answer(Reply::status(502));
    // A cycle is two events: open -> half-open -> open.
    const auto cycle_until = [&](auto&& condition) {
        return wait_until(
            [&] {
                (void)get(httpd.url("/app/x"));
                return condition();
            },
            patience, "events");
    };
    const auto spells = [&] { return httpd.error_lines_with("event log does not take").size(); };
    const auto ends = [&] { return httpd.error_lines_with("takes its lines again").size(); };
    // A short line may still find room after a long one has not, so there may be more than one spell at first.
    ASSERT_TRUE(cycle_until([&] { return events_lost(httpd) >= 5; })) << "the pipe is full";
    const std::size_t begun = spells();
    EXPECT_GE(begun, 1U);
    ASSERT_TRUE(cycle_until([&] { return events_lost(httpd) >= 9; }));
    EXPECT_EQ(spells(), begun) << "one spell is one line";
    EXPECT_EQ(ends(), begun - 1);
    const std::string taken = pipe.read();
    EXPECT_EQ(taken.back(), '\n') << "no half line";
    ASSERT_TRUE(cycle_until([&] { return ends() == begun; }));
    double said = 0;
    for (const std::string& line : httpd.error_lines_with("takes its lines again"))
        said += std::stod(line.substr(line.find("again; ") + 7));
    const double lost = events_lost(httpd);
    EXPECT_EQ(said, lost) << httpd.describe();
    pipe.close();
    ASSERT_TRUE(cycle_until([&] { return events_lost(httpd) >= lost + 3; })) << "nobody reads";
    EXPECT_EQ(spells(), begun + 1);
    pipe.open();
    ASSERT_TRUE(cycle_until([&] { return ends() == begun + 1; }));
    EXPECT_NE(pipe.read(), "");
    const std::vector<pid_t> now = httpd.children();  // perhaps more
    for (const pid_t child : children)
        EXPECT_EQ(std::ranges::count(now, child), 1) << "no child died of it\n" << httpd.describe();
    EXPECT_TRUE(httpd.error_lines_with("exit signal").empty());
}

/// From now on no process of that server can write further than that into any file; RLIM_INFINITY: as far as it may.
/// (Its children belong to another user, whose limits nobody may change: there are new ones then.)
void limit_files(const Httpd& httpd, rlim_t size) {
    rlimit limit{};
    EXPECT_EQ(::prlimit(httpd.parent(), RLIMIT_FSIZE, nullptr, &limit), 0);
    limit.rlim_cur = std::min(size, limit.rlim_max);
    EXPECT_EQ(::prlimit(httpd.parent(), RLIMIT_FSIZE, &limit, nullptr), 0);
    const std::vector<pid_t> children = httpd.children();
    for (const pid_t child : children)
        EXPECT_TRUE(httpd.kill_child(child));
    EXPECT_TRUE(httpd.wait_for_end_of(children));
}

/// The lines of an event log that may have half lines among them.
struct TornLog {
    std::vector<std::string> halves;  // what is no event
    std::vector<Event> events;

    explicit TornLog(const std::filesystem::path& file) {
        std::istringstream lines(read_file(file));
        for (std::string line; std::getline(lines, line);) {
            try {
                events.emplace_back(line);
            } catch (const std::runtime_error&) {
                halves.push_back(line);
            }
        }
    }
};

// (As on a full disk: what still has room is written, and then nothing.)
TEST_P(EventLog, OnAFullDiskKeepsHalfALineToItselfAndCountsIt) {
    Backend app("app");
    Httpd httpd(site(
        std::string(quick_policy) + to_file + "CircuitBreakerOpenTime 100ms factor=1 jitter=0\n" + metrics_location,
        plain_worker(app)));
    // So that the other logs are far from the limit.
    const std::string filler(999, ' ');
    std::string before;
    while (before.size() < 1'000'000)
        before += "{\"event\":\"filler\"}" + filler + "\n";
    std::ofstream(events_file(httpd)) << before;
    httpd.start();
    app.answer(Reply::status(502));
    const auto cycle_until = [&](auto&& condition) {
        return wait_until(
                   [&] {
                       (void)get(httpd.url("/app/x"));
                       return condition();
                   },
                   patience, "events") &&
               wait_for_no_permits(httpd, app);
    };
    const auto size = [&] { return std::filesystem::file_size(events_file(httpd)); };
    const auto grows = [&](std::uintmax_t bytes) {
        return cycle_until([&, from = size()] { return size() > from + bytes; });
    };
    ASSERT_TRUE(grows(1500));
    const std::vector<Event> first = TornLog(events_file(httpd)).events;
    const auto opened = std::ranges::find_if(
        first, [](const Event& event) { return event.has("to") && event.text("to") == "half-open"; });
    ASSERT_NE(opened, first.end());
    // The last room: for all but the newline of such an event, which comes next.
    for (const std::size_t room : {std::size_t{1}, std::size_t{100}, opened->line().size()}) {
        const double lost = events_lost(httpd);
        limit_files(httpd, size() + room);
        ASSERT_TRUE(cycle_until([&] { return events_lost(httpd) >= lost + 2; })) << httpd.describe();
        limit_files(httpd, RLIM_INFINITY);
        ASSERT_TRUE(grows(1500));
    }
    const TornLog log(events_file(httpd));
    EXPECT_EQ(std::ranges::count(log.halves, ""), 0) << "no empty lines";
    ASSERT_GE(log.halves.size(), 2U);
    EXPECT_LE(log.halves.size(), 3U) << "the pid of another child may have another length";
    EXPECT_EQ(log.halves[0], "{");
    EXPECT_EQ(log.halves[1].size(), 100U) << log.halves[1];
    EXPECT_EQ(read_file(events_file(httpd)).back(), '\n');
    const auto written =
        std::ranges::count_if(log.events, [](const Event& event) { return event.text("event") != "filler"; });
    const auto reports =
        BreakerPage(httpd).member(app).number("Transitions") + httpd.error_lines_with("flapping: ").size();
    EXPECT_EQ(static_cast<double>(written) + events_lost(httpd), static_cast<double>(reports));
    EXPECT_EQ(httpd.error_lines_with("takes its lines again").size(), 3U) << httpd.describe();
}

TEST_P(EventLog, ThatEndsInHalfALineWhenHttpdStartsGoesOnOnTheNextLine) {
    Backend app("app");
    Httpd httpd(site(std::string(quick_policy) + long_open + to_file, plain_worker(app)));
    std::ofstream(events_file(httpd)) << "{\"event\":\"older\"}\n{\"event\":\"tra";
    httpd.start();
    app.answer(Reply::status(502));
    (void)statuses(3, httpd.url("/app/x"));
    ASSERT_TRUE(wait_for_events(events_file(httpd), 3)) << httpd.describe();
    const TornLog log(events_file(httpd));
    EXPECT_EQ(log.halves, std::vector<std::string>{"{\"event\":\"tra"});
    ASSERT_EQ(log.events.size(), 2U);
    EXPECT_EQ(log.events[1].text("to"), "open");
}

TEST_P(EventLog, ToANamedPipeWithoutAReaderDoesNotStopHttpd) {
    Backend app("app");
    Httpd httpd(site(std::string(quick_policy) + long_open + "CircuitBreakerEventLog pipe\n" + metrics_location,
                     plain_worker(app)));
    NarrowPipe pipe(httpd.root() / "pipe");
    pipe.close();
    httpd.start();
    ASSERT_TRUE(graceful_to_the_end(httpd)) << httpd.describe();
    app.answer(Reply::status(502));
    (void)statuses(3, httpd.url("/app/x"));
    ASSERT_TRUE(httpd.wait_for_error_line("event log does not take")) << httpd.describe();
    EXPECT_EQ(events_lost(httpd), 1);
}

TEST_P(EventLogOfProcesses, OfAProgramIsRestartedByHttpdWhenItDiesAndAfterAGracefulRestart) {
    Backend app("app");
    Httpd httpd(
        site(std::string(quick_policy) + "CircuitBreakerOpenTime 100ms factor=1 jitter=0\n", plain_worker(app)));
    httpd.set_config(httpd.options().config + "CircuitBreakerEventLog \"|/usr/bin/tee -a " +
                     events_file(httpd).string() + "\"\n");
    httpd.start();
    const auto program = [&] {
        for (const ProcessInfo& process : all_processes()) {
            if (process.parent == httpd.parent() && process.name == "tee" && process.state != 'Z') return process.pid;
        }
        return pid_t{0};
    };
    const auto is_program_there = [&] { return program() != 0; };
    ASSERT_TRUE(wait_until(is_program_there, patience, "the program"));
    app.answer(Reply::status(502));
    (void)statuses(3, httpd.url("/app/x"));
    ASSERT_TRUE(wait_for_events(events_file(httpd), 1));
    const pid_t first = program();
    ::kill(first, SIGKILL);
    ASSERT_TRUE(httpd.wait_for_error_line("failed unexpectedly"));
    ASSERT_TRUE(wait_until([&] { return program() != 0 && program() != first; }, patience, "the next program"));
    const auto one_more_event = [&] {
        const std::size_t before = read_events(events_file(httpd)).size();
        return wait_until(
            [&] {
                (void)get(httpd.url("/app/x"));
                return read_events(events_file(httpd)).size() > before;
            },
            patience, "one more event");
    };
    EXPECT_TRUE(one_more_event());
    ASSERT_TRUE(graceful_to_the_end(httpd));
    EXPECT_TRUE(one_more_event());
    EXPECT_EQ(httpd.stop(), 0);
    EXPECT_TRUE(httpd.left_behind().empty());
}

TEST(EventLogNames, WhateverTheyHoldTheLineIsJsonAndAtMostAPipesAtomicWrite) {
    Backend app("app");
    app.answer(Reply::status(502));
    const std::string hostile = "q'\\\"\\\\<&>\xC3\xA4\xFF$(id)`id`";
    const std::string path = "/" + std::string(330, 'p');
    Httpd httpd({.config = std::string(quick_policy) + long_open + to_file + status_location + "<Proxy \"balancer://" +
                           hostile + "\">\n" + "    BalancerMember " + app.member() + path +
                           "\n</Proxy>\nProxyPass /app \"balancer://" + hostile + "/\"\n"});
    httpd.start();
    (void)statuses(20, httpd.url("/app/x"));
    ASSERT_TRUE(wait_for_events(events_file(httpd), 1)) << httpd.describe();
    const Event event = read_events(events_file(httpd)).at(0);
    EXPECT_EQ(event.text("balancer"), "balancer://q'\"\\<&>\xC3\xA4\xEF\xBF\xBD$(id)`id`") << event.line();
    EXPECT_EQ(event.text("member"), app.member() + path);
    EXPECT_LE(event.line().size(), 4095U);
}

TEST(EventLogNames, ThatAreLongLeaveRoomForTheNewestFailingCallsOnly) {
    Backend app("app");
    app.answer(Reply::garbage());  // "protocol", the longest of the outcomes
    std::string long_name = "www";
    for (const char label : {'v', 'w', 'x', 'y'})
        long_name += "." + std::string(60, label);
    const std::string long_balancer(80, 'b');
    const std::string path = "/" + std::string(330, 'p');
    Httpd httpd({.config = std::string(quick_policy) + long_open + to_file +
                           "CircuitBreakerConsecutiveFailures 20\nCircuitBreakerRecordPath On\nServerName " +
                           long_name + "\n" + status_location + "<Proxy balancer://" + long_balancer +
                           ">\n    BalancerMember " + app.member() + path + "\n</Proxy>\nProxyPass /app balancer://" +
                           long_balancer + "\n"});
    httpd.start();
    for (int i = 10; i < 30; ++i)
        (void)get(httpd.url("/app/" + std::to_string(i) + std::string(200, 'q')), {.method = "PROPFIND"});
    ASSERT_TRUE(wait_for_events(events_file(httpd), 1)) << httpd.describe();
    const Event event = read_events(events_file(httpd)).at(0);
    EXPECT_EQ(event.text("vhost"), long_name);
    EXPECT_LE(event.line().size(), 4095U);
    EXPECT_GE(event.line().size(), 3800U) << "or there was room for all, and this test proves nothing";
    const std::vector<Event> recent = event.list("recent");
    EXPECT_LT(recent.size(), 16U);
    EXPECT_GT(recent.size(), 8U);
    EXPECT_TRUE(recent.back().text("path").starts_with("/app/29qqq")) << recent.back().line();
}

TEST(EventLogAtTheStart, ThatCannotBeOpenedIsRefusedWithItsName) {
    for (const std::string target : {"no/such/folder/events.json", "|/no/such/program -x", "run"}) {
        Httpd httpd({.config = "CircuitBreaker On\nCircuitBreakerEventLog \"" + target +
                               "\"\nProxyPass /app http://127.0.0.1:9/\n"});
        EXPECT_FALSE(httpd.try_start()) << target;
        const std::string said = httpd.console() + httpd.error_log();
        EXPECT_NE(said.find("CircuitBreakerEventLog: can't "), std::string::npos) << said;
        EXPECT_NE(said.find(target.substr(target.front() == '|' ? 1 : 0)), std::string::npos) << said;
    }
}

TEST(EventLogDirective, BelongsToTheServerAlone) {
    ConfigCheck check("ProxyPass / http://127.0.0.1:9001/\n");
    for (const char* target : {"Off", "events.json", "\"|/usr/bin/tee x\"", "\"||/usr/bin/tee x\"", "\"|$cat > x\""})
        check.expect_accepted("CircuitBreaker On\nCircuitBreakerEventLog " + std::string(target) + "\n");
    for (const char* target : {"\"\"", "\"|\"", "\"| \"", "\"||\"", "\"|$\""})
        check.expect_refused("CircuitBreakerEventLog " + std::string(target),
                             {"CircuitBreakerEventLog:", "\"|PROGRAM\""});
    check.expect_refused("CircuitBreakerEventLog a b", {"\"b\"", "too many"});
    const std::string line = "CircuitBreakerEventLog x";
    check.expect_refused("<VirtualHost *:81>\n" + line + "\n</VirtualHost>", {"not allowed", "outside all sections"},
                         line);
    for (const char* section : {"Proxy \"*\"", "Location /"}) {
        const std::string name = section;
        check.expect_refused("<" + name + ">\n" + line + "\n</" + name.substr(0, name.find(' ')) + ">",
                             {"CircuitBreakerEventLog", "not allowed"}, line);
    }
}

}  // namespace
}  // namespace cb::test
