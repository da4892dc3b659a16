// The module among others: each one it needs missing in turn, its place in the order of loading, no directive at all.
#include <gtest/gtest.h>

#include <string>

#include "config_check.hpp"
#include "restarts.hpp"
#include "runbook.hpp"
#include "traffic.hpp"

namespace cb::test {
namespace {

constexpr const char* modules_folder = "/usr/lib/apache2/modules/";

std::string load(const std::string& name, const std::string& file) {
    return "LoadModule " + name + "_module \"" + file + "\"\n";
}

std::string load(const std::string& name) {
    return load(name, modules_folder + ("mod_" + name + ".so"));
}

class Modules : public TrafficTest {
  protected:
    /// A plain worker at /plain/, and at /balanced/ a balancer if its module is there.
    [[nodiscard]] HttpdOptions options(std::vector<std::string> without) const {
        return {.mpm = GetParam(),
                .config = quick_policy + std::string(long_open) + status_location + "ProxyPass /plain/ " +
                          app_.member() + "/\n" + "<IfModule proxy_balancer_module>\n<Proxy balancer://app>\n" +
                          member_line(app_) + "</Proxy>\nProxyPass /balanced/ balancer://app/\n</IfModule>\n",
                .leave_out_modules = std::move(without)};
    }

    /// The breaker of that path opens after three failures, and keeps the next request from the backend.
    void expect_breaker_at(const Httpd& httpd, const std::string& path) {
        app_.answer_path("/x", Reply::status(503));
        EXPECT_EQ(statuses(3, httpd.url(path + "x")), "503 503 503");
        app_.forget();
        EXPECT_TRUE(get(httpd.url(path + "x")).headers.has("Retry-After")) << httpd.describe();
        EXPECT_EQ(app_.requests(), 0U) << httpd.describe();
    }

    static void expect_one_line(const std::string& output, const std::vector<std::string>& parts) {
        unsigned lines = 0;
        std::istringstream stream(output);
        for (std::string line; std::getline(stream, line);) {
            if (line.find("mod_circuitbreaker") == std::string::npos) continue;
            ++lines;
            for (const std::string& part : parts)
                EXPECT_NE(line.find(part), std::string::npos) << part << ": " << line;
        }
        EXPECT_EQ(lines, 1U) << output;
    }

