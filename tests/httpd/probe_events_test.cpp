// The event of each probe: what it was, where its round stands, and whether another member got the request.
#include "probe_events.hpp"

namespace cb::test {
namespace {

class ProbeEvents : public ProbeEventsTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, ProbeEvents, any_mpm, mpm_name);

/// Of processes that are killed.
class ProbeEventsOfProcesses : public ProbeEventsTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, ProbeEventsOfProcesses, each_mpm, mpm_name);

TEST_P(ProbeEvents, AFailedOneHasWhatFailedAndThatAnotherMemberGotTheRequest) {
    start("CircuitBreakerProbes 3 tolerate=1\n");
    make_due();
    EXPECT_EQ(ask("/app/x").backend(), "good");
    const Event event = the_probe_event();
    EXPECT_EQ(event.text("member"), bad_.member());
    EXPECT_EQ(event.text("balancer"), "balancer://app");
    EXPECT_EQ(event.text("from"), "half-open");
    EXPECT_TRUE(event.is_null("to"));
    EXPECT_EQ(event.text("reason"), "failure:503");
    EXPECT_EQ(event.text("outcome"), "503");
    EXPECT_EQ(event.text("verdict"), "failure");
    EXPECT_EQ(event.text("result"), "failure");
    EXPECT_EQ(event.text("method"), "GET");
    EXPECT_LT(event.number("latency_ms"), 10'000);
    EXPECT_EQ(event.number("round"), 3);
    EXPECT_EQ(event.number_in("probes", "succeeded"), 0);
    EXPECT_EQ(event.number_in("probes", "failed"), 1);
    EXPECT_EQ(event.number("generation"), 2) << "of the last change";
    EXPECT_NE(event.line().find("\"failover\":true"), std::string::npos) << event.line();
    EXPECT_TRUE(event.list("recent").empty());
    EXPECT_EQ(calls_of("/app/x"), bad_.member() + " probe failure:503, " + good_.member() + " success|1|-");
    const std::string begin = "circuit breaker: member " + bad_.member() + " of balancer://app: probe: failure:503 in ";
    ASSERT_EQ(httpd_->error_lines_with(begin).size(), 1U) << httpd_->describe();
    EXPECT_TRUE(
        httpd_->error_lines_with(begin)[0].ends_with(" ms, 0 of 3 succeeded, 1 failed; another member got the request"))
        << httpd_->error_lines_with(begin)[0];
}

TEST_P(ProbeEvents, ASuccessfulOneHasTheCountsThatCloseTheBreaker) {
    start("CircuitBreakerProbes 2\n");
    make_due();
    bad_.answer_as_usual();
    EXPECT_EQ(ask("/app/x").backend(), "bad");
    EXPECT_EQ(ask("/app/y").backend(), "bad");
    ASSERT_TRUE(wait_until([&] { return probe_events().size() == 2; }, patience, "two events"));
    const Event event = probe_events()[1];
    EXPECT_EQ(event.text("from"), "closed") << "the present state";
    EXPECT_EQ(event.text("reason"), "success");
    EXPECT_EQ(event.text("outcome"), "200");
    EXPECT_EQ(event.text("verdict"), "success");
    EXPECT_EQ(event.text("result"), "success");
    EXPECT_EQ(event.number("round"), 2);
    EXPECT_EQ(event.number_in("probes", "succeeded"), 2);
    EXPECT_NE(event.line().find("\"failover\":false"), std::string::npos) << event.line();
    EXPECT_EQ(calls_of("/app/y"), bad_.member() + " probe success|1|1");
}

TEST_P(ProbeEvents, APostThatFailsIsNotWithheld) {
    start("");
    make_due();
    EXPECT_EQ(ask("/app/x", {.method = "POST", .body = "x"}).backend(), "bad");
    const Event event = the_probe_event();
    EXPECT_EQ(event.text("method"), "POST");
    EXPECT_EQ(event.text("from"), "open");
    EXPECT_NE(event.line().find("\"failover\":false"), std::string::npos) << event.line();
    EXPECT_EQ(calls_of("/app/x"), bad_.member() + " probe failure:503|1|1");
}

TEST_P(ProbeEvents, AnAnswerThatIsHeldBackIsToldOfOnceWhateverBecomesOfIt) {
    start("CircuitBreakerProbes 2 tolerate=1\nCircuitBreakerVerdict failure 200 \"body=/wrong/\"\n");
    make_due();
    bad_.answer([](const Request& request) {
        return Reply::ok(request.path == "/wrong" ? "wrong" : "right").header("Content-Type", "text/plain");
    });
    EXPECT_EQ(ask("/app/wrong").backend(), "good");
    EXPECT_EQ(ask("/app/right").backend(), "bad");
    ASSERT_TRUE(wait_until([&] { return probe_events().size() >= 2; }, patience, "two events"));
    const std::vector<Event> events = probe_events();
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].text("reason"), "failure:body=/wrong/");
    EXPECT_NE(events[0].line().find("\"failover\":true"), std::string::npos) << events[0].line();
    EXPECT_EQ(events[1].text("reason"), "success");
    EXPECT_NE(events[1].line().find("\"failover\":false"), std::string::npos) << events[1].line();
}

