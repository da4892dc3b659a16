// The table of members over many restarts: slots of members that are gone are given back, those of members that come
// again are found again, and a table that is full costs breakers, never traffic.
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "restarts.hpp"
#include "trip.hpp"

namespace cb::test {
namespace {

/// Two members a restart that nobody ever heard of before.
std::string new_names(int restart) {
    const std::string path = "/" + std::to_string(restart);
    return "ProxyPass /one" + path + " http://127.0.0.1:9" + path + "\nProxyPass /two" + path +
           " http://127.0.0.1:9/two" + path + "\n";
}

class Table : public TrafficTest {
  protected:
    static std::string policy() { return quick_policy + std::string(long_open); }
    [[nodiscard]] static std::string config(const std::string& proxied) { return policy() + status_location + proxied; }

    static bool wait_for_members(const Httpd& httpd, std::size_t count) {
        return wait_until([&] { return BreakerPage(httpd).members().size() == count; }, patience,
                          std::to_string(count) + " members on the page");
    }

    /// A request that the held backend has. (One after the other: mod_proxy may give two at once to the same member.)
    [[nodiscard]] static std::future<Response> occupy(const Httpd& httpd, Backend& held) {
        for (;;) {
            std::future<Response> request = get_later(httpd.url("/app/"));
            const auto is_answered = [&] { return request.wait_for(0s) == std::future_status::ready; };
            EXPECT_TRUE(wait_until([&] { return held.concurrent() == 1 || is_answered(); }, patience, "a member"));
            if (!is_answered()) return request;
        }
    }