    Backend app_{"app"};
};

INSTANTIATE_TEST_SUITE_P(Httpd, Modules, any_mpm, mpm_name);

/// What restarts do.
class ModulesOfARunningServer : public Modules {};
INSTANTIATE_TEST_SUITE_P(Httpd, ModulesOfARunningServer, each_mpm, mpm_name);

TEST_P(Modules, WithoutModProxyItSaysSoInOneLineAndDoesNotStart) {
    HttpdOptions missing = options(
        {"proxy", "proxy_http", "proxy_balancer", "lbmethod_byrequests", "lbmethod_bybusyness", "lbmethod_bytraffic"});
    missing.config = "CircuitBreaker On\n";
    Httpd httpd(missing);
    const CommandResult check = httpd.config_test();
    EXPECT_EQ(check.exit_status, 1) << check.output;
    expect_one_line(check.output, {"needs mod_proxy", "LoadModule proxy_module"});
    EXPECT_FALSE(httpd.try_start());
    EXPECT_EQ(httpd.exit_status(), 1);
    expect_one_line(httpd.console(), {"needs mod_proxy", "LoadModule proxy_module"});
}

TEST_P(Modules, WithoutModSlotmemShmItSaysSoInOneLineAndDoesNotStart) {
    Httpd httpd(options({"slotmem_shm"}));
    const CommandResult check = httpd.config_test();
    EXPECT_EQ(check.exit_status, 1) << check.output;
    expect_one_line(check.output, {"needs mod_slotmem_shm", "LoadModule slotmem_shm_module"});
    EXPECT_FALSE(httpd.try_start());
    EXPECT_EQ(httpd.exit_status(), 1);
    expect_one_line(httpd.console(), {"needs mod_slotmem_shm", "LoadModule slotmem_shm_module"});
}

TEST_P(Modules, WithoutModProxyBalancerPlainWorkersHaveTheirBreakers) {
    // Without balancers it needs neither of the two, and says nothing.
    Httpd httpd(
        options({"proxy_balancer", "slotmem_shm", "lbmethod_byrequests", "lbmethod_bybusyness", "lbmethod_bytraffic"}));
    EXPECT_EQ(httpd.config_test().output, "Syntax OK\n");
    httpd.start();
    expect_breaker_at(httpd, "/plain/");
}

TEST_P(Modules, WithBalancersButWithoutModProxyBalancerItSaysSoInOneLine) {
    HttpdOptions missing =
        options({"proxy_balancer", "slotmem_shm", "lbmethod_byrequests", "lbmethod_bybusyness", "lbmethod_bytraffic"});
    missing.config +=
        "<Proxy balancer://app>\n" + member_line(app_) + "</Proxy>\nProxyPass /balanced/ balancer://app/\n";
    Httpd httpd(missing);
    const CommandResult check = httpd.config_test();
    EXPECT_EQ(check.exit_status, 0) << check.output;
    expect_one_line(check.output, {"mod_proxy_balancer is not loaded", "LoadModule proxy_balancer_module"});
    httpd.start();
    expect_one_line(httpd.console() + httpd.error_log(), {"mod_proxy_balancer is not loaded"});
    expect_breaker_at(httpd, "/plain/");
}

TEST_P(Modules, LoadedBeforeModProxyAndItsBalancerItWorksAsAfterThem) {
    // The harness loads it last of all; here it is first.
    HttpdOptions first = options({"slotmem_shm", "proxy", "proxy_http", "proxy_balancer", "lbmethod_byrequests",
                                  "lbmethod_bybusyness", "lbmethod_bytraffic"});
    first.circuitbreaker = false;
    first.config = load("circuitbreaker", module_under_test().string()) + load("proxy") + load("proxy_http") +
                   load("proxy_balancer") + load("lbmethod_byrequests") + load("slotmem_shm") + first.config;
    for (const HttpdOptions& options : {first, options({})}) {
        Httpd httpd(options);
        httpd.start();
        expect_breaker_at(httpd, "/plain/");
        expect_breaker_at(httpd, "/balanced/");
        EXPECT_TRUE(graceful_to_the_end(httpd));
        EXPECT_EQ(state_of(httpd, app_), "open");
        EXPECT_EQ(statuses(2, httpd.url("/balanced/x")), "503 503");
        EXPECT_EQ(app_.requests(), 0U) << "the hooks are in place after a restart too";
    }
}

TEST_P(Modules, WithoutADirectiveEverythingIsAsIfItWereNotLoaded) {
    HttpdOptions plain = options({});
    plain.config = std::string(status_location) + "<Proxy balancer://app>\n" + member_line(app_, "retry=600") +
                   "ProxySet forcerecovery=Off\n</Proxy>\nProxyPass / balancer://app/\n";
    Httpd httpd(plain);
    EXPECT_EQ(httpd.config_test().output, "Syntax OK\n");
    httpd.start();
    EXPECT_EQ(get(httpd.url()).backend(), "app");
    EXPECT_TRUE(BreakerPage(httpd).members().empty());
    app_.refuse();
    EXPECT_EQ(get(httpd.url()).status, 503);
    app_.accept_again();
    app_.forget();
    EXPECT_EQ(get(httpd.url()).status, 503) << "mod_proxy's own error state";
    EXPECT_EQ(app_.requests(), 0U);
    EXPECT_TRUE(graceful_to_the_end(httpd));
    EXPECT_EQ(get(httpd.url()).backend(), "app");
    EXPECT_EQ(httpd.stop(), 0);
    EXPECT_TRUE(httpd.error_lines_with("circuit").empty()) << httpd.describe();
}

TEST_P(ModulesOfARunningServer, AddedAndTakenAwayByRestartsOfARunningServer) {
    HttpdOptions with = options({});
    const std::string config = with.config;
    with.circuitbreaker = false;
    with.config = "<IfModule circuitbreaker_module>\n" + std::string(quick_policy) + "</IfModule>\n" + "ProxyPass / " +
                  app_.member() + "/\n";
    Httpd httpd(with);
    httpd.start();
    EXPECT_EQ(get(httpd.url("/plain/")).status, 200);
    httpd.options().circuitbreaker = true;
    httpd.set_config(config);
    ASSERT_TRUE(graceful_to_the_end(httpd)) << httpd.describe();
    expect_breaker_at(httpd, "/plain/");
    httpd.options().circuitbreaker = false;
    httpd.set_config(with.config);
    ASSERT_TRUE(graceful_to_the_end(httpd)) << httpd.describe();
    EXPECT_EQ(statuses(4, httpd.url("/x")), "503 503 503 503");
    EXPECT_EQ(app_.requests(), 4U) << "no breaker any more";
    httpd.options().circuitbreaker = true;
    httpd.set_config(config);
    ASSERT_TRUE(graceful_to_the_end(httpd)) << httpd.describe();
    EXPECT_EQ(BreakerPage(httpd).member(app_.member() + "/").at("State"), "open")
        << "the shared memory is still there\n"
        << httpd.describe();
    // Nobody told it of the children that ended meanwhile; they hold no slot for ever.
    Backend other("other");
    httpd.set_config(quick_policy + std::string(status_location) + plain_worker(other));
    ASSERT_TRUE(graceful_to_the_end(httpd)) << httpd.describe();
    EXPECT_TRUE(
        wait_until([&] { return BreakerPage(httpd).members().size() == 1; }, patience, "the slots to be freed"));
}

TEST(IfModule, IsTrueByBothNamesOfTheModuleWhereItIsLoadedAlone) {
    ConfigCheck with;
    ConfigCheck without("", {.circuitbreaker = false});
    for (const std::string name : {"circuitbreaker_module", "mod_circuitbreaker.c"}) {
        const std::string line = "CircuitBreakerWindow nonsense";
        const std::string section = "<IfModule " + name + ">\n" + line + "\n</IfModule>";
        with.expect_refused(section, {"CircuitBreakerWindow"}, line);
        without.expect_accepted(section);
        with.expect_accepted("<IfModule !" + name + ">\nNonsense\n</IfModule>");
    }
    with.expect_accepted("LogLevel mod_circuitbreaker.c:debug");
}

TEST(IfModule, IsUsedByTheShippedConfigurationWhichMayStayWithoutTheModule) {
    const std::string include = "Include \"" + (project() / "conf/circuitbreaker.conf").string() + "\"\n";
    for (const bool is_loaded : {true, false}) {
        HttpdOptions options{.config = include};
        options.add_modules = {"authz_host"};
        options.circuitbreaker = is_loaded;
        Httpd httpd(options);
        httpd.start();
        EXPECT_EQ(get(httpd.url("/circuitbreaker")).status, is_loaded ? 200 : 404) << httpd.describe();
        // Nothing of it is left: the name of a LogFormat that is not there is a format itself.
        httpd.set_config(include + "CustomLog access2.log circuitbreaker\n");
        ASSERT_TRUE(httpd.restart());
        EXPECT_EQ(get(httpd.url("/nothing")).status, 404);
        const auto is_logged = [&] { return !read_file(httpd.root() / "access2.log").empty(); };
        ASSERT_TRUE(wait_until(is_logged, patience, "a line of the log"));
        EXPECT_EQ(read_file(httpd.root() / "access2.log").find("verdict=") != std::string::npos, is_loaded);
    }
}

}  // namespace
}  // namespace cb::test