TEST_P(ProbeEvents, WhoseRequestNobodyElseTakesHaveTheirCallAloneInTheLog) {
    start(std::string("<Proxy \"") + good_.member() + "\">\n    CircuitBreakerMaxConcurrent 1\n</Proxy>\n");
    make_due();
    good_.hold();
    // It is a probe, too, and then the one call that the other member may have.
    auto holder = get_later(httpd_->url("/app/held"));
    ASSERT_TRUE(good_.wait_for_concurrent(1));
    ASSERT_TRUE(wait_for_end_of_open_time(*httpd_, bad_));
    const std::size_t before = probe_events().size();
    EXPECT_EQ(ask("/app/x").backend(), "bad") << "there is no place at the other one";
    good_.release();
    EXPECT_EQ(holder.get().backend(), "good");
    ASSERT_TRUE(wait_until([&] { return probe_events().size() == before + 1; }, patience, "the event"));
    EXPECT_NE(probe_events().back().line().find("\"failover\":false"), std::string::npos);
    EXPECT_EQ(calls_of("/app/x"), bad_.member() + " probe failure:503|1|1");
    EXPECT_TRUE(httpd_->wait_for_access_line(
        "path=/app/x member=" + bad_.member() + " state=half-open verdict=failure:503 probe=1", 1));
}

