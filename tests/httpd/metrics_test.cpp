// The metrics page: values after scripted traffic over several children, both formats, and what a name can hold.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "metrics_page.hpp"
#include "traffic.hpp"

namespace cb::test {
namespace {

class Metrics : public TrafficTest {};
INSTANTIATE_TEST_SUITE_P(Mpms, Metrics, any_mpm, mpm_name);

/// What several children do at once.
class MetricsOfAllChildren : public Metrics {};
INSTANTIATE_TEST_SUITE_P(Mpms, MetricsOfAllChildren, each_mpm, mpm_name);

TEST_P(MetricsOfAllChildren, SayWhatHappenedWhicheverChildrenServedIt) {
    Backend app("app");
    Backend seats("seats");
    Backend shut("shut");
    Httpd httpd(few_threads_each(site(std::string(quick_policy) + metrics_location + "<Proxy \"" + shut.member() +
                                          "\">\n    " + long_open + "</Proxy>\nProxyPass /shut " + shut.member() + "\n",
                                      plain_worker(app) + seats_at(seats)),
                                 3));
    httpd.start();
    ClientForEachChild clients(httpd, seats, 3);
    app.answer_next(4, Reply::ok());
    app.answer_next(1, Reply::status(404));
    app.answer_next(4, Reply::status(502));
    for (int i = 0; i < 8; ++i)
        EXPECT_EQ(clients.get("/app/x").backend(), "app");
    EXPECT_TRUE(wait_for_several_children(httpd, "/app/x")) << "or this test proves nothing";
    {
        const MetricsPage page(httpd);
        EXPECT_EQ(page.value("state", app, {"state=\"open\""}), 1) << page.text();
        EXPECT_EQ(page.value("state", app, {"state=\"closed\""}), 0);
        EXPECT_LE(page.value("open_remaining_seconds", app), 0.5);
        EXPECT_EQ(page.value("probes_in_flight", app), 0);
    }
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    EXPECT_EQ(clients.get("/app/x").status, 502) << "a probe that fails";
    shut.answer(Reply::status(502));
    EXPECT_EQ(statuses(8, httpd.url("/shut/x")), "502 502 502 503 503 503 503 503");
    ASSERT_TRUE(wait_for_end_of_open_time(httpd, app));
    app.answer(Reply::ok());
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(clients.get("/app/x").status, 200) << "a probe that succeeds, then calls";
    app.answer_next(1, Reply::status(502));
    EXPECT_EQ(clients.get("/app/x").status, 502);
    ASSERT_TRUE(wait_for_no_permits(httpd, app));

    const MetricsPage page(httpd);
    const auto value = [&](const char* name, const std::vector<std::string>& labels = {}) {
        return page.value(name, app, labels);
    };
    EXPECT_EQ(value("state", {"state=\"closed\""}), 1) << page.text();
    const auto expect_calls = [&](const char* name, const std::string& label, double ordinary, double probes) {
        EXPECT_EQ(value(name, {label, "probe=\"0\""}), ordinary) << label;
        EXPECT_EQ(value(name, {label, "probe=\"1\""}), probes) << label;
    };
    expect_calls("calls_total", "verdict=\"success\"", 8, 1);
    expect_calls("calls_total", "verdict=\"failure\"", 4, 1);
    expect_calls("calls_total", "verdict=\"ignore\"", 0, 0);
    expect_calls("outcomes_total", "outcome=\"2xx\"", 7, 1);
    expect_calls("outcomes_total", "outcome=\"4xx\"", 1, 0);
    expect_calls("outcomes_total", "outcome=\"5xx\"", 4, 1);
    expect_calls("outcomes_total", "outcome=\"timeout\"", 0, 0);
    expect_calls("outcomes_total", "outcome=\"upload\"", 0, 0);
    EXPECT_EQ(value("slow_calls_total", {"probe=\"0\""}), 0);
    EXPECT_EQ(value("slow_calls_total", {"probe=\"1\""}), 0);
    EXPECT_EQ(value("rejected_total", {"reason=\"open\""}), 0);
    EXPECT_EQ(page.value("rejected_total", shut, {"reason=\"open\""}), 5);
    EXPECT_EQ(value("would_reject_total", {"reason=\"open\""}), 0);
    EXPECT_EQ(value("transitions_total", {"from=\"closed\"", "to=\"open\""}), 1);
    EXPECT_EQ(value("transitions_total", {"from=\"open\"", "to=\"half-open\""}), 2);
    EXPECT_EQ(value("transitions_total", {"from=\"half-open\"", "to=\"open\""}), 1);
    EXPECT_EQ(value("transitions_total", {"from=\"half-open\"", "to=\"closed\""}), 1);
    EXPECT_EQ(value("transitions_total", {"from=\"closed\"", "to=\"forced-open\""}), 0) << "there from the start";
    EXPECT_EQ(value("transitions_total", {"from=\"open\"", "to=\"recovering\""}), 0) << "after an early round";
    EXPECT_EQ(value("probes_total", {"result=\"success\""}), 1);
    EXPECT_EQ(value("probes_total", {"result=\"failure\""}), 1);
    EXPECT_EQ(value("probes_total", {"result=\"neutral\""}), 0);
    EXPECT_EQ(value("probes_total", {"result=\"lost\""}), 0);
    EXPECT_EQ(value("call_duration_seconds_count"), 12);
    EXPECT_EQ(value("call_duration_seconds_bucket", {"le=\"+Inf\""}), 12);
    EXPECT_EQ(value("probe_duration_seconds_count"), 2);
    EXPECT_EQ(value("window_calls"), 4);
    EXPECT_EQ(value("failure_ratio"), 0.25);
    EXPECT_EQ(value("open_remaining_seconds"), 0);
    EXPECT_EQ(value("backoff_level"), static_cast<double>(BreakerPage(httpd).member(app).number("Level")));
    EXPECT_EQ(value("failovers_total"), 0);
    EXPECT_EQ(value("suppressed_total"), 0);
    EXPECT_EQ(value("flapping"), 0);
    EXPECT_GE(value("state_seconds_total", {"state=\"open\""}), 1.5) << "0.5 s, then twice as long";
    EXPECT_EQ(page.series().at("httpd_circuitbreaker_events_lost_total"), 0);
    EXPECT_EQ(page.text().find("/seat"), std::string::npos) << "a member without a breaker is none";
}

TEST_P(Metrics, HistogramsHaveEachCallInTheBucketOfItsDuration) {
    Backend app("app");
    Httpd httpd(site(std::string(counting_policy) + metrics_location, plain_worker(app)));
    httpd.start();
    app.answer_next(1, Reply::ok().after(150ms));
    EXPECT_EQ(statuses(3, httpd.url("/app/x")), "200 200 200");
    ASSERT_TRUE(wait_for_no_permits(httpd, app));
    const MetricsPage page(httpd);
    const auto bucket = [&](const char* bound) {
        return page.value("call_duration_seconds_bucket", app, {"le=\"" + std::string(bound) + "\""});
    };
    double last = 0;
    for (const char* bound :
         {"0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "30", "+Inf"}) {
        EXPECT_GE(bucket(bound), last) << bound << page.text();
        last = bucket(bound);
    }
    EXPECT_LE(bucket("0.1"), 2) << "the slow one is above";
    EXPECT_EQ(bucket("+Inf"), 3);
    EXPECT_EQ(page.value("call_duration_seconds_count", app), 3);
    EXPECT_GT(page.value("call_duration_seconds_sum", app), 0.1);
}

TEST_P(Metrics, ObserveCountsWhatItWouldHaveRejected) {
    Backend app("app");
    Httpd httpd(
        site(std::string(quick_policy) + long_open + "CircuitBreaker Observe\n" + metrics_location, plain_worker(app)));
    httpd.start();
    app.answer(Reply::status(502));
    EXPECT_EQ(answerers(7, httpd.url("/app/x")), "app app app app app app app");
    const MetricsPage page(httpd);
    EXPECT_EQ(page.value("would_reject_total", app, {"reason=\"open\""}), 4);
    EXPECT_EQ(page.value("rejected_total", app, {"reason=\"open\""}), 0);
}

/// A server of which the tests below look at the page only.
class MetricsFormat : public testing::Test {
  protected:
    Backend app_{"app"};
    Httpd httpd_{{.config = std::string(counting_policy) + status_location + metrics_location + plain_worker(app_)}};
};

constexpr const char* text_type = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* open_metrics_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";

TEST_F(MetricsFormat, IsChosenByAccept) {
    httpd_.start();
    const std::vector<std::pair<std::string, std::string>> wanted{
        {"", text_type},
        {"*/*", text_type},
        {"text/plain", text_type},
        {"application/openmetrics-text", open_metrics_type},
        {"APPLICATION/OpenMetrics-Text; Version=1.0.0", open_metrics_type},
        {"application/openmetrics-text; version=\"1.0.0\"", open_metrics_type},
        {"application/openmetrics-text; version=0.0.1", text_type},
        {"application/openmetrics-text; version=0.0.1, application/openmetrics-text; version=1.0.0; q=0.1",
         open_metrics_type},
        {"application/openmetrics-text; q=0", text_type},
        {"application/openmetrics-text;q=0.5,text/plain;q=0.9", text_type},
        {"text/plain;q=0.9,application/openmetrics-text;q=0.91", open_metrics_type},
        {"text/plain,application/openmetrics-text", open_metrics_type},
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         open_metrics_type},
        {",;=,q=,application/openmetrics-textx,;;q=1;", text_type},
    };
    for (const auto& [accept, type] : wanted) {
        const Response response = get(httpd_.url("/metrics"), {.headers = {{"Accept", accept}}});
        EXPECT_EQ(response.status, 200);
        EXPECT_EQ(response.header("Content-Type"), type) << accept;
        EXPECT_EQ(response.header("Cache-Control"), "no-store");
        EXPECT_EQ(response.header("Vary"), "Accept");
        EXPECT_EQ(response.body.ends_with("\n# EOF\n"), type == std::string(open_metrics_type));
        EXPECT_EQ(response.body.find("# EOF") != std::string::npos, type == std::string(open_metrics_type));
    }
}

TEST_F(MetricsFormat, OpenMetricsNamesCountersByTheirFamily) {
    httpd_.start();
    const std::string text =
        get(httpd_.url("/metrics"), {.headers = {{"Accept", "application/openmetrics-text"}}}).body;
    EXPECT_NE(text.find("# TYPE httpd_circuitbreaker_calls counter\n"), std::string::npos) << text;
    EXPECT_NE(text.find("\nhttpd_circuitbreaker_calls_total{vhost=\""), std::string::npos);
    EXPECT_NE(text.find("# UNIT httpd_circuitbreaker_state_seconds seconds\n"), std::string::npos);
    EXPECT_NE(text.find("le=\"1.0\""), std::string::npos);
    EXPECT_EQ(text.find("\n\n"), std::string::npos) << "no empty line";
    const std::string old = MetricsPage(httpd_).text();
    EXPECT_NE(old.find("# TYPE httpd_circuitbreaker_calls_total counter\n"), std::string::npos) << old;
    EXPECT_EQ(old.find("# UNIT"), std::string::npos);
    EXPECT_NE(old.find("le=\"1\""), std::string::npos);
}

TEST_F(MetricsFormat, PassesPrometheusOwnCheck) {
    httpd_.start();
    EXPECT_EQ(statuses(3, httpd_.url("/app/x")), "200 200 200");
    const TempDir folder("cb-metrics");
    std::ofstream(folder.path() / "page") << MetricsPage(httpd_).text();
    const CommandResult result =
        run_command({.argv = {"sh", "-c", "promtool check metrics < \"$0\"", (folder.path() / "page").string()}});
    EXPECT_EQ(result.exit_status, 0) << result.output;
    EXPECT_EQ(result.output, "");
}

TEST_F(MetricsFormat, OnlyGetAndHead) {
    httpd_.start();
    const Response head = get(httpd_.url("/metrics"), {.method = "HEAD"});
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.body, "");
    EXPECT_EQ(head.header("Content-Type"), text_type);
    for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
        const Response response = get(httpd_.url("/metrics"), {.method = method});
        EXPECT_EQ(response.status, 405) << method;
        EXPECT_NE(response.header("Allow").find("GET"), std::string::npos);
    }
}

