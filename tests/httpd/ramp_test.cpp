// After a recovery with a ramp: only a growing share of the requests, however idle the member looks to the lbmethod.
#include "traffic.hpp"

#include <fstream>

namespace cb::test {
namespace {

std::string ramp(const std::string& line) {
    return quick_policy + ("CircuitBreakerOpenTime 200ms jitter=0\nCircuitBreakerRampUp " + line + "\n");
}

void recover(const Httpd& httpd, Backend& app) {
    app.answer_next(3, Reply::status(502));
    EXPECT_EQ(statuses(3, httpd.url("/app/trip")), "502 502 502");
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    EXPECT_EQ(statuses(1, httpd.url("/app/trip")), "200");
    ASSERT_EQ(state_of(httpd, app), "recovering");
}

class Ramp : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, Ramp, any_mpm, mpm_name);

TEST_P(Ramp, APlainWorkerGetsJustItsShareAndTheRestIsRefused) {
    Backend app("app");
    HttpdOptions options = site(ramp("24h from=30"), plain_worker(app));
    options.children = 4;
    Httpd httpd(options);
    httpd.start();
    recover(httpd, app);
    app.forget();
    const LoadResult result =
        load(httpd.url("/app/x"), {.threads = 8, .requests_per_thread = 125, .keep_connections = false});
    EXPECT_EQ(result.with_status(200) + result.with_status(503), 1000U) << result.describe();
    EXPECT_NEAR(app.requests(), 300, 20);
    EXPECT_EQ(app.requests(), result.with_status(200));
    EXPECT_GT(children_that_served(httpd, "/app/x"), 1U);
    EXPECT_TRUE(httpd.wait_for_access_line("state=recovering verdict=success", app.requests()));
    EXPECT_TRUE(httpd.wait_for_access_line("rejected=ramp ", 1000 - app.requests()));
    EXPECT_TRUE(
        wait_until([&] { return get(httpd.url("/app/x")).header("Retry-After") == "1"; }, patience, "a refusal"));
}

TEST_P(Ramp, GrowsUntilItIsOverAndAFailureInItIsAReopening) {
    Backend app("app");
    Httpd httpd(site(ramp("24h from=50"), plain_worker(app)));
    httpd.start();
    recover(httpd, app);
    app.answer(Reply::status(502));
    ASSERT_TRUE(wait_until(
        [&] {
            (void)statuses(1, httpd.url("/app/x"));
            return transitions(httpd, "recovering", "open") == 1;
        },
        patience, "three of the first requests to fail"));
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Level"), 1U);
    httpd.set_config(site(ramp("400ms from=0"), plain_worker(app)).config);
    ASSERT_TRUE(httpd.restart());
    app.answer_as_usual();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "200");
    ASSERT_TRUE(wait_until(
        [&] {
            (void)statuses(1, httpd.url("/app/x"));
            return transitions(httpd, "recovering", "closed") == 1;
        },
        patience, "the end of the ramp"));
    app.forget();
    EXPECT_EQ(statuses(10, httpd.url("/app/x")), "200 200 200 200 200 200 200 200 200 200");
    EXPECT_EQ(state_of(httpd, app), "closed");
}

TEST_P(Ramp, GivesEachHundredRequestsMoreThanTheHundredBefore) {
    Backend app("app");
    HttpdOptions options = site(ramp("1500ms from=5"), plain_worker(app));
    options.children = 4;
    Httpd httpd(options);
    httpd.start();
    bool has_begun_small = false;
    // Once more on a machine that stood still at its beginning.
    for (int attempt = 0; attempt < 3 && !has_begun_small; ++attempt) {
        recover(httpd, app);
        unsigned before = 0;
        while (state_of(httpd, app) == "recovering") {
            const unsigned now =
                load(httpd.url("/app/x"), {.threads = 4, .requests_per_thread = 25, .keep_connections = false})
                    .with_status(200);
            EXPECT_GE(now + 3, before) << "evenly spread: three more or less in any hundred";
            before = now;
            has_begun_small = has_begun_small || now < 90;
        }
    }
    EXPECT_TRUE(has_begun_small) << "or this test proves nothing";
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "200 200 200");
}

TEST_P(Ramp, AsksARequestOnceHoweverOftenAMemberIsChosenForIt) {
    Backend back("back");
    Backend down("down");
    const RequestOptions to_back{.cookie = "SID=1.back"};
    Httpd httpd(site(
        ramp("24h from=30"),
        "<Proxy \"" + down.member() + "\">\n    CircuitBreakerConsecutiveFailures Off\n" +
            "    CircuitBreakerFailureRate 100\n    CircuitBreakerMinimumCalls 1000000\n</Proxy>\n" +
            balancer_of(member_line(back, "route=back") + member_line(down) + "    ProxySet stickysession=SID\n")));
    httpd.start();
    back.answer_next(3, Reply::status(502));
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(get(httpd.url("/app/x"), to_back).status, 502);
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, back));
    EXPECT_EQ(get(httpd.url("/app/x"), to_back).status, 200);
    ASSERT_EQ(state_of(httpd, back), "recovering");
    down.refuse();
    const LoadResult result = load(httpd.url("/app/x"), {.threads = 4, .requests_per_thread = 50});
    EXPECT_NEAR(result.with_status(200), 60, 6) << result.describe();
    EXPECT_GE(BreakerPage(httpd).member(down).number("Outcome-connect"), 140U);
}

