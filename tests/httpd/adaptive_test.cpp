// Adaptive probing on a real httpd: rounds grow with what all children have seen of the probes before.
#include "traffic.hpp"

namespace cb::test {
namespace {

class Adaptive : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, Adaptive, each_mpm, mpm_name);

TEST_P(Adaptive, ARoundAdmitsTwiceAsManyOnceTenProbesHaveGoneWell) {
    Backend app("app");
    Httpd httpd(crowded(std::string(quick_policy) + "CircuitBreakerOpenTime 200ms factor=1 jitter=0\n" +
                            "CircuitBreakerProbes 5 max=8\n",
                        plain_worker(app)));
    httpd.start();
    for (const unsigned admitted : {5U, 5U, 8U}) {
        app.answer(Reply::status(502));
        EXPECT_EQ(statuses(3, httpd.url("/app/trip")), "502 502 502");
        app.answer_as_usual();
        ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
        app.forget();
        app.hold();
        BackgroundLoad clients(httpd.url("/app/x"), {.threads = 12, .keep_connections = false});
        ASSERT_TRUE(app.wait_for_concurrent(admitted)) << httpd.describe();
        ASSERT_TRUE(clients.wait_for_answers(100)) << "the others are refused meanwhile";
        EXPECT_EQ(app.requests(), admitted);
        app.release();
        ASSERT_TRUE(wait_for_state(httpd, app, "closed"));
        const LoadResult result = clients.finish();
        EXPECT_EQ(result.with_status(200) + result.with_status(503), result.total()) << result.describe();
        EXPECT_TRUE(wait_for_no_permits(httpd, app));
    }
}

}  // namespace
}  // namespace cb::test
