// GUIDE.md's recipes about what opens a breaker: its own configurations, taken out of it.
#include "guide.hpp"
#include "slow.hpp"

namespace cb::test {
namespace {

class GuideRules : public TrafficTest {
  protected:
    void start(const std::string& heading, const std::string& without = "") {
        std::string config = from_guide(heading, "apache");
        put(config, "\"http://10.0.0.7:8080\"", app_.member());
        put(config, "    BalancerMember \"http://10.0.0.8:8080\"\n", "");
        if (!without.empty()) put(config, without, "");
        httpd_ = std::make_unique<Httpd>(site("", config));
        httpd_->start();
    }
    void make(unsigned count, int status, const std::string& path = "/app/x") {
        for (unsigned i = 0; i < count; ++i)
            EXPECT_EQ(get(httpd_->url(path)).status, status);
    }

    Backend app_{"app"};
    std::unique_ptr<Httpd> httpd_;
};
INSTANTIATE_TEST_SUITE_P(Mpms, GuideRules, any_mpm, mpm_name);

TEST_P(GuideRules, AShortBlipOpensNothing) {
    for (const bool is_whole : {true, false}) {
        start("Short blips", is_whole ? "" : "    CircuitBreakerConsecutiveFailures Off\n");
        app_.answer_as_usual();
        make(20, 200);
        app_.answer(Reply::status(503));
        make(10, 503);
        EXPECT_EQ(state_of(*httpd_, app_), is_whole ? "closed" : "open");
        if (is_whole) make(10, 503);
        EXPECT_EQ(state_of(*httpd_, app_), "open") << "half of the calls";
        httpd_->stop();
    }
}

TEST_P(GuideRules, ASlowAnswerIsAFailureButForReports) {
    start("Slow answers");
    app_.answer(Reply::ok().after(2500ms));
    make(1, 200);
    make(1, 200, "/app/report/1");
    EXPECT_TRUE(wait_for_counter(*httpd_, app_, "Calls", 2));
    const BreakerBlock block = BreakerPage(*httpd_).member(app_);
    EXPECT_EQ(block.number("Slow"), 2U);
    EXPECT_EQ(block.number("Verdict-failure"), 1U);
    EXPECT_EQ(block.number("Verdict-success"), 1U);
}

}  // namespace
}  // namespace cb::test