TEST_P(ProbeEvents, ATunnelIsToldOfWhileItLasts) {
    start(site(std::string(quick_policy) + to_file_with_probes, plain_worker(bad_, "upgrade=websocket")));
    trip(*httpd_, bad_);
    bad_.answer(Reply::upgrade());
    ASSERT_TRUE(wait_for_end_of_open_time(*httpd_, bad_));
    RawClient tunnel(httpd_->port());
    ASSERT_TRUE(tunnel.send("GET /app/t HTTP/1.1\r\nHost: me\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
    EXPECT_NE(tunnel.read_until("\r\n\r\n").find(" 101 "), std::string::npos);
    const Event event = the_probe_event();
    EXPECT_EQ(event.text("outcome"), "101");
    EXPECT_EQ(event.text("result"), "success");
    ASSERT_TRUE(tunnel.send("still there"));
    EXPECT_EQ(tunnel.read_until("there"), "still there");
    tunnel.close();
    EXPECT_TRUE(bad_.wait_until_quiet());
    EXPECT_EQ(probe_events().size(), 1U);
}

TEST_P(ProbeEvents, AStreamIsToldOfWhenItHasSettled) {
    start(site(std::string(quick_policy) + to_file_with_probes + "CircuitBreakerSettle 100ms\n", plain_worker(bad_)));
    trip(*httpd_, bad_);
    bad_.answer_path("/stream", Reply::of_size(1'000'000).in_chunks().dripping(50, 20ms));
    ASSERT_TRUE(wait_for_end_of_open_time(*httpd_, bad_));
    RawClient client(httpd_->port());
    ASSERT_TRUE(client.send("GET /app/stream HTTP/1.1\r\nHost: me\r\n\r\n"));
    const Event event = the_probe_event();
    EXPECT_EQ(event.text("outcome"), "200");
    EXPECT_EQ(event.text("reason"), "success") << "though it may have been settled after its deadline";
    EXPECT_EQ(bad_.concurrent(), 1U) << "it goes on";
}

TEST_P(ProbeEvents, AreOnlyInTheErrorLogWithProbesOff) {
    start("", to_file);
    make_due();
    EXPECT_EQ(ask("/app/x").backend(), "good");
    EXPECT_TRUE(httpd_->wait_for_error_line(": probe: failure:503 in "));
    EXPECT_EQ(summary(read_events(events_file(*httpd_))),
              (std::vector<std::string>{"closed -> open", "open -> half-open", "half-open -> open"}));
}

TEST_P(ProbeEvents, AFatalProbesChangeHasTheCountsOfItsRound) {
    start("CircuitBreakerProbes 3 tolerate=2\nCircuitBreakerVerdict fatal 418\n");
    make_due();
    bad_.answer_next(1, Reply::status(503));
    EXPECT_EQ(ask("/app/x").backend(), "good");
    bad_.answer(Reply::status(418));
    EXPECT_EQ(ask("/app/x").backend(), "good");
    EXPECT_TRUE(
        httpd_->wait_for_error_line("half-open -> open: fatal outcome, 0 succeeded, 2 failed, 0 proved nothing;"))
        << httpd_->describe();
}

TEST_P(ProbeEvents, MarkTheFailingCallsOfAMember) {
    start("CircuitBreakerSlowCall 100ms\nCircuitBreakerProbes 2\n");
    make_due();
    bad_.answer(Reply::ok().after(150ms));
    EXPECT_EQ(ask("/app/x").status, 200) << "slow, so failed";
    ASSERT_TRUE(wait_for_no_permits(*httpd_, bad_));
    const std::string page = ask("/breakers?format=json").body;
    EXPECT_NE(page.find("\"method\":\"GET\",\"probe\":false,\"slow\":false"), std::string::npos) << page;
    EXPECT_NE(page.find("\"method\":\"GET\",\"probe\":true,\"slow\":true"), std::string::npos) << page;
    EXPECT_NE(page.find("\"probe_verdicts\":{\"success\":1,\"failure\":0"), std::string::npos) << page;
    EXPECT_NE(page.find("\"2xx\":1"), std::string::npos) << page;
    EXPECT_NE(ask("/breakers").body.find("200, slow, a probe</td>"), std::string::npos);
    const std::vector<Event> events = read_events(events_file(*httpd_));
    const Event& opened =
        *std::ranges::find_if(events, [](const Event& event) { return event.text("reason") == "probe failed"; });
    EXPECT_NE(opened.list("recent").back().line().find("\"probe\": true, \"slow\": true"), std::string::npos)
        << opened.line();
    const MetricsPage metrics(*httpd_);
    EXPECT_EQ(metrics.value("slow_calls_total", bad_, {"probe=\"1\""}), 1);
    EXPECT_EQ(metrics.value("slow_calls_total", bad_, {"probe=\"0\""}), 0);
}

TEST_P(ProbeEvents, WithTheLongestNamesAreWholeLines) {
    std::string long_name = "www";
    for (const char label : {'v', 'w', 'x', 'y'})
        long_name += "." + std::string(60, label);
    const std::string long_balancer(80, 'b');
    const std::string reason = "\"body=/" + std::string(400, 'r') + "|./\"";
    start(HttpdOptions{.config = std::string(quick_policy) + to_file_with_probes + "ServerName " + long_name + "\n" +
                                 status_location + "CircuitBreakerProbeVerdict failure " + reason +
                                 "\n<Proxy balancer://" + long_balancer + ">\n    BalancerMember " + bad_.member() +
                                 "/" + std::string(330, 'p') + "\n</Proxy>\nProxyPass /app balancer://" +
                                 long_balancer + "\n"});
    const std::string member = bad_.member() + "/" + std::string(330, 'p');
    bad_.answer(Reply::status(503));
    (void)statuses(3, httpd_->url("/app/x"));
    bad_.answer(Reply::ok("x").header("Content-Type", "text/plain"));
    ASSERT_TRUE(wait_for_end_of_open_time(*httpd_, member));
    EXPECT_EQ(ask("/app/x").status, 200);
    const Event event = the_probe_event();
    EXPECT_EQ(event.text("vhost"), long_name);
    EXPECT_EQ(event.text("member"), member);
    EXPECT_TRUE(event.text("reason").starts_with("failure:body=/rrr")) << event.line();
    EXPECT_LE(event.line().size(), 4095U);
}

TEST_P(ProbeEventsOfProcesses, OfADeadChildAreToldByTheParent) {
    HttpdOptions options = site(std::string(quick_policy) + to_file_with_probes, plain_worker(bad_));
    options.children = 2;
    start(options);
    trip(*httpd_, bad_);
    ASSERT_TRUE(wait_for_end_of_open_time(*httpd_, bad_));
    bad_.hold();
    auto probe = get_later(httpd_->url("/app/x"));
    ASSERT_TRUE(bad_.wait_for_concurrent(1));
    for (const pid_t child : httpd_->children())
        EXPECT_TRUE(httpd_->kill_child(child));
    const Event event = the_probe_event();
    bad_.release();
    (void)probe.get();
    EXPECT_EQ(event.text("reason"), "its process died");
    EXPECT_EQ(event.text("from"), "half-open");
    EXPECT_TRUE(event.is_null("outcome"));
    EXPECT_TRUE(event.is_null("latency_ms"));
    EXPECT_TRUE(event.is_null("method"));
    EXPECT_EQ(event.text("verdict"), "ignore");
    EXPECT_EQ(event.text("result"), "neutral");
    EXPECT_EQ(event.number("round"), 1);
    EXPECT_EQ(event.number_in("probes", "neutral"), 1);
    EXPECT_EQ(event.number("pid"), httpd_->parent());
    EXPECT_NE(event.line().find("\"failover\":false"), std::string::npos) << event.line();
}

TEST_P(ProbeEventsOfProcesses, ThereIsOneForEachProbeUnderAnyLoadAndTheLabelsAddUp) {
    start(
        crowded("CircuitBreaker On\nCircuitBreakerFailureRate Off\nCircuitBreakerConsecutiveFailures 1\n"
                "CircuitBreakerOpenTime 100ms factor=1 jitter=0 min=100ms\n"
                "CircuitBreakerProbes 4 concurrent=4 tolerate=1\n" +
                    std::string(to_file_with_probes) + metrics_location,
                balancer_of(member_line(bad_) + member_line(good_))));
    std::atomic<unsigned> turn{0};
    const auto flaky = [&](const Request&) { return ++turn % 5 == 0 ? Reply::status(503) : Reply::ok(); };
    bad_.answer(flaky);
    good_.answer(flaky);
    {
        BackgroundLoad load(httpd_->url("/app/x"), {.threads = 12, .time_limit = 60s, .keep_connections = false});
        const auto probes_at = [&](const Backend& backend) {
            return BreakerPage(*httpd_).member(backend).number("Probes");
        };
        EXPECT_TRUE(wait_until([&] { return probes_at(bad_) + probes_at(good_) > 200; }, patience, "200 probes"));
        (void)load.finish();
    }
    for (const Backend* backend : {&bad_, &good_}) {
        ASSERT_TRUE(wait_for_no_permits(*httpd_, *backend));
        const MetricsPage page(*httpd_);
        std::size_t probes = 0;
        for (const char* result : {"success", "failure", "neutral", "lost"})
            probes += static_cast<std::size_t>(
                page.value("probes_total", *backend, {"result=\"" + std::string(result) + "\""}));
        const auto is_of_it = [&](const Event& event) { return event.text("member") == backend->member(); };
        const auto count = [&] {
            const std::vector<Event> events = probe_events();
            return static_cast<std::size_t>(std::ranges::count_if(events, is_of_it));
        };
        EXPECT_TRUE(wait_until([&] { return count() >= probes; }, patience, "the last event"));
        EXPECT_EQ(count(), probes);
        double calls = 0;
        double of_probes = 0;
        for (const char* verdict : {"success", "failure", "fatal", "tolerate", "ignore"}) {
            const std::string label = "verdict=\"" + std::string(verdict) + "\"";
            calls += page.value("calls_total", *backend, {label, "probe=\"0\""});
            of_probes += page.value("calls_total", *backend, {label, "probe=\"1\""});
        }
        EXPECT_EQ(of_probes, static_cast<double>(probes));
        const BreakerBlock block = BreakerPage(*httpd_).member(*backend);
        EXPECT_EQ(calls + of_probes, static_cast<double>(block.number("Calls")));
        EXPECT_EQ(block.number("Probes"), probes);
        EXPECT_EQ(block.number("Verdict-success") + block.number("Verdict-failure"), block.number("Calls"));
    }
}

}  // namespace
}  // namespace cb::test
