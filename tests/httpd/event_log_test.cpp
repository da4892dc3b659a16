// CircuitBreakerEventLog: one line of JSON per event, to a file or a program, whole and valid whatever the names are;
// what is not taken is counted, and no request waits for it.
#include "event_log.hpp"
#include "config_check.hpp"
#include "restarts.hpp"
#include "traffic.hpp"

namespace cb::test {
namespace {

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
    for (const char* words : {"Off probes=Off", "events.json probes=on", "\"|/usr/bin/tee x\" probes=Off"})
        check.expect_accepted("CircuitBreaker On\nCircuitBreakerEventLog " + std::string(words) + "\n");
    for (const char* word : {"b", "probes", "probes=", "probes=Yes", "On"})
        check.expect_refused("CircuitBreakerEventLog a " + std::string(word), {"CircuitBreakerEventLog:", "probes=On"});
    check.expect_refused("CircuitBreakerEventLog a probes=On b", {"\"b\"", "too many"});
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
