// Flapping on a real httpd: one warning over all children, that names the directive to change.
#include "events.hpp"
#include "traffic.hpp"

namespace cb::test {
namespace {

TEST(Flapping, IsReportedOnceWithWhatItsProbesRanInto) {
    Backend app("app");
    Httpd httpd(site(Mpm::event,
                     std::string(quick_policy) + "CircuitBreakerOpenTime 1s factor=1 jitter=0\n" +
                         "CircuitBreakerProbeTimeout 100ms\nCircuitBreakerEventLog events.json probes=Off\n",
                     plain_worker(app)));
    httpd.start();
    app.answer(Reply::status(502));
    EXPECT_EQ(statuses(3, httpd.url("/app/trip")), "502 502 502");
    app.answer(Reply::hang());
    for (int n = 0; n < 4; ++n) {
        ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
        EXPECT_EQ(get(httpd.url("/app/probe")).status, 502);
    }
    ASSERT_TRUE(httpd.wait_for_error_line("half-open -> open: probe failed", 4)) << httpd.describe();
    const std::vector<std::string> lines = httpd.error_lines_with("flapping: ");
    ASSERT_EQ(lines.size(), 1U) << httpd.describe();
    EXPECT_NE(lines[0].find(":warn]"), std::string::npos) << lines[0];
    EXPECT_TRUE(lines[0].ends_with("member " + app.member() +
                                   ": flapping: opened 4 times within 10 of its open times (10 s); 3 of its last 3 "
                                   "failed probes timed out after 0.1 s: if it is no more than slow, raise "
                                   "CircuitBreakerProbeTimeout"))
        << lines[0];
    std::string reasons;
    for (const Event& event : read_events(httpd.root() / "events.json"))
        if (event.text("event") == "flapping") reasons += event.text("reason");
    EXPECT_EQ(reasons, "opened 4 times within 10 of its open times: CircuitBreakerProbeTimeout");
}

}  // namespace
}  // namespace cb::test
