// Which requests may be probes, how they are marked, and how long they may take.
#include "trip.hpp"

namespace cb::test {
namespace {

class ProbeMarks : public TrafficTest {
  protected:
    static std::string access_line(const Httpd& httpd, const std::string& path) {
        EXPECT_TRUE(httpd.wait_for_access_line("path=" + path + " "));
        return httpd.access_lines_with("path=" + path + " ").back();
    }

    Backend app_{"app"};
};
INSTANTIATE_TEST_SUITE_P(Mpms, ProbeMarks, any_mpm, mpm_name);

TEST_P(ProbeMarks, OnlyRequestsThatMayBeProbesAreAndTheOthersLeaveTheSlotFree) {
    Httpd httpd(
        site(std::string(quick_policy) + "CircuitBreakerProbeIf \"%{REQUEST_METHOD} == 'GET'\"\n", plain_worker(app_)));
    httpd.start();
    make_due(httpd, app_);
    const RequestOptions post{.method = "POST", .body = "x"};
    for (int i = 0; i < 3; ++i) {
        const Response refused = get(httpd.url("/app/x"), post);
        EXPECT_EQ(refused.status, 503);
        EXPECT_TRUE(refused.headers.has("Retry-After"));
    }
    const BreakerBlock block = BreakerPage(httpd).member(app_);
    EXPECT_EQ(block.at("State"), "open") << "nobody has probed it";
    EXPECT_EQ(block.number("Leases"), 0U);
    EXPECT_EQ(app_.requests(), 0U);
    EXPECT_EQ(get(httpd.url("/app/x")).status, 200);
    EXPECT_EQ(state_of(httpd, app_), "closed");
    EXPECT_EQ(get(httpd.url("/app/x"), post).status, 200) << "closed, everybody may";
}

TEST_P(ProbeMarks, WhoMayNotProbeTakesAnotherMember) {
    Backend good("good");
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerProbeIf \"%{REQUEST_METHOD} == 'GET'\"\n",
                     balancer_of(member_line(app_) + member_line(good))));
    httpd.start();
    app_.refuse();
    EXPECT_EQ(statuses(8, httpd.url("/app/x")), "200 200 200 200 200 200 200 200");
    ASSERT_EQ(state_of(httpd, app_), "open");
    app_.accept_again();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app_));
    for (int i = 0; i < 6; ++i)
        EXPECT_EQ(get(httpd.url("/app/x"), {.method = "POST", .body = "x"}).backend(), "good");
    EXPECT_EQ(app_.requests(), 0U);
    EXPECT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).backend() == "app"; }, patience, "a probe"));
}

TEST_P(ProbeMarks, ALocationHasItsOwnConditionAndABrokenOneLetsNobodyProbe) {
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerProbeIf \"false\"\n",
                     plain_worker(app_) + "<Location /app/safe>\n    CircuitBreakerProbeIf "
                                          "\"%{QUERY_STRING} == 'yes'\"\n</Location>\n"));
    httpd.start();
    make_due(httpd, app_);
    EXPECT_EQ(statuses(2, httpd.url("/app/x")), "503 503");
    EXPECT_EQ(statuses(2, httpd.url("/app/safe")), "503 503");
    EXPECT_EQ(statuses(2, httpd.url("/app/safe?yes")), "200 200");
    EXPECT_EQ(state_of(httpd, app_), "closed");
}

TEST_P(ProbeMarks, AProbeIsMarkedAndNoOtherRequestWhateverTheClientSends) {
    const std::string name = "X-Circuit-Probe";
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerProbeHeader " + name + "\n", plain_worker(app_)));
    httpd.start();
    const RequestOptions spoofed{.headers = {{name, "mine"}, {"X-Other", "kept"}}};
    EXPECT_EQ(get(httpd.url("/app/closed"), spoofed).status, 200);
    EXPECT_FALSE(app_.last_request()->headers.has(name));
    EXPECT_EQ(app_.last_request()->headers.get("X-Other"), "kept");
    EXPECT_NE(access_line(httpd, "/app/closed").find("probe=- "), std::string::npos);
    make_due(httpd, app_);
    EXPECT_EQ(get(httpd.url("/app/probe"), spoofed).status, 200);
    EXPECT_EQ(app_.last_request()->headers.get(name), "1");
    const std::string line = access_line(httpd, "/app/probe");
    EXPECT_NE(line.find("state=half-open "), std::string::npos) << line;
    EXPECT_NE(line.find("probe=1 "), std::string::npos) << line;
}

TEST_P(ProbeMarks, AClientCannotHaveTheMarkTakenOutByConnection) {
    const std::string name = "X-Circuit-Probe";
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerProbeHeader " + name + "\n", plain_worker(app_)));
    httpd.start();
    for (const char* connection : {"x-circuit-probe", "X-First, X-Circuit-Probe, X-Other, X-CIRCUIT-PROBE"}) {
        make_due(httpd, app_);
        const RequestOptions listed{
            .headers = {{"Connection", connection}, {"X-First", "hop by hop"}, {"X-Other", "hop by hop"}}};
        EXPECT_EQ(get(httpd.url("/app/probe"), listed).status, 200);
        EXPECT_EQ(app_.last_request()->headers.get(name), "1") << connection;
        for (const char* other : {"X-First", "X-Other"})
            EXPECT_EQ(app_.last_request()->headers.has(other),
                      std::string(connection).find(other) == std::string::npos);
    }
}

