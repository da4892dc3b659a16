// A breaker switched off, on and to Observe by graceful restarts: who owns the error state of its members. While the
// breaker acts they carry `+I`, so mod_proxy never marks them; when it is off, mod_proxy's own rules are back, and an
// operator's own `+I` stays.
#include <gtest/gtest.h>

#include <string>

#include "restarts.hpp"
#include "traffic.hpp"

namespace cb::test {
namespace {

/// A member as a plain worker, or alone in a balancer whose shared memory is of this run, or kept over stop and start.
enum class Place { plain, balancer, persistent };

struct Where {
    Mpm mpm;
    Place place;
};

void PrintTo(const Where& where, std::ostream* out) {
    *out << name_of(where.mpm) << " " << static_cast<int>(where.place);
}

class Switch : public testing::TestWithParam<Where> {
  protected:
    /// `parameters`: of the member. A member that mod_proxy has marked stays so for the rest of the test.
    [[nodiscard]] std::string config(const std::string& mode, const std::string& parameters = "") const {
        const std::string head =
            quick_policy + std::string(long_open) + "CircuitBreaker " + mode + "\n" + status_location;
        const std::string with = "retry=600 " + parameters;
        // mod_proxy gives workers without a balancer a +I of their own.
        if (GetParam().place == Place::plain)
            return head + plain_worker(app_, parameters.empty() ? "status=-I " + with : with);
        return head + (GetParam().place == Place::persistent ? "BalancerPersist On\n" : "") +
               balancer_of(member_line(app_, with) + "    ProxySet forcerecovery=Off\n");
    }
    [[nodiscard]] HttpdOptions options(const std::string& mode, const std::string& parameters = "") const {
        return {.mpm = GetParam().mpm,
                .config = config(mode, parameters),
                .children = 1,
                .threads = 4,
                // One child only: a plain worker's mark is seen by nobody else.
                .mpm_directives = {"ServerLimit 1",
                                   GetParam().mpm == Mpm::prefork ? "MaxRequestWorkers 1" : "MaxRequestWorkers 4"}};
    }

    /// After one refused connection: does mod_proxy keep the next request from the member?
    [[nodiscard]] bool mod_proxy_marks_it(const Httpd& httpd) {
        app_.refuse();
        EXPECT_EQ(get(httpd.url("/app/")).status, 503);
        app_.accept_again();
        app_.forget();
        const int status = get(httpd.url("/app/")).status;
        EXPECT_EQ(status, app_.requests() == 1 ? 200 : 503);
        return app_.requests() == 0;
    }

    /// Three failures, then a request that does not arrive.
    void expect_the_breaker_acts(const Httpd& httpd) {
        app_.answer_next(3, Reply::status(503));
        EXPECT_EQ(statuses(3, httpd.url("/app/")), "503 503 503");
        app_.forget();
        EXPECT_TRUE(get(httpd.url("/app/")).headers.has("Retry-After")) << httpd.describe();
        EXPECT_EQ(app_.requests(), 0U);
    }

