// Members that balancer-manager adds at run time (CASES 26): each child makes their breaker its own, with the policy of
// their balancer, in the shared table.
#include <gtest/gtest.h>

#include <string>

#include "metrics_page.hpp"
#include "restarts.hpp"
#include "traffic.hpp"

namespace cb::test {
namespace {

constexpr unsigned children = 4;

class Manager : public TrafficTest {
  protected:
    static std::string config(const std::string& policy, const std::string& members, const std::string& more = "") {
        return policy + status_location + more +
               "ProxyPass /balancer-manager !\n<Location /balancer-manager>\n    SetHandler "
               "balancer-manager\n</Location>\n" +
               balancer_of(members + "    ProxySet growth=5\n");
    }
    [[nodiscard]] static HttpdOptions options(const std::string& config) {
        return few_threads_each({.mpm = GetParam(), .config = config}, children);
    }

    /// What an operator's browser sends: the page's own nonce, and where it comes from.
    static int post(const Httpd& httpd, const std::string& fields) {
        const std::string page = get(httpd.url("/balancer-manager")).body;
        const std::string mark = "nonce=";
        const std::size_t at = page.find(mark);
        EXPECT_NE(at, std::string::npos) << page;
        if (at == std::string::npos) return 0;
        const std::string nonce = page.substr(at + mark.size(), 36);
        return get(httpd.url("/balancer-manager"), {.method = "POST",
                                                    .headers = {{"Content-Type", "application/x-www-form-urlencoded"},
                                                                {"Referer", httpd.url("/balancer-manager")}},
                                                    .body = "b=app&nonce=" + nonce + "&" + fields})
            .status;
    }
    static std::string escaped(std::string url) {
        for (std::size_t at = 0; (at = url.find_first_of(":/", at)) != std::string::npos; ++at) {
            url.replace(at, 1, url[at] == ':' ? "%3A" : "%2F");
        }
        return url;
    }
    static void add(const Httpd& httpd, const Backend& backend) {
        EXPECT_EQ(post(httpd, "b_wyes=1&b_nwrkr=" + escaped(backend.member())), 200) << httpd.describe();
    }
    static void enable(const Httpd& httpd, const Backend& backend, bool on = true) {
        EXPECT_EQ(post(httpd, "w=" + escaped(backend.member()) + "&w_status_D=" + (on ? "0" : "1")), 200);
    }

    /// Requests that every child of the server serves one of at least; each answer must be as wanted.
    template <class Wanted>
    void in_every_child(const Httpd& httpd, const std::string& path, Wanted wanted) {
        EXPECT_TRUE(wait_until(
            [&] {
                ClientForEachChild clients(httpd, seats_, children);
                for (unsigned i = 0; i < children; ++i) {
                    const Response response = clients.get(path);
                    EXPECT_TRUE(wanted(response)) << response.status << " from " << response.backend();
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
    add(httpd, added_);
    in_every_child(httpd, "/app/disabled", from("first"));
    enable(httpd, added_);
    enable(httpd, first_, false);
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

    enable(httpd, first_);
    in_every_child(httpd, "/app/around", from("first"));
}

TEST_P(Manager, AnAddedMemberIsOnTheMetricsPageOfEveryChildBeforeItsFirstRequest) {
    Httpd httpd(options(config(counting_policy, member_line(first_), seats_at(seats_) + metrics_location)));
    httpd.start();
    ASSERT_TRUE(httpd.wait_for_children(children));
    add(httpd, added_);
    in_every_child(httpd, "/metrics", [&](const Response& page) {
        return MetricsPage(page.body).value("state", added_, {"state=\"closed\""}) == 1;
    });
    EXPECT_EQ(added_.requests(), 0U);
}

TEST_P(Manager, AnAddedMemberHasItsOwnSectionsPolicyAndNoErrorStateOfModProxy) {
    const std::string section =
        "<Proxy \"" + added_.member() + "\">\n    CircuitBreakerConsecutiveFailures 5\n</Proxy>\n";
    Httpd httpd(options(config(quick_policy + std::string(long_open), member_line(first_, "status=+D"), section)));
    EXPECT_EQ(httpd.config_test().exit_status, 0);
    httpd.start();
    add(httpd, added_);
    enable(httpd, added_);
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
        add(httpd, *backend);
        enable(httpd, *backend);
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
    add(httpd, added_);
    enable(httpd, added_);
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
        add(httpd, each);
        enable(httpd, each);
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