TEST_P(Ramp, InObserveIsCountedAndKeepsNobodyOut) {
    Backend app("app");
    Httpd httpd(site(ramp("24h from=30") + "CircuitBreaker Observe\n", plain_worker(app)));
    httpd.start();
    recover(httpd, app);
    const std::uint64_t before = BreakerPage(httpd).member(app).number("Would-refuse");
    EXPECT_TRUE(load(httpd.url("/app/x"), {.threads = 4, .requests_per_thread = 50}).all(200));
    EXPECT_NEAR(static_cast<double>(BreakerPage(httpd).member(app).number("Would-refuse") - before), 140, 4);
}

struct Method {
    Mpm mpm;
    std::string name;
};
void PrintTo(const Method& method, std::ostream* out) {
    *out << method.name;
}  // GoogleTest finds it by its name

/// A balancer of `back` and, unless it is alone, `good`, with that lbmethod; four children, 30 percent.
class RampUnder : public testing::TestWithParam<Method> {
  protected:
    [[nodiscard]] HttpdOptions balanced(bool is_alone) {
        const bool by_heartbeat = GetParam().name == "heartbeat";
        // To the heartbeats, members of one host are one server.
        const std::string good_member =
            (by_heartbeat ? "http://localhost:" : "http://127.0.0.1:") + std::to_string(good_.port());
        std::ofstream(folder_.path() / "heartbeats")
            << "127.0.0.1 &busy=1&ready=1000&lastseen=1\nlocalhost &busy=1&ready=10&lastseen=1\n";
        HttpdOptions options =
            site(GetParam().mpm,
                 ramp("24h from=30") +
                     (by_heartbeat ? "HeartbeatStorage " + (folder_.path() / "heartbeats").string() + "\n" : ""),
                 balancer_of(member_line(back_) + (is_alone ? "" : "    BalancerMember " + good_member + "\n") +
                             "    ProxySet lbmethod=" + GetParam().name + "\n"));
        options.children = 4;
        if (by_heartbeat) options.add_modules = {"lbmethod_heartbeat"};
        return options;
    }
    [[nodiscard]] std::uint64_t refused(const Httpd& httpd) const {
        return BreakerPage(httpd).member(back_).number("Refused");
    }

    const TempDir folder_{"cb-ramp"};
    Backend back_{"back"};
    Backend good_{"good"};
};
INSTANTIATE_TEST_SUITE_P(Lbmethods, RampUnder,
                         testing::ValuesIn(of_chosen_mpms<Method>({{Mpm::event, "byrequests"},
                                                                   {Mpm::event, "bytraffic"},
                                                                   {Mpm::event, "bybusyness"},
                                                                   {Mpm::event, "heartbeat"},
                                                                   {Mpm::prefork, "bybusyness"},
                                                                   {Mpm::worker, "byrequests"},
                                                                   {Mpm::prefork, "heartbeat"},
                                                                   {Mpm::worker, "bytraffic"}})),
                         [](const auto& info) { return info.param.name + "_" + name_of(info.param.mpm); });

TEST_P(RampUnder, ARecoveredMemberIsOfferedItsShareAndGetsNoMoreThoughItLooksIdle) {
    Httpd httpd(balanced(false));
    httpd.start();
    back_.refuse();
    ASSERT_TRUE(
        wait_until([&] { return get(httpd.url("/app/x")).backend() == "good" && state_of(httpd, back_) == "open"; },
                   patience, "the trip"))
        << httpd.describe();
    back_.accept_again();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, back_));
    ASSERT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).backend() == "back"; }, patience, "the probe"));
    ASSERT_EQ(state_of(httpd, back_), "recovering");
    back_.forget();
    const std::uint64_t before = refused(httpd);
    good_.answer(Reply::ok().after(2ms));  // always at work, where the other one looks idle
    const LoadResult result =
        load(httpd.url("/app/x"), {.threads = 8, .requests_per_thread = 125, .keep_connections = false});
    EXPECT_TRUE(result.all(200)) << result.describe() << httpd.describe();
    EXPECT_EQ(result.total(), 1000U);
    EXPECT_NEAR(1000 - static_cast<double>(refused(httpd) - before), 300, 20) << "offered, of a thousand";
    EXPECT_LE(back_.requests(), 320U);
    EXPECT_GE(back_.requests(), 50U) << "nor is it forgotten";
    EXPECT_GT(children_that_served(httpd, "/app/x"), 1U);
}

TEST_P(RampUnder, AMemberWithoutAnotherGetsItsShareAndTheRestIsRefused) {
    Httpd httpd(balanced(true));
    httpd.start();
    recover(httpd, back_);
    back_.forget();
    const LoadResult result =
        load(httpd.url("/app/x"), {.threads = 8, .requests_per_thread = 125, .keep_connections = false});
    EXPECT_EQ(result.with_status(200) + result.with_status(503), 1000U) << result.describe();
    EXPECT_NEAR(back_.requests(), 300, 20);
    EXPECT_EQ(back_.requests(), result.with_status(200));
    EXPECT_TRUE(wait_until(
        [&] {
            const Response response = get(httpd.url("/app/x"));
            return response.status == 503 && response.header("Retry-After") == "1";
        },
        patience, "a refusal"));
    EXPECT_EQ(httpd.error_lines_with("All workers are in error state").size(), 0U) << httpd.describe();
}

}  // namespace
}  // namespace cb::test