TEST_P(ProbeMarks, TheErrorPageOfAProbeIsNoProbe) {
    Backend pages("pages");
    const std::string name = "X-Circuit-Probe";
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerProbeHeader " + name + "\n",
                     plain_worker(app_) + "ProxyPass /pages " + pages.member() + "\n<Proxy \"" + pages.member() +
                         "\">\n    CircuitBreaker Off\n</Proxy>\n<Location /app/probe>\n    ProxyErrorOverride On\n"
                         "    ErrorDocument 502 /pages/sorry\n</Location>\n"));
    httpd.start();
    make_due(httpd, app_);
    pages.forget();
    app_.answer(Reply::status(502));
    EXPECT_EQ(get(httpd.url("/app/probe")).backend(), "pages");
    EXPECT_EQ(app_.last_request()->headers.get(name), "1");
    ASSERT_TRUE(pages.last_request().has_value());
    EXPECT_FALSE(pages.last_request()->headers.has(name));
    EXPECT_NE(access_line(httpd, "/app/probe").find("probe=1 "), std::string::npos);
}

TEST_P(ProbeMarks, ARequestThatGoesOnFromAProbeIsNoProbeAnyMore) {
    Backend good("good");
    const std::string name = "X-Circuit-Probe";
    Httpd httpd(site(std::string(quick_policy) + "CircuitBreakerProbeHeader " + name +
                         "\nCustomLog notes.log \"%U note=%{CIRCUIT_BREAKER_PROBE}n\"\n",
                     balancer_of(member_line(app_) + member_line(good))));
    httpd.start();
    app_.refuse();
    EXPECT_EQ(statuses(8, httpd.url("/app/x")), "200 200 200 200 200 200 200 200");
    ASSERT_EQ(state_of(httpd, app_), "open");
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app_));
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(get(httpd.url("/app/again")).backend(), "good");
    EXPECT_GE(BreakerPage(httpd).member(app_).number("Probes"), 1U) << "or this test proves nothing";
    for (const Request& request : good.log())
        EXPECT_FALSE(request.headers.has(name));
    EXPECT_TRUE(httpd.wait_for_access_line("path=/app/again ", 4));
    EXPECT_TRUE(httpd.wait_for_access_line(" probe=1 ", 1)) << "one of its calls was";
    const auto notes = [&](const std::string& note) {
        const std::string text = read_file(httpd.root() / "notes.log");
        std::size_t count = 0;
        for (std::size_t at = 0; (at = text.find("/app/again note=" + note + "\n", at)) != std::string::npos; ++at)
            ++count;
        return count;
    };
    EXPECT_TRUE(wait_until([&] { return notes("-") == 4; }, patience, "the notes"));
    EXPECT_EQ(notes("1"), 0U);
}

TEST_P(ProbeMarks, InObserveNothingIsSentThatWasNotSentBefore) {
    const std::string name = "X-Circuit-Probe";
    Httpd httpd(site("CircuitBreakerProbeTimeout 1ms\nCircuitBreakerProbeHeader " + name + "\n" +
                         std::string(quick_policy) + "CircuitBreaker Observe\n",
                     plain_worker(app_)));
    httpd.start();
    make_due(httpd, app_);
    app_.answer(Reply::ok().after(100ms));
    EXPECT_EQ(get(httpd.url("/app/x"), {.headers = {{name, "mine"}}}).status, 200);
    EXPECT_EQ(app_.last_request()->headers.get(name), "mine");
    EXPECT_EQ(BreakerPage(httpd).member(app_).number("Probes"), 1U);
}

TEST_P(ProbeMarks, AProbeHasItsOwnTimeoutAndTheConnectionKeepsItsOwn) {
    Httpd httpd(
        site(std::string(quick_policy) + "CircuitBreakerProbeTimeout 300ms\n", plain_worker(app_, "timeout=20")));
    httpd.start();
    make_due(httpd, app_);
    app_.answer_path("/hang", Reply::hang());
    EXPECT_EQ(get(httpd.url("/app/hang")).status, 502);
    EXPECT_NE(access_line(httpd, "/app/hang").find("verdict=failure:timeout"), std::string::npos);
    EXPECT_EQ(transitions(httpd, "half-open", "open"), 1U);

    // In time; what comes after the first byte has the member's own timeout, and so has the next call.
    app_.answer_path("/stream", Reply::of_size(20'000).pausing(10'000, 600ms));
    Client client;
    unsigned connections = 0;
    const auto is_in_time = [&] {  // not on a machine that stands still just then: the next one
        EXPECT_TRUE(wait_for_end_of_open_time(httpd, app_));
        connections = app_.connections();
        return client.get(httpd.url("/app/stream")).body.size() == 20'000;
    };
    ASSERT_TRUE(wait_until(is_in_time, patience, "a probe whose answer comes whole"));
    EXPECT_EQ(state_of(httpd, app_), "closed");
    app_.answer_path("/late", Reply::ok().after(600ms));
    EXPECT_EQ(client.get(httpd.url("/app/late")).status, 200);
    EXPECT_LE(app_.connections(), connections + 1) << "on the probe's connection";
}

}  // namespace
}  // namespace cb::test
