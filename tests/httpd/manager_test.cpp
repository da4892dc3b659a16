// Members that balancer-manager adds at run time: each child finds or makes their breaker in the shared table, with the
// policy of their balancer.
#include <gtest/gtest.h>

#include <string>

#include "manager.hpp"
#include "metrics_page.hpp"
#include "pages.hpp"
#include "restarts.hpp"

namespace cb::test {
namespace {

constexpr unsigned children = 4;

class Manager : public TrafficTest {
  protected:
    static std::string config(const std::string& policy, const std::string& members, const std::string& more = "") {
        return policy + control_location + more + managed_balancer(members);
    }
    [[nodiscard]] static HttpdOptions options(const std::string& config) {
        return few_threads_each({.mpm = GetParam(), .config = config}, children);
    }

    /// Requests that every child of the server serves one of at least; each answer must be as wanted.
    template <class Wanted>
    void in_every_child(const Httpd& httpd, const std::string& path, Wanted wanted,
                        const RequestOptions& options = {}) {
        EXPECT_TRUE(wait_until(
            [&] {
                ClientForEachChild clients(httpd, seats_, children);
                for (unsigned i = 0; i < children; ++i) {
                    const Response response = clients.get(path, options);
                    EXPECT_TRUE(wanted(response))
                        << path << ": " << response.status << " from " << response.backend() << "\n"
                        << response.body;
                }
                return httpd.wait_for_access_line("path=" + path + " ") &&
                       children_that_served(httpd, path) >= children;
            },
            patience, "a request in every child"));
    }

