// Restarts keep what the breakers know: states, windows and counters stay with their members, whatever the new
// configuration calls them, while old children are still at work.
#include <gtest/gtest.h>

#include <string>

#include "restarts.hpp"
#include "trip.hpp"

namespace cb::test {
namespace {

class Restart : public TrafficTest {
  protected:
    static std::string policy() { return quick_policy + std::string(long_open) + "CircuitBreakerWindow 1h\n"; }

    /// A sticky balancer; a request with the cookie `S=1.x` goes to the member with the route x.
    [[nodiscard]] static std::string sticky(const std::string& members) {
        return balancer_of(members + "    ProxySet stickysession=S\n");
    }
    [[nodiscard]] static std::string config(const std::string& proxied) { return policy() + status_location + proxied; }
    [[nodiscard]] static RequestOptions to_route(const std::string& route) { return {.cookie = "S=1." + route}; }

    Backend one_{"one"};
    Backend two_{"two"};
    Backend three_{"three"};
};

INSTANTIATE_TEST_SUITE_P(Httpd, Restart, each_mpm, mpm_name);

/// What must be the same before and after, of a member that had no request meanwhile.
void expect_same(const BreakerBlock& before, const BreakerBlock& after) {
    ASSERT_FALSE(before.empty());
    ASSERT_FALSE(after.empty());
    for (const char* key : {"State", "Level", "Generation", "Window-calls", "Window-failures", "Consecutive", "Calls",
                            "Verdict-success", "Verdict-failure", "Outcome-2xx", "Outcome-5xx", "Probes", "Refused",
                            "Transitions", "Opened", "Late", "In-flight"}) {
        EXPECT_NE(before.at(key), "") << key;
        EXPECT_EQ(before.at(key), after.at(key)) << key << " of " << after.at("Member");
    }
    EXPECT_GE(after.number("Since-ms"), before.number("Since-ms"));
    EXPECT_LE(after.number("Next-probe-ms"), before.number("Next-probe-ms"));
}

TEST_P(Restart, LeavesEachStateWithItsMemberWhenTheNewConfigurationSwapsThem) {
    Httpd httpd(site(policy(), sticky(member_line(one_, "route=x") + member_line(two_, "route=y"))));
    httpd.start();
    trip(httpd, two_, {.path = "/app/", .request = to_route("y")});
    one_.answer_path("/long", Reply::status(503).when_released());
    auto long_one = get_later(httpd.url("/app/long"), to_route("x"));
    EXPECT_TRUE(one_.wait_for_concurrent(1));
    const BreakerBlock two_before = BreakerPage(httpd).member(two_);

    BackgroundLoad load(httpd.url("/app/load"), {.threads = 3, .keep_connections = false});
    EXPECT_TRUE(load.wait_for_answers(50));
    const std::vector<pid_t> old = httpd.children();
    httpd.set_config(config(sticky(member_line(two_, "route=x") + member_line(one_, "route=y"))));
    ASSERT_TRUE(httpd.graceful()) << httpd.describe();
    EXPECT_TRUE(load.wait_for_answers(200));
    const LoadResult result = load.finish();
    EXPECT_TRUE(result.all(200)) << result.describe() << httpd.describe();
    EXPECT_EQ(result.from("one"), result.total()) << "two is open, before and after";

    EXPECT_EQ(get(httpd.url("/app/"), to_route("y")).backend(), "one") << "the new route, by a new child";
    BreakerBlock one = BreakerPage(httpd).member(one_);
    const std::uint64_t calls_before_the_end = one.number("Calls");
    EXPECT_EQ(one.at("State"), "closed");
    EXPECT_EQ(one.number("In-flight"), 1U) << "the call of the old child, on the page of a new one";
    EXPECT_EQ(one.number("Verdict-failure"), 0U);

    one_.release();
    EXPECT_EQ(long_one.get().status, 503);
    EXPECT_TRUE(httpd.wait_for_end_of(old)) << httpd.describe();
    one = BreakerPage(httpd).member(one_);
    EXPECT_EQ(one.number("Verdict-failure"), 1U) << "charged to its own member by the old child";
    EXPECT_EQ(one.number("Window-failures"), 1U);
    EXPECT_EQ(one.number("Calls"), calls_before_the_end + 1);
    EXPECT_EQ(one.number("In-flight"), 0U);
    const BreakerBlock two = BreakerPage(httpd).member(two_);
    for (const char* key : {"State", "Generation", "Calls", "Verdict-failure", "Transitions"}) {
        EXPECT_EQ(two.at(key), two_before.at(key)) << key;
    }
    EXPECT_EQ(two_.requests(), 0U) << "nothing since the failures that opened it";
}

TEST_P(Restart, GivesAMemberWhosePortHasChangedABreakerOfItsOwn) {
    Httpd httpd(site(policy(), sticky(member_line(one_, "route=x") + member_line(two_, "route=y"))));
    httpd.start();
    trip(httpd, one_, {.path = "/app/", .request = to_route("x")});
    const BreakerBlock two = BreakerPage(httpd).member(two_);
    ASSERT_TRUE(
        graceful_to_the_end(httpd, config(sticky(member_line(three_, "route=x") + member_line(two_, "route=y")))));
    expect_same(two, BreakerPage(httpd).member(two_));
    const BreakerBlock three = BreakerPage(httpd).member(three_);
    EXPECT_EQ(three.at("State"), "closed");
    EXPECT_EQ(three.number("Calls"), 0U);
    EXPECT_EQ(get(httpd.url("/app/"), to_route("x")).backend(), "three");
    EXPECT_EQ(one_.requests(), 0U);
}

TEST_P(Restart, KeepsStatesAndCountersOverTwoHardOnes) {
    const std::string ramp = "CircuitBreakerRampUp 24h from=100\n";
    Httpd httpd(
        site(policy() + ramp + "CircuitBreakerOpenTime 100ms\n",
             sticky(member_line(one_, "route=x") + member_line(two_, "route=y") + member_line(three_, "route=z"))));
    httpd.start();
    trip(httpd, two_, {.path = "/app/", .request = to_route("y")});
    EXPECT_TRUE(wait_for_end_of_open_time(httpd, two_));
    EXPECT_EQ(get(httpd.url("/app/"), to_route("y")).backend(), "two");  // the probe
    httpd.set_config(
        policy() + ramp + status_location +
        sticky(member_line(one_, "route=x") + member_line(two_, "route=y") + member_line(three_, "route=z")));
    ASSERT_TRUE(httpd.restart());
    for (int i = 0; i < 7; ++i)
        EXPECT_EQ(get(httpd.url("/app/"), to_route("x")).backend(), "one");
    one_.answer_next(2, Reply::status(503));
    for (int i = 0; i < 2; ++i)
        EXPECT_EQ(get(httpd.url("/app/"), to_route("x")).status, 503);
    trip(httpd, three_, {.path = "/app/", .request = to_route("z")});

    const BreakerPage before(httpd);
    EXPECT_EQ(before.member(one_).at("State"), "closed");
    EXPECT_EQ(before.member(one_).number("Consecutive"), 2U);
    EXPECT_EQ(before.member(two_).at("State"), "recovering");
    EXPECT_EQ(before.member(three_).at("State"), "open");
    for (int restarts = 1; restarts <= 2; ++restarts) {
        ASSERT_TRUE(httpd.restart()) << httpd.describe();
        const BreakerPage after(httpd);
        EXPECT_EQ(after.members().size(), 3U);
        for (const Backend* backend : {&one_, &two_, &three_})
            expect_same(before.member(*backend), after.member(*backend));
    }
    one_.answer_next(1, Reply::status(503));
    EXPECT_EQ(get(httpd.url("/app/"), to_route("x")).status, 503);
    EXPECT_EQ(state_of(httpd, one_), "open") << "the third in a row, over two restarts";
    EXPECT_EQ(get(httpd.url("/app/"), to_route("x")).backend(), "two") << "it acts at once";
}

TEST_P(Restart, GivesUpAProbeOfAKilledChildWithoutLosingItsSlot) {
    // A hard restart gives a busy child ten seconds, then it kills it. Here it is killed at once.
    Httpd httpd(site(policy() + "CircuitBreakerOpenTime 100ms jitter=0\n", plain_worker(one_)));
    httpd.start();
    one_.answer_next(3, Reply::status(503));
    EXPECT_EQ(statuses(3, httpd.url("/app/")), "503 503 503");
    const auto breaker = [&] { return BreakerPage(httpd).member(one_); };
    EXPECT_TRUE(wait_until([&] { return breaker().number("Next-probe-ms") == 0; }, patience, "the open time's end"));
    one_.hold();
    auto probe = get_later(httpd.url("/app/"));
    EXPECT_TRUE(one_.wait_for_concurrent(1));
    EXPECT_EQ(breaker().number("Probes-in-flight"), 1U);
    for (const pid_t child : httpd.children())
        EXPECT_TRUE(httpd.kill_child(child));
    ASSERT_TRUE(httpd.restart()) << httpd.describe();
    EXPECT_NE(probe.get().code, CURLE_OK);
    one_.release();
    const BreakerBlock after = breaker();
    EXPECT_EQ(after.at("State"), "half-open") << "a dead child's probe is neutral";
    EXPECT_EQ(after.number("Probes-in-flight"), 0U);
    EXPECT_EQ(after.number("Leases"), 0U);
    EXPECT_EQ(after.number("In-flight"), 0U);
    EXPECT_EQ(get(httpd.url("/app/")).status, 200);
    EXPECT_EQ(breaker().at("State"), "closed");
}

TEST_P(Restart, WithAWindowOfAnotherShapeBeginsItAnewAndKeepsTheState) {
    const std::string two_members = sticky(member_line(one_, "route=x") + member_line(two_, "route=y"));
    Httpd httpd(site(policy(), two_members));
    httpd.start();
    for (int i = 0; i < 5; ++i)
        EXPECT_EQ(get(httpd.url("/app/"), to_route("x")).status, 200);
    trip(httpd, two_, {.path = "/app/", .request = to_route("y")});
    one_.answer_path("/long", Reply::status(503).when_released());
    auto long_one = get_later(httpd.url("/app/long"), to_route("x"));
    EXPECT_TRUE(one_.wait_for_concurrent(1));
    const BreakerPage before(httpd);
    EXPECT_EQ(before.member(one_).number("Window-calls"), 5U);

    const std::vector<pid_t> old = httpd.children();
    httpd.set_config(policy() + "CircuitBreakerWindow 50calls\n" + status_location + two_members);
    ASSERT_TRUE(httpd.graceful()) << httpd.describe();
    const BreakerPage after(httpd);
    EXPECT_EQ(after.member(one_).number("Window-calls"), 0U);
    EXPECT_EQ(after.member(one_).number("Calls"), 5U);
    EXPECT_EQ(after.member(one_).number("Generation"), before.member(one_).number("Generation")) << "no change";
    EXPECT_EQ(after.member(two_).at("State"), "open");
    EXPECT_EQ(after.member(two_).number("Transitions"), before.member(two_).number("Transitions"));
    EXPECT_LE(after.member(two_).number("Next-probe-ms"), before.member(two_).number("Next-probe-ms"));

    one_.release();
    EXPECT_EQ(long_one.get().status, 503);
    EXPECT_TRUE(httpd.wait_for_end_of(old));
    const BreakerBlock late = BreakerPage(httpd).member(one_);
    EXPECT_EQ(late.number("Verdict-failure"), 1U) << "an old child with another shape feeds the totals";
    EXPECT_EQ(late.number("Window-calls"), 0U) << "and nothing else";
    EXPECT_EQ(late.number("Late"), 1U);
    for (int i = 0; i < 60; ++i)
        EXPECT_EQ(get(httpd.url("/app/"), to_route("x")).status, 200);
    EXPECT_EQ(BreakerPage(httpd).member(one_).number("Window-calls"), 50U);
    ASSERT_TRUE(graceful_to_the_end(httpd));
    EXPECT_EQ(BreakerPage(httpd).member(one_).number("Window-calls"), 50U) << "the same shape: kept";
}

TEST_P(Restart, KeepsAnOldChildWithAWindowOfAnotherShapeOutOfTheNewOne) {
    const std::string scoreboard = "<Location /scoreboard>\n    SetHandler server-status\n</Location>\n";
    Httpd httpd(site(policy(), plain_worker(one_) + scoreboard));
    httpd.start();
    EXPECT_EQ(get(httpd.url("/app/")).status, 200);
    // A request that is half read when the restart comes: the old child makes its call in the new generation.
    RawClient slow(httpd.port());
    EXPECT_TRUE(slow.send("GET /app/ HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"));
    EXPECT_TRUE(wait_until(
        [&] {
            const std::string page = get(httpd.url("/scoreboard?auto")).body;
            const std::size_t begin = page.find("Scoreboard: ") + 12;
            return page.substr(begin, page.find('\n', begin) - begin).find('R') != std::string::npos;
        },
        patience, "a child to read the request"));
    const std::vector<pid_t> old = httpd.children();
    httpd.set_config(policy() + "CircuitBreakerWindow 50calls\n" + status_location + plain_worker(one_) + scoreboard);
    ASSERT_TRUE(httpd.graceful()) << httpd.describe();
    one_.answer_next(1, Reply::status(503));
    EXPECT_TRUE(slow.send("\r\n"));
    EXPECT_NE(slow.read_to_end().find(" 503 "), std::string::npos) << httpd.describe();
    EXPECT_TRUE(httpd.wait_for_end_of(old));
    const BreakerBlock block = BreakerPage(httpd).member(one_);
    EXPECT_EQ(block.number("Calls"), 2U);
    EXPECT_EQ(block.number("Window-calls"), 0U);
    EXPECT_EQ(block.number("Consecutive"), 0U) << "it feeds the totals only\n" << httpd.describe();
    EXPECT_EQ(block.number("Late"), 1U);
}

}  // namespace
}  // namespace cb::test