    Backend app_{"app"};
};

std::string name_of_place(const testing::TestParamInfo<Where>& where) {
    const Place place = where.param.place;
    return name_of(where.param.mpm) + (place == Place::plain      ? "PlainWorker"
                                       : place == Place::balancer ? "Balancer"
                                                                  : "PersistentBalancer");
}

INSTANTIATE_TEST_SUITE_P(Httpd, Switch,
                         testing::ValuesIn(of_chosen_mpms<Where>({{Mpm::prefork, Place::balancer},
                                                                  {Mpm::prefork, Place::persistent},
                                                                  {Mpm::worker, Place::balancer},
                                                                  {Mpm::worker, Place::persistent},
                                                                  {Mpm::event, Place::balancer},
                                                                  {Mpm::event, Place::persistent},
                                                                  {Mpm::event, Place::plain}})),
                         name_of_place);

TEST_P(Switch, WhileItActsModProxyMarksNothing) {
    Httpd httpd(options("On"));
    httpd.start();
    EXPECT_FALSE(mod_proxy_marks_it(httpd)) << httpd.describe();
    expect_the_breaker_acts(httpd);
}

TEST_P(Switch, InObserveAndOffModProxyMarksAsEver) {
    for (const char* mode : {"Observe", "Off"}) {
        Httpd httpd(options(mode));
        httpd.start();
        EXPECT_TRUE(mod_proxy_marks_it(httpd)) << mode << httpd.describe();
    }
}

TEST_P(Switch, OffByAGracefulRestartGivesModProxyItsErrorStateBack) {
    for (const char* mode : {"Off", "Observe"}) {
        Httpd httpd(options("On"));
        httpd.start();
        EXPECT_FALSE(mod_proxy_marks_it(httpd));
        expect_the_breaker_acts(httpd);
        ASSERT_TRUE(graceful_to_the_end(httpd, config(mode)));
        EXPECT_EQ(get(httpd.url("/app/")).status, 200) << "open or not, it refuses nothing any more: " << mode;
        EXPECT_TRUE(mod_proxy_marks_it(httpd)) << mode << httpd.describe();
    }
}

TEST_P(Switch, OnByAGracefulRestartTakesAMarkedMemberOver) {
    Httpd httpd(options("Off"));
    httpd.start();
    EXPECT_TRUE(mod_proxy_marks_it(httpd));
    ASSERT_TRUE(graceful_to_the_end(httpd, config("On")));
    EXPECT_EQ(get(httpd.url("/app/")).status, 200) << "mod_proxy's mark does not outlive its rule\n"
                                                   << httpd.describe();
    EXPECT_FALSE(mod_proxy_marks_it(httpd));
    expect_the_breaker_acts(httpd);
}

TEST_P(Switch, OffAndOnAndOffAgainWorksEachTime) {
    Httpd httpd(options("On"));
    httpd.start();
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(graceful_to_the_end(httpd, config("Off")));
        EXPECT_TRUE(mod_proxy_marks_it(httpd)) << i << httpd.describe();
        EXPECT_TRUE(wait_until([&] { return BreakerPage(httpd).members().empty(); }, patience, "its slot to be freed"));
        ASSERT_TRUE(graceful_to_the_end(httpd, config("On")));
        EXPECT_FALSE(mod_proxy_marks_it(httpd)) << i << httpd.describe();
        expect_the_breaker_acts(httpd);
    }
}

TEST_P(Switch, OffLeavesAnOperatorsOwnIgnoreErrorsAlone) {
    Httpd httpd(options("On", "status=+I"));
    httpd.start();
    EXPECT_FALSE(mod_proxy_marks_it(httpd));
    ASSERT_TRUE(graceful_to_the_end(httpd, config("Off", "status=+I")));
    EXPECT_FALSE(mod_proxy_marks_it(httpd)) << "it is the operator's\n" << httpd.describe();
    ASSERT_TRUE(graceful_to_the_end(httpd, config("On", "status=+I")));
    ASSERT_TRUE(graceful_to_the_end(httpd, config("Off", "status=+I")));
    EXPECT_FALSE(mod_proxy_marks_it(httpd)) << httpd.describe();
}

TEST_P(Switch, OffLeavesAnOperatorsIgnoreErrorsAloneThatCameWhileItActed) {
    if (GetParam().place == Place::persistent) {
        // mod_proxy_balancer takes no member's status from the configuration once it has one in its file: then the +I
        // in force is ours alone, and goes with us.
        Httpd httpd(options("On"));
        httpd.start();
        ASSERT_TRUE(graceful_to_the_end(httpd, config("On", "status=+I")));
        ASSERT_TRUE(graceful_to_the_end(httpd, config("Off", "status=+I")));
        EXPECT_TRUE(mod_proxy_marks_it(httpd)) << httpd.describe();
        return;
    }
    Httpd httpd(options("On"));
    httpd.start();
    ASSERT_TRUE(graceful_to_the_end(httpd, config("On", "status=+I")));
    EXPECT_FALSE(mod_proxy_marks_it(httpd));
    ASSERT_TRUE(graceful_to_the_end(httpd, config("Off", "status=+I")));
    EXPECT_FALSE(mod_proxy_marks_it(httpd)) << "it is the operator's\n" << httpd.describe();
}

TEST_P(Switch, OffBetweenAStopAndAStartLeavesNothingOfIt) {
    Httpd httpd(options("On"));
    httpd.start();
    EXPECT_FALSE(mod_proxy_marks_it(httpd));
    EXPECT_EQ(httpd.stop(), 0);
    httpd.set_config(config("Off"));
    httpd.start();
    EXPECT_TRUE(mod_proxy_marks_it(httpd)) << "no +I of ours in a file of mod_proxy_balancer\n" << httpd.describe();
}

}  // namespace
}  // namespace cb::test
