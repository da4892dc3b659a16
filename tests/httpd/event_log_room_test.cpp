// CircuitBreakerEventLog with no room for a line: a full pipe, no reader, a full disk. What is lost is counted, what is
// written is whole, and no request waits.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "event_log.hpp"
#include "restarts.hpp"

namespace cb::test {
namespace {

class EventLogWithoutRoom : public TrafficTest {
  protected:
    /// Calls the member until that is so. Each cycle, open -> half-open -> open, is two events.
    template <class Condition>
    [[nodiscard]] static bool cycle_until(const Httpd& httpd, Condition condition) {
        return wait_until(
            [&] {
                (void)get(httpd.url("/app/x"));
                return condition();
            },
            patience, "events");
    }
};
INSTANTIATE_TEST_SUITE_P(Mpms, EventLogWithoutRoom, any_mpm, mpm_name);

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

TEST_P(EventLogWithoutRoom, ThatIsFullOrGoneLosesLinesWhichAreCountedAndNoRequestWaits) {
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
    const auto cycle = [&](auto condition) { return cycle_until(httpd, condition); };
    const auto spells = [&] { return httpd.error_lines_with("event log does not take").size(); };
    const auto ends = [&] { return httpd.error_lines_with("takes its lines again").size(); };
    // A short line may still find room after a long one has not, so there may be more than one spell at first.
    ASSERT_TRUE(cycle([&] { return events_lost(httpd) >= 5; })) << "the pipe is full";
    const std::size_t begun = spells();
    EXPECT_GE(begun, 1U);
    ASSERT_TRUE(cycle([&] { return events_lost(httpd) >= 9; }));
    EXPECT_EQ(spells(), begun) << "one spell is one line";
    EXPECT_EQ(ends(), begun - 1);
    const std::string taken = pipe.read();
    EXPECT_EQ(taken.back(), '\n') << "no half line";
    ASSERT_TRUE(cycle([&] { return ends() == begun; }));
    double said = 0;
    for (const std::string& line : httpd.error_lines_with("takes its lines again"))
        said += std::stod(line.substr(line.find("again; ") + 7));
    const double lost = events_lost(httpd);
    EXPECT_EQ(said, lost) << httpd.describe();
    pipe.close();
    ASSERT_TRUE(cycle([&] { return events_lost(httpd) >= lost + 3; })) << "nobody reads";
    EXPECT_EQ(spells(), begun + 1);
    pipe.open();
    ASSERT_TRUE(cycle([&] { return ends() == begun + 1; }));
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
TEST_P(EventLogWithoutRoom, OnAFullDiskKeepsHalfALineToItselfAndCountsIt) {
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
    const auto cycle = [&](auto condition) { return cycle_until(httpd, condition) && wait_for_no_permits(httpd, app); };
    const auto size = [&] { return std::filesystem::file_size(events_file(httpd)); };
    const auto grows = [&](std::uintmax_t bytes) {
        return cycle([&, from = size()] { return size() > from + bytes; });
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
        ASSERT_TRUE(cycle([&] { return events_lost(httpd) >= lost + 2; })) << httpd.describe();
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

TEST_P(EventLogWithoutRoom, ThatEndsInHalfALineWhenHttpdStartsGoesOnOnTheNextLine) {
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

TEST_P(EventLogWithoutRoom, ToANamedPipeWithoutAReaderDoesNotStopHttpd) {
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

}  // namespace
}  // namespace cb::test
