// After a recovery with a ramp: only a growing share of the requests, however idle the member looks to the lbmethod.
#include "traffic.hpp"

#include <fstream>

namespace cb::test {
namespace {

std::string ramp(const std::string& line) {
    return quick_policy + ("CircuitBreakerOpenTime 200ms jitter=0\nCircuitBreakerRampUp " + line + "\n");
}

class Ramp : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, Ramp, each_mpm, mpm_name);

TEST_P(Ramp, APlainWorkerGetsJustItsShareAndTheRestIsRefused) {
    Backend app("app");
    Httpd httpd(site(ramp("24h from=20"), plain_worker(app)));
    httpd.start();
    app.answer_next(3, Reply::status(502));
    (void)statuses(3, httpd.url("/app/x"));
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "200");
    ASSERT_EQ(BreakerPage(httpd).member(app).at("State"), "recovering");
    app.forget();
    const LoadResult result = load(httpd.url("/app/x"), {.threads = 4, .requests_per_thread = 50});
    EXPECT_EQ(result.with_status(200) + result.with_status(503), 200U) << result.describe();
    EXPECT_GE(app.requests(), 38U) << "20 % of 200, evenly spread";
    EXPECT_LE(app.requests(), 43U);
    EXPECT_EQ(app.requests(), result.with_status(200));
    EXPECT_TRUE(httpd.wait_for_access_line("state=recovering verdict=success", app.requests()));
    EXPECT_TRUE(httpd.wait_for_access_line("rejected=ramp ", 200 - app.requests()));
}

TEST_P(Ramp, GrowsUntilItIsOverAndAFailureInItIsAReopening) {
    Backend app("app");
    Httpd httpd(site(ramp("400ms from=0"), plain_worker(app)));
    httpd.start();
    app.answer(Reply::status(502));
    (void)statuses(3, httpd.url("/app/x"));
    app.answer_as_usual();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    EXPECT_EQ(statuses(1, httpd.url("/app/x")), "200");
    app.answer(Reply::status(502));
    ASSERT_TRUE(wait_until(
        [&] {
            (void)statuses(1, httpd.url("/app/x"));
            return transitions(httpd, "recovering", "open") == 1;
        },
        patience, "three of the first requests to fail"));
    EXPECT_EQ(BreakerPage(httpd).member(app).number("Level"), 1U);
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
    EXPECT_EQ(BreakerPage(httpd).member(app).at("State"), "closed");
}

struct Method {
    Mpm mpm;
    std::string name;
};
void PrintTo(const Method& method, std::ostream* out) {
    *out << method.name;
}  // GoogleTest finds it by its name

class RampUnder : public testing::TestWithParam<Method> {};
INSTANTIATE_TEST_SUITE_P(Lbmethods, RampUnder,
                         testing::Values(Method{Mpm::event, "byrequests"}, Method{Mpm::event, "bytraffic"},
                                         Method{Mpm::event, "bybusyness"}, Method{Mpm::event, "heartbeat"},
                                         Method{Mpm::prefork, "bybusyness"}, Method{Mpm::worker, "byrequests"}),
                         [](const auto& info) { return info.param.name + "_" + name_of(info.param.mpm); });

TEST_P(RampUnder, ARecoveredMemberGetsNoMoreThanItsShareThoughItLooksIdle) {
    const bool by_heartbeat = GetParam().name == "heartbeat";
    Backend back("back");
    Backend good("good");
    // To the heartbeats, members of one host are one server.
    const std::string good_member =
        (by_heartbeat ? "http://localhost:" : "http://127.0.0.1:") + std::to_string(good.port());
    const TempDir folder("cb-ramp");
    std::ofstream(folder.path() / "heartbeats")
        << "127.0.0.1 &busy=1&ready=1000&lastseen=1\nlocalhost &busy=1&ready=10&lastseen=1\n";
    HttpdOptions options =
        site(GetParam().mpm,
             ramp("24h from=20") +
                 (by_heartbeat ? "HeartbeatStorage " + (folder.path() / "heartbeats").string() + "\n" : ""),
             balancer_of(member_line(back) + "    BalancerMember " + good_member +
                         "\n    ProxySet lbmethod=" + GetParam().name + "\n"));
    options.children = 4;
    if (by_heartbeat) options.add_modules = {"lbmethod_heartbeat"};
    Httpd httpd(options);
    httpd.start();
    back.refuse();
    ASSERT_TRUE(wait_until(
        [&] {
            return get(httpd.url("/app/x")).backend() == "good" &&
                   BreakerPage(httpd).member(back).at("State") == "open";
        },
        patience, "the trip"))
        << httpd.describe();
    back.accept_again();
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, back));
    ASSERT_TRUE(wait_until([&] { return get(httpd.url("/app/x")).backend() == "back"; }, patience, "the probe"));
    ASSERT_EQ(BreakerPage(httpd).member(back).at("State"), "recovering");
    back.forget();
    good.answer(Reply::ok().after(3ms));  // always at work, where the other one looks idle
    const LoadResult result =
        load(httpd.url("/app/x"), {.threads = 6, .requests_per_thread = 60, .keep_connections = false});
    EXPECT_TRUE(result.all(200)) << result.describe() << httpd.describe();
    EXPECT_LE(back.requests(), 76U) << "20 % of 360, evenly spread";
    EXPECT_GE(back.requests(), 18U) << "nor is it forgotten";
}

}  // namespace
}  // namespace cb::test
