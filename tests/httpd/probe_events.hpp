// What the tests of probe events have in common: a balancer whose first member is due for a probe, its event log, and a
// log of the calls of each request.
//
// Thread safety: belongs to the main thread.
#pragma once

#include <memory>
#include <sstream>

#include "event_log.hpp"
#include "trip.hpp"

namespace cb::test {

class ProbeEventsTest : public TrafficTest {
  protected:
    /// "PATH|calls|a probe among them|a probe now" of each request.
    static constexpr const char* calls_log =
        "CustomLog calls.log \"%U|%{CIRCUIT_BREAKER_ATTEMPTS}e|%{CIRCUIT_BREAKER_PROBE}e|%{CIRCUIT_BREAKER_PROBE}n\"\n";

    void start(const HttpdOptions& options) {
        httpd_ = std::make_unique<Httpd>(options);
        httpd_->start();
    }
    /// `bad` is asked first, `good` where that does not go.
    void start(const std::string& policy, const std::string& log = to_file_with_probes) {
        start(site(
            std::string(quick_policy) + log + calls_log + metrics_location + "LogLevel circuitbreaker:info\n" + policy,
            balancer_of(member_line(bad_, "loadfactor=100 retry=1") + member_line(good_))));
    }
    /// `bad` has opened, and may be probed.
    void make_due() {
        bad_.answer(Reply::status(503));
        EXPECT_TRUE(wait_until(
            [&] {
                (void)get(httpd_->url("/app/trip"));
                return state_of(*httpd_, bad_) == "open";
            },
            patience, "the trip"));
        EXPECT_TRUE(wait_for_end_of_open_time(*httpd_, bad_));
    }
    [[nodiscard]] Response ask(const std::string& path, const RequestOptions& options = {}) const {
        return get(httpd_->url(path), options);
    }
    [[nodiscard]] std::vector<Event> probe_events() const {
        std::vector<Event> events = read_events(events_file(*httpd_));
        std::erase_if(events, [](const Event& event) { return event.text("event") != "probe"; });
        return events;
    }
    /// The only one there is by then.
    [[nodiscard]] Event the_probe_event() const {
        EXPECT_TRUE(wait_until([&] { return !probe_events().empty(); }, patience, "the event of a probe"));
        const std::vector<Event> events = probe_events();
        EXPECT_EQ(events.size(), 1U);
        return events.at(0);
    }
    /// The line of the calls' log about that path, without it.
    [[nodiscard]] std::string calls_of(const std::string& path) const {
        std::string found;
        EXPECT_TRUE(wait_until(
            [&] {
                std::istringstream lines(read_file(httpd_->root() / "calls.log"));
                for (std::string line; std::getline(lines, line);) {
                    if (line.starts_with(path + "|")) found = line.substr(path.size() + 1);
                }
                return !found.empty();
            },
            patience, path + " in the log"));
        return found;
    }

    Backend bad_{"bad"};
    Backend good_{"good"};
    std::unique_ptr<Httpd> httpd_;
};

}  // namespace cb::test