    Backend seats_{"seats"};
    Backend first_{"first"};
    Backend added_{"added"};
};

INSTANTIATE_TEST_SUITE_P(Httpd, Manager, each_mpm, mpm_name);

TEST_P(Manager, AnAddedMembersBreakerActsInEveryChild) {
    Httpd httpd(options(config(quick_policy + std::string(long_open), member_line(first_), seats_at(seats_))));
    httpd.start();
    ASSERT_TRUE(httpd.wait_for_children(children));
    const auto from = [](const char* name) {
        return [name](const Response& response) { return response.backend() == name; };
    };
    add_member(httpd, added_);
    in_every_child(httpd, "/app/disabled", from("first"));
    enable_member(httpd, added_);
    enable_member(httpd, first_, false);
    in_every_child(httpd, "/app/enabled", from("added"));
    const BreakerBlock block = BreakerPage(httpd).member(added_);
    ASSERT_FALSE(block.empty()) << httpd.describe();
    EXPECT_EQ(block.number("Calls"), added_.requests()) << "one breaker for all of them";
    EXPECT_EQ(BreakerPage(httpd).members().size(), 2U);

    added_.answer(Reply::status(503));
    EXPECT_EQ(statuses(3, httpd.url("/app/")), "503 503 503");
    EXPECT_EQ(state_of(httpd, added_), "open") << "by its balancer's policy\n" << httpd.describe();
    added_.forget();
    in_every_child(httpd, "/app/refused", [](const Response& refused) { return refused.headers.has("Retry-After"); });
    EXPECT_EQ(added_.requests(), 0U);
    EXPECT_EQ(transition_lines(httpd).size(), 1U);

    enable_member(httpd, first_);
    in_every_child(httpd, "/app/around", from("first"));
}

TEST_P(Manager, AnAddedMemberIsOnTheMetricsPageOfEveryChildBeforeItsFirstRequest) {
    Httpd httpd(options(config(counting_policy, member_line(first_), seats_at(seats_) + metrics_location)));
    httpd.start();
    ASSERT_TRUE(httpd.wait_for_children(children));
    add_member(httpd, added_);
    in_every_child(httpd, "/metrics", [&](const Response& page) {
        return MetricsPage(page.body).value("state", added_, {"state=\"closed\""}) == 1;
    });
    EXPECT_EQ(added_.requests(), 0U);
}

TEST_P(Manager, AnAddedMemberIsOnEveryPageOfEveryChildBeforeItsFirstRequest) {
    Httpd httpd(options(config(counting_policy, member_line(first_),
                               "<Location /server-status>\n    SetHandler server-status\n</Location>\n"
                               "ProxyPass /server-status !\n" +
                                   seats_at(seats_))));
    httpd.start();
    ASSERT_TRUE(httpd.wait_for_children(children));
    // What only a child that knows it can say: its policy, its virtual host.
    const std::string row = "<td>balancer://app</td><td>NAME</td><td>.*opens at 100%";
    const struct {
        std::string path;
        std::string pattern;
    } pages[] = {
        {"/breakers?refresh=0", "<span class=\"name\">NAME</span></td>.*opens at 100 %"},
        {"/breakers?format=json", "\"member\":\"NAME\",\"mode\":\"On\""},
        {"/breakers?auto", "Member: NAME\nBalancer: balancer://app\nVhost: 127"},
        {"/server-status", row},
        {"/server-status?auto", "Member: NAME\nCircuitBreaker.*Balancer: balancer://app\nCircuitBreaker.*Vhost: 127"},
        {"/balancer-manager", row},
        {"/balancer-manager?xml=1", "<cb:worker>NAME</cb:worker>\n *<cb:mode>On<"},
    };
    for (const auto& [path, pattern] : pages) {
        Backend added("added");
        add_member(httpd, added);
        std::string expected = "(" + pattern + ")";
        expected.replace(expected.find("NAME"), 4, added.member());
        in_every_child(httpd, path, [&](const Response& page) { return !first_match(page.body, expected).empty(); },
                       {.headers = {{"Referer", httpd.url("/balancer-manager")}}});
        EXPECT_EQ(added.requests(), 0U);
    }
}

TEST_P(Manager, AMemberAddedThroughAVirtualHostThatInheritsTheBalancerIsKnownToEveryChild) {
    // Its line of mod_proxy's gives it a copy of the balancer, with memory of its own for added members.
    Httpd httpd(options(config(counting_policy, member_line(first_), seats_at(seats_)) +
                        "<VirtualHost *>\n    ServerName inner\n    ProxyPass /nowhere !\n</VirtualHost>\n"));
    httpd.start();
    ASSERT_TRUE(httpd.wait_for_children(children));
    add_member(httpd, added_);
    const std::string known = "(\"member\":\"" + added_.member() + "\",\"mode\":\"On\")";
    in_every_child(httpd, "/breakers?format=json",
                   [&](const Response& page) { return !first_match(page.body, known).empty(); });
    enable_member(httpd, added_);
    added_.answer(Reply::status(503));
    in_every_child(httpd, "/app/x", [](const Response& response) { return !response.backend().empty(); });
}

TEST_P(Manager, AnAddedMemberTakesActionsInEveryChildBeforeItsFirstRequest) {
    Httpd httpd(options(config(counting_policy, member_line(first_), seats_at(seats_))));
    httpd.start();
    ASSERT_TRUE(httpd.wait_for_children(children));
    add_member(httpd, added_);
    const std::string origin = httpd.url().substr(0, httpd.url().size() - 1);
    in_every_child(httpd, "/breakers?post", [](const Response& answer) { return answer.status == 303; },
                   {.method = "POST",
                    .headers = {{"Content-Type", "application/x-www-form-urlencoded"}, {"Origin", origin}},
                    .body = form(httpd, added_, "force-open")});
    EXPECT_EQ(BreakerPage(httpd).member(added_).at("State"), "forced-open");
}

TEST_P(Manager, AnAddedMemberHasItsOwnSectionsPolicyAndNoErrorStateOfModProxy) {
    const std::string section =
        "<Proxy \"" + added_.member() + "\">\n    CircuitBreakerConsecutiveFailures 5\n</Proxy>\n";
    Httpd httpd(options(config(quick_policy + std::string(long_open), member_line(first_, "status=+D"), section)));
    EXPECT_EQ(httpd.config_test().exit_status, 0);
    httpd.start();
    add_member(httpd, added_);
    enable_member(httpd, added_);
    EXPECT_EQ(get(httpd.url("/app/")).backend(), "added");
    added_.refuse();
    EXPECT_EQ(statuses(2, httpd.url("/app/")), "503 503");
    added_.accept_again();
    EXPECT_EQ(get(httpd.url("/app/")).backend(), "added") << "mod_proxy has not marked it\n" << httpd.describe();
    added_.answer(Reply::status(503));
    EXPECT_EQ(statuses(4, httpd.url("/app/")), "503 503 503 503");
    EXPECT_EQ(state_of(httpd, added_), "closed");
    EXPECT_EQ(statuses(1, httpd.url("/app/")), "503");
    EXPECT_EQ(state_of(httpd, added_), "open") << httpd.describe();
}

TEST_P(Manager, ABalancerThatBeganWithoutMembersGivesThemBreakersToo) {
    Httpd httpd(options(config(quick_policy + std::string(long_open), "")));
    httpd.start();
    EXPECT_EQ(get(httpd.url("/app/")).status, 503);
    for (Backend* backend : {&added_, &first_}) {
        add_member(httpd, *backend);
        enable_member(httpd, *backend);
        EXPECT_EQ(get(httpd.url("/app/")).backend(), backend->name());
        backend->answer(Reply::status(503));
        EXPECT_EQ(statuses(3, httpd.url("/app/")), "503 503 503");
        EXPECT_EQ(state_of(httpd, *backend), "open") << httpd.describe();
        EXPECT_TRUE(get(httpd.url("/app/")).headers.has("Retry-After")) << httpd.describe();
        EXPECT_EQ(backend->requests(), 4U);
    }
}

TEST_P(Manager, AnAddedMemberThatIsKeptOverARestartKeepsItsState) {
    const std::string lines =
        config(quick_policy + std::string(long_open), member_line(first_), "BalancerPersist On\n");
    Httpd httpd(options(lines));
    httpd.start();
    add_member(httpd, added_);
    enable_member(httpd, added_);
    added_.answer(Reply::status(503));
    EXPECT_TRUE(wait_until(
        [&] {
            (void)get(httpd.url("/app/"));
            return state_of(httpd, added_) == "open";
        },
        patience, "it to open"));
    added_.forget();
    ASSERT_TRUE(graceful_to_the_end(httpd));
    EXPECT_EQ(state_of(httpd, added_), "open") << httpd.describe();
    EXPECT_EQ(answerers(6, httpd.url("/app/")), "first first first first first first");
    EXPECT_EQ(added_.requests(), 0U);
    ASSERT_TRUE(httpd.restart());
    EXPECT_EQ(state_of(httpd, added_), "open");
    EXPECT_EQ(answerers(6, httpd.url("/app/")), "first first first first first first");
    EXPECT_EQ(added_.requests(), 0U);
}

TEST_P(Manager, AddingUnderLoadLosesNoRequest) {
    Httpd httpd(options(config(quick_policy, member_line(first_))));
    httpd.options().threads = 4;
    httpd.write_config();
    httpd.start();
    BackgroundLoad load(httpd.url("/app/"), {.threads = 4, .time_limit = 30s, .keep_connections = false});
    EXPECT_TRUE(load.wait_for_answers(20));
    Backend more[3];
    for (Backend& each : more) {
        add_member(httpd, each);
        enable_member(httpd, each);
        EXPECT_TRUE(each.wait_for_requests(20)) << httpd.describe();
    }
    const LoadResult result = load.finish();
    EXPECT_TRUE(result.all(200)) << result.describe() << httpd.describe();
    for (const Backend& each : more) {
        EXPECT_TRUE(wait_for_no_permits(httpd, each));
        EXPECT_EQ(BreakerPage(httpd).member(each).number("Calls"), each.requests());
    }
}

}  // namespace
}  // namespace cb::test