TEST_F(MetricsFormat, TheNumberOfSeriesIsThatOfTheMembersWhateverIsAsked) {
    httpd_.start();
    const std::size_t before = MetricsPage(httpd_).series().size();
    for (int i = 0; i < 20; ++i)
        (void)get(httpd_.url("/app/" + std::to_string(i)), {.headers = {{"Host", "host" + std::to_string(i)}}});
    app_.refuse();
    (void)get(httpd_.url("/app/x"));
    EXPECT_EQ(MetricsPage(httpd_).series().size(), before);
}

TEST(MetricsNames, AreEscapedAndUniqueSoThatNoTwoMembersShareASeries) {
    Backend app("app");
    Httpd httpd;
    const std::string listen = "Listen 127.0.0.2:" + std::to_string(httpd.port()) + "\n";
    const auto vhost = [&](const std::string& address, const std::string& name) {
        return "<VirtualHost " + address + ":" + std::to_string(httpd.port()) + ">\nServerName " + name +
               "\n<Proxy balancer://app>\n" + member_line(app) +
               "</Proxy>\nProxyPass /app balancer://app\n</VirtualHost>\n";
    };
    httpd.set_config(std::string(counting_policy) + metrics_location + listen +
                     "<Proxy \"balancer://q'\\\"\\\\\xC3\xA4\xFF\">\n" + member_line(app) + "</Proxy>\n" +
                     vhost("127.0.0.1", "same.example:80") + vhost("127.0.0.2", "same.example:80") +
                     vhost("127.0.0.1", "same.example:81"));
    httpd.start();
    const MetricsPage page(httpd);  // throws if two series are the same
    std::size_t members = 0;
    for (const auto& [series, value] : page.series())
        members += series.starts_with("httpd_circuitbreaker_backoff_level{") ? 1U : 0U;
    EXPECT_EQ(members, 4U) << page.text();
    EXPECT_NE(page.text().find("vhost=\"same.example:80\""), std::string::npos);
    EXPECT_NE(page.text().find("vhost=\"same.example:80#2\""), std::string::npos);
    EXPECT_NE(page.text().find("vhost=\"same.example:81\""), std::string::npos);
    EXPECT_NE(page.text().find("balancer=\"balancer://q'\\\"\\\\\xC3\xA4\xEF\xBF\xBD\""), std::string::npos)
        << page.text();
}

TEST(MetricsNames, WithoutAnyBreakerThePageIsThereAndEmpty) {
    Httpd httpd({.config = metrics_location});
    httpd.start();
    const MetricsPage page(httpd);
    EXPECT_EQ(page.series().size(), 1U) << page.text();
    EXPECT_EQ(page.series().count("httpd_circuitbreaker_events_lost_total"), 1U);
}

}  // namespace
}  // namespace cb::test