    Backend one_{"one"};
    Backend two_{"two"};
};

INSTANTIATE_TEST_SUITE_P(Httpd, Table, each_mpm, mpm_name);

TEST_P(Table, GivesASlotBackAsSoonAsTheOldChildrenAreGone) {
    Httpd httpd(site(policy(), balancer_of(member_line(one_) + member_line(two_))));
    httpd.start();
    two_.hold();
    std::future<Response> long_one = occupy(httpd, two_);
    EXPECT_TRUE(two_.wait_for_concurrent(1));
    const std::vector<pid_t> old = httpd.children();
    httpd.set_config(config(balancer_of(member_line(one_))));
    ASSERT_TRUE(httpd.graceful());
    EXPECT_EQ(BreakerPage(httpd).members().size(), 2U) << "an old child still calls it\n" << httpd.describe();
    EXPECT_EQ(BreakerPage(httpd).member(two_).number("In-flight"), 1U);
    two_.release();
    EXPECT_EQ(long_one.get().status, 200);
    EXPECT_TRUE(httpd.wait_for_end_of(old));
    EXPECT_TRUE(wait_for_members(httpd, 1)) << httpd.describe();
    EXPECT_FALSE(BreakerPage(httpd).member(one_).empty());
}

TEST_P(Table, GivesAMemberThatCameBackInTimeItsHistory) {
    const std::string both = balancer_of(member_line(one_) + member_line(two_));
    Httpd httpd(site(policy(), both + "ProxyPass /two " + two_.member() + "\n"));
    httpd.options().config = config(both);
    httpd.write_config();
    httpd.start();
    one_.hold();
    std::vector<std::future<Response>> long_ones;
    long_ones.push_back(occupy(httpd, one_));
    EXPECT_TRUE(one_.wait_for_concurrent(1));
    two_.answer_next(3, Reply::status(503));
    one_.refuse();
    EXPECT_TRUE(wait_until(
        [&] {
            (void)get(httpd.url("/app/"));
            return state_of(httpd, two_) == "open";
        },
        patience, "two to open"));
    const std::uint64_t generation = BreakerPage(httpd).member(two_).number("Generation");
    const std::vector<pid_t> old = httpd.children();
    httpd.set_config(config(balancer_of(member_line(one_))));
    ASSERT_TRUE(httpd.graceful());
    httpd.set_config(config(both));
    ASSERT_TRUE(httpd.graceful());
    EXPECT_EQ(state_of(httpd, two_), "open") << "a child of before kept its slot\n" << httpd.describe();
    EXPECT_EQ(BreakerPage(httpd).member(two_).number("Generation"), generation);
    one_.release();
    for (auto& each : long_ones)
        (void)each.get();
    EXPECT_TRUE(httpd.wait_for_end_of(old));
    EXPECT_EQ(state_of(httpd, two_), "open");
}

TEST_P(Table, StartsAMemberAnewThatCameBackAfterItsSlotWasFreed) {
    const std::string two = "ProxyPass /two " + two_.member() + "\n";
    Httpd httpd(site(policy(), plain_worker(one_) + two));
    httpd.start();
    trip(httpd, two_, {.path = "/two"});
    ASSERT_TRUE(graceful_to_the_end(httpd, config(plain_worker(one_))));
    ASSERT_TRUE(wait_for_members(httpd, 1)) << httpd.describe();
    ASSERT_TRUE(graceful_to_the_end(httpd, config(plain_worker(one_) + two)));
    const BreakerBlock block = BreakerPage(httpd).member(two_);
    EXPECT_EQ(block.at("State"), "closed");
    EXPECT_EQ(block.number("Calls"), 0U);
    EXPECT_EQ(block.number("Window-calls"), 0U);
    EXPECT_EQ(block.number("Opened"), 0U);
    trip(httpd, two_, {.path = "/two"});
}

TEST_P(Table, DoesNotFillUpOverFiftyRestartsWithEverNewMembers) {
    // Room for 2 x 3 + 64.
    Httpd httpd(site(policy(), plain_worker(one_) + new_names(0)));
    httpd.start();
    trip(httpd, one_, {.path = "/app"});
    for (int restart = 1; restart <= 50; ++restart) {
        ASSERT_TRUE(graceful_to_the_end(httpd, config(plain_worker(one_) + new_names(restart)))) << httpd.describe();
        for (const char* path : {"/", "/two/"}) {
            const std::string name = "http://127.0.0.1:9" + std::string(path) + std::to_string(restart);
            ASSERT_FALSE(BreakerPage(httpd).member(name).empty()) << name << httpd.describe();
        }
    }
    EXPECT_TRUE(httpd.error_lines_with("without a breaker").empty()) << httpd.describe();
    EXPECT_EQ(state_of(httpd, one_), "open") << "and who was there all the time has its state";
    EXPECT_TRUE(get(httpd.url("/app")).headers.has("Retry-After"));
    EXPECT_TRUE(wait_for_members(httpd, 3));
}

TEST_P(Table, DoesNotFillUpThoughThereIsAlwaysAChildOfTheConfigurationBefore) {
    // Room for 2 x 12 + 64: it would be full after the eighth.
    const auto config_of = [&](int restart) {
        std::string names = plain_worker(one_) + "ProxyPass /two " + two_.member() + "\n";
        for (int i = 0; i < 5; ++i)
            names += new_names(5 * restart + i);
        return config(names);
    };
    Httpd httpd(site("", ""));
    httpd.set_config(config_of(0));
    httpd.start();
    std::future<Response> long_one;
    for (int restart = 1; restart <= 12; ++restart) {
        Backend& now = restart % 2 == 0 ? one_ : two_;
        Backend& before = restart % 2 == 0 ? two_ : one_;
        now.hold();
        std::future<Response> next = get_later(httpd.url(restart % 2 == 0 ? "/app" : "/two"));
        ASSERT_TRUE(now.wait_for_concurrent(1));
        httpd.set_config(config_of(restart));
        ASSERT_TRUE(httpd.graceful()) << httpd.describe();
        before.release();
        if (long_one.valid()) {
            EXPECT_EQ(long_one.get().status, 200);
        }
        long_one = std::move(next);
        // The page is a new child's: an old one would have other names for its members.
        EXPECT_TRUE(wait_until(
            [&] {
                const BreakerPage page(httpd);
                return !page.member("http://127.0.0.1:9/" + std::to_string(5 * restart + 4)).empty() &&
                       page.members().size() <= 32;
            },
            patience, "the slots of the configuration before the last to be freed"))
            << httpd.describe();
    }
    one_.release();
    two_.release();
    EXPECT_EQ(long_one.get().status, 200);
    EXPECT_TRUE(httpd.error_lines_with("without a breaker").empty()) << httpd.describe();
}

TEST_P(Table, ThatIsFullWarnsOnceAndLetsTheRestPassWithoutBreakers) {
    Httpd httpd(site(policy(), plain_worker(one_)));
    httpd.start();
    trip(httpd, one_, {.path = "/app"});
    std::string many = plain_worker(one_);
    for (int i = 100; i < 180; ++i)
        many += "ProxyPass /many/" + std::to_string(i) + " " + two_.member() + "/m" + std::to_string(i) + "\n";
    ASSERT_TRUE(graceful_to_the_end(httpd, config(many)));
    // 2 x 1 + 64 at the start.
    EXPECT_EQ(BreakerPage(httpd).members().size(), 66U);
    EXPECT_EQ(httpd.error_lines_with("15 member(s) run without a breaker: the table of 66 slots is full").size(), 1U)
        << httpd.describe();
    EXPECT_EQ(state_of(httpd, one_), "open");

    two_.answer(Reply::status(503));
    unsigned with = 0;
    unsigned without = 0;
    for (int i = 100; i < 180; ++i) {
        const std::string path = "/many/" + std::to_string(i);
        two_.forget();
        EXPECT_EQ(statuses(4, httpd.url(path)), "503 503 503 503");
        ++(two_.requests() == 3 ? with : without);
        EXPECT_TRUE(two_.requests() == 3 || two_.requests() == 4) << two_.requests();
    }
    EXPECT_EQ(with, 65U);
    EXPECT_EQ(without, 15U);
    EXPECT_EQ(httpd.error_lines_with("without a breaker").size(), 1U) << "no line per request or child";

    ASSERT_TRUE(graceful_to_the_end(httpd, config(plain_worker(one_))));
    ASSERT_TRUE(wait_for_members(httpd, 1));
    EXPECT_EQ(state_of(httpd, one_), "open");
    EXPECT_EQ(httpd.stop(), 0);
    httpd.set_config(config(many));
    httpd.start();
    EXPECT_EQ(BreakerPage(httpd).members().size(), 81U) << "a new start makes a larger one";
}

}  // namespace
}  // namespace cb::test
