// Deployments as GUIDE.md describes them: its own commands and configuration, taken out of it, with three members that
// are killed and started anew while clients go on.
#include <fstream>

#include "guide.hpp"
#include "pages.hpp"

namespace cb::test {
namespace {

constexpr milliseconds kDown(2000);
constexpr milliseconds kWork(100);  // of each request

/// A member that works on each request for a while; what it has not ended when it is killed breaks off.
class App {
  public:
    explicit App(const std::string& name) : backend(name) {
        backend.answer([this](const Request&) {
            const unsigned born_in = life_;
            std::this_thread::sleep_for(kWork);
            if (life_ == born_in) return Reply::ok(backend.name());
            ++cut;
            return Reply::reset();
        });
    }
    void kill() {
        ++life_;
        backend.refuse();
    }
    [[nodiscard]] std::string host() const { return "127.0.0.1:" + std::to_string(backend.port()); }

    Backend backend;
    std::atomic<unsigned> cut{0};
    std::atomic<unsigned> restarts{0};

  private:
    std::atomic<unsigned> life_{0};
};

class Deploy : public TrafficTest {
  protected:
    Deploy() {
        std::ofstream(folder_.path() / "users") << "olga:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n";  // secret
        std::ofstream(folder_.path() / ".netrc") << "machine 127.0.0.1 login olga password secret\n";
        // Who it is that `ssh` asks in the guide: it returns when the member is up again.
        operator_.answer([this](const Request& request) {
            for (App* app : apps_) {
                if (request.target != "/" + app->host()) continue;
                restart(*app);
                return Reply::ok();
            }
            return Reply::status(404);
        });
    }
    static void restart(App& app) {
        app.kill();
        std::this_thread::sleep_for(kDown);  // the scenario itself takes this time
        app.backend.accept_again();
        ++app.restarts;
    }
    [[nodiscard]] std::string put_members(std::string text) const {
        for (std::size_t i = 0; i < apps_.size(); ++i)
            put(text, "10.0.0." + std::to_string(7 + i) + ":8080", apps_[i]->host());
        return text;
    }
    [[nodiscard]] HttpdOptions with_pages() const {
        std::string pages = from_guide("Preparation", "apache");
        put(pages, "/etc/apache2/circuitbreaker/users", (folder_.path() / "users").string());
        put(pages, "www.example.com", "127.0.0.1");
        std::string members;
        for (const App* app : apps_)
            members += member_line(app->backend);
        HttpdOptions options{.mpm = GetParam(),
                             .config = "CircuitBreaker On\nCircuitBreakerRampUp 24h\n" + std::string(status_location) +
                                       pages + balancer_of(members)};
        options.add_modules = {"authn_core", "authn_file", "auth_basic", "authz_user"};
        options.children = GetParam() == Mpm::prefork ? 16 : 4;
        return options;
    }
    /// The guide's commands below that heading, after those of the preparation.
    [[nodiscard]] CommandResult run_guide(const std::string& heading, const Httpd& httpd) const {
        std::string script = put_members(from_guide("Preparation", "sh")) + from_guide(heading, "sh");
        put(script, "https://www.example.com", httpd.url().substr(0, httpd.url().size() - 1));
        const std::size_t at = script.find("    ssh ");
        EXPECT_NE(at, std::string::npos);
        script.replace(at, script.find('\n', at) - at, "    curl --silent --fail \"" + operator_.url() + "$host\"");
        const std::filesystem::path file = folder_.path() / "deploy.sh";
        std::ofstream(file) << script;
        return run_command({.argv = {"sh", file.string()}, .environment = {{"HOME", folder_.path().string()}}}, 60s);
    }
    /// Under load, by the recipe with that heading: every member is restarted once and nothing is cut off.
    void deploy_and_lose_nothing(const std::string& heading, const Httpd& httpd) const {
        BackgroundLoad load(httpd.url("/app/x"), clients());
        ASSERT_TRUE(load.wait_for_answers(50));
        const CommandResult script = run_guide(heading, httpd);
        EXPECT_EQ(script.exit_status, 0) << script.output;
        for (const App* app : apps_) {
            const unsigned before = app->backend.requests();
            EXPECT_TRUE(app->backend.wait_for_requests(before + 10)) << "all of them serve again" << httpd.describe();
        }
        const LoadResult result = load.finish();
        EXPECT_TRUE(result.all(200)) << result.describe() << script.output << httpd.describe();
        for (const App* app : apps_) {
            EXPECT_EQ(app->restarts, 1U) << app->backend.name();
            EXPECT_EQ(app->cut, 0U) << app->backend.name();
        }
    }
    [[nodiscard]] static LoadOptions clients() { return {.threads = 12, .time_limit = 90s, .keep_connections = false}; }

    TempDir folder_{"cb-deploy"};
    App a_{"a"};
    App b_{"b"};
    App c_{"c"};
    const std::vector<App*> apps_{&a_, &b_, &c_};
    Backend operator_{"operator"};
};
INSTANTIATE_TEST_SUITE_P(Httpd, Deploy, any_mpm, mpm_name);

TEST_P(Deploy, WithMembersDrainedInBalancerManagerLosesNothing) {
    Httpd httpd(with_pages());
    httpd.start();
    deploy_and_lose_nothing("Drain in balancer-manager", httpd);
    EXPECT_EQ(transition_lines(httpd).size(), 0U) << "no breaker has anything to do";
}

TEST_P(Deploy, WithHealthChecksLosesNothingAndTheMembersAreProbedAtOnce) {
    HttpdOptions options{.mpm = GetParam(), .config = put_members(from_guide("Health checks", "apache"))};
    options.add_modules = {"proxy_hcheck"};
    options.children = GetParam() == Mpm::prefork ? 16 : 4;
    Httpd httpd(options);
    httpd.start();
    BackgroundLoad load(httpd.url("/app/x"), clients());
    ASSERT_TRUE(load.wait_for_answers(50));
    for (App* app : apps_) {
        restart(*app);
        const unsigned before = app->backend.requests_for("/x");
        EXPECT_TRUE(wait_until([&] { return app->backend.requests_for("/x") >= before + 10; }, patience, "requests"))
            << httpd.describe();
    }
    const LoadResult result = load.finish();
    EXPECT_TRUE(result.all(200)) << result.describe() << httpd.describe();
    EXPECT_GE(httpd.error_lines_with("may be probed now").size(), 1U) << httpd.describe();
    for (const App* app : apps_) {
        EXPECT_GT(app->cut, 0U) << "or the test has shown nothing";
        EXPECT_GT(app->backend.requests_for("/health"), 0U);
    }
}

TEST_P(Deploy, WithBreakersForcedOpenLosesNothing) {
    Httpd httpd(with_pages());
    httpd.start();
    deploy_and_lose_nothing("Force the breaker open", httpd);
    EXPECT_EQ(transitions(httpd, "closed", "forced-open"), 3U);
    EXPECT_EQ(transitions(httpd, "forced-open", "closed"), 3U) << "without a ramp" << httpd.describe();
    EXPECT_EQ(transition_lines(httpd).size(), 6U);
}

}  // namespace
}  // namespace cb::test
