// A PHP-FPM whose workers are all busy: more requests come than it can serve, for a while, and then almost as many as
// it can. What GUIDE.md says of it.
#include <array>

#include "guide.hpp"
#include "real_servers.hpp"
#include "steady_load.hpp"

namespace cb::test {
namespace {

constexpr unsigned kWorkers = 4;  // 200 ms each: 20 requests a second
constexpr unsigned kBearable = 18;
constexpr unsigned kTooMany = 12;  // and those for a while
constexpr std::chrono::seconds kBusy(6);
constexpr std::chrono::seconds kAfter(10);

/// A pool of its own, and an httpd in front of it.
struct Stand {
    explicit Stand(const std::string& config) {
        php.set_mode("work");
        php.start();
        std::string served = config;
        put(served, "timeout=10", "timeout=1");
        put(served, "/run/php/php-fpm.sock", (php.folder() / "socket").string());
        HttpdOptions options{.config = "DocumentRoot \"" + php.folder().string() + "\"\n" + served};
        options.add_modules = {"proxy_fcgi"};
        options.children = 2;
        options.threads = 32;
        httpd = std::make_unique<Httpd>(options);
        httpd->start();
    }
    /// So many requests a second.
    void begin(unsigned rate) {
        loads.push_back(std::make_unique<SteadyLoad>(httpd->url("/x.php"), rate, milliseconds(1000)));
    }
    [[nodiscard]] unsigned served() const {
        unsigned sum = 0;
        for (const auto& load : loads)
            sum += load->served();
        return sum;
    }

    PhpFpm php{kWorkers};
    std::unique_ptr<Httpd> httpd;
    std::vector<std::unique_ptr<SteadyLoad>> loads;
};

TEST(RealServers, PhpFpmThatRunsOutOfWorkersServesWhatItCanWithMaxConcurrent) {
    if (PhpFpm::program().empty()) GTEST_SKIP() << "The program is not installed: php-fpm";
    const std::string config = from_guide("PHP-FPM that runs out of workers", "apache");
    std::string without = config;
    put(without, "CircuitBreaker On\n    CircuitBreakerMaxConcurrent 4\n", "CircuitBreaker Off\n");
    std::string unlimited = config;
    put(unlimited, "    CircuitBreakerMaxConcurrent 4\n", "");
    Stand stock(without);
    Stand breaker(unlimited);
    Stand limited(config);
    const std::array<Stand*, 3> all{&stock, &breaker, &limited};
    const auto served = [&] { return std::array{stock.served(), breaker.served(), limited.served()}; };
    const auto tell = [](const char* when, const std::array<unsigned, 3>& numbers) {
        std::cout << when << ": " << numbers[0] << " served without, " << numbers[1] << " with a breaker, "
                  << numbers[2] << " with MaxConcurrent 4" << std::endl;
    };
    for (const unsigned rate : {kBearable, kTooMany}) {
        for (Stand* stand : all)
            stand->begin(rate);
    }
    std::this_thread::sleep_for(kBusy);  // the scenario itself takes this time
    const auto busy = served();
    for (Stand* stand : all)
        stand->loads.back()->stop();
    std::this_thread::sleep_for(kAfter);
    const auto end = served();
    tell("while too many come", busy);
    tell("in all", end);
    EXPECT_GT(end[2], 2 * end[0]) << limited.httpd->describe();
    EXPECT_GT(end[2], end[1]) << limited.httpd->describe();
    EXPECT_LT(end[0] - busy[0], end[2] - busy[2]) << "it has not recovered, though fewer come than it could serve";
}

}  // namespace
}  // namespace cb::test
