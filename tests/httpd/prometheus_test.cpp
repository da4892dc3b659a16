// A Prometheus of Debian's scrapes the module; the shipped alert rules and the dashboard fit what it then knows.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>

#include "events.hpp"
#include "metrics_page.hpp"
#include "real_servers.hpp"
#include "runbook.hpp"

namespace cb::test {
namespace {

std::string rules_file() {
    return (project() / "conf/prometheus/circuitbreaker.rules.yml").string();
}

std::string dashboard() {
    return read_file(project() / "conf/grafana/circuitbreaker.json");
}

/// With data in a folder of its own; it scrapes that server twice a second.
class Prometheus : public RealServer {
  public:
    explicit Prometheus(const Httpd& httpd) : RealServer("cb-prometheus") {
        write("prometheus.yml",
              "global:\n  scrape_interval: 500ms\n  scrape_timeout: 500ms\n  evaluation_interval: 200ms\n"
              "rule_files: [\"" +
                  rules_file() +
                  "\"]\nscrape_configs:\n  - job_name: httpd\n"
                  "    metrics_path: /metrics\n    static_configs:\n      - targets: [\"127.0.0.1:" +
                  std::to_string(httpd.port()) + "\"]\n");
    }
    [[nodiscard]] std::string url(const std::string& path) const { return "http://" + address() + path; }

    /// The query's answer; throws if Prometheus says that it is none.
    [[nodiscard]] Event query(const std::string& expression) const {
        const Event answer(get(url("/api/v1/query?query=" + encoded(expression))).body);
        if (answer.text("status") != "success") throw std::runtime_error(expression + ": " + answer.line());
        return answer;
    }
    /// The single value of it; NaN if there is no series.
    [[nodiscard]] double value(const std::string& expression) const {
        const std::string text = query(expression).line();
        static const std::regex sample("\"value\":\\s*\\[[0-9.]+,\\s*\"([^\"]*)\"\\]");
        std::smatch match;
        return std::regex_search(text, match, sample) ? std::stod(match[1]) : std::nan("");
    }
    [[nodiscard]] bool wait_for(const std::string& expression, double wanted) const {
        return wait_until([&] { return value(expression) == wanted; }, patience, expression);
    }

  private:
    static std::string encoded(const std::string& text) {
        const std::unique_ptr<char, decltype(&curl_free)> escaped(
            curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size())), curl_free);
        return escaped.get();
    }
    [[nodiscard]] bool takes_connections() const override { return get(url("/-/ready")).status == 200; }
    [[nodiscard]] Command command() const override {
        return {.argv = {"prometheus", "--config.file=" + (folder() / "prometheus.yml").string(),
                         "--storage.tsdb.path=" + (folder() / "data").string(), "--web.listen-address=" + address(),
                         "--log.level=warn"}};
    }
};

std::set<std::string> metrics_named_in(const std::string& text) {
    static const std::regex metric("httpd_circuitbreaker_[a-z_]+");
    std::set<std::string> names;
    for (std::sregex_iterator at(text.begin(), text.end(), metric), end; at != end; ++at)
        names.insert(at->str());
    return names;
}

/// What stands in the dashboard's "expr" and "query" members.
std::vector<std::string> expressions_of_dashboard() {
    std::vector<std::string> found;
    for (const Event& panel : Event(dashboard()).list("panels")) {
        for (const Event& target : panel.list("targets"))
            found.push_back(target.text("expr"));
    }
    return found;
}

TEST(Prometheus, RulesPassTheirOwnTests) {
    for (const std::string check : {"check", "test"}) {
        const std::string file =
            check == "check" ? rules_file() : (project() / "conf/prometheus/circuitbreaker.rules.test.yml").string();
        const CommandResult result = run_command({.argv = {"promtool", check, "rules", file}}, 60s);
        EXPECT_EQ(result.exit_status, 0) << result.output;
        EXPECT_NE(result.output.find("SUCCESS"), std::string::npos) << result.output;
    }
    const std::string tests = read_file(project() / "conf/prometheus/circuitbreaker.rules.test.yml");
    const std::string rules = read_file(rules_file());
    static const std::regex alert("alert: ([A-Za-z]+)");
    std::size_t count = 0;
    for (std::sregex_iterator at(rules.begin(), rules.end(), alert), end; at != end; ++at, ++count) {
        EXPECT_NE(tests.find("alertname: " + (*at)[1].str() + "\n        exp_alerts:\n"), std::string::npos)
            << (*at)[1] << " has no test in which it fires";
    }
    EXPECT_GE(count, 10U);
    static const std::regex record("record: ([a-z0-9_:]+)");
    count = 0;
    for (std::sregex_iterator at(rules.begin(), rules.end(), record), end; at != end; ++at, ++count)
        EXPECT_NE(tests.find("expr: " + (*at)[1].str() + "\n"), std::string::npos) << (*at)[1] << " has no test";
    EXPECT_GE(count, 4U);
}

TEST(Prometheus, EachMetricOfTheRulesAndTheDashboardExistsAndEachThatExistsIsOnTheDashboard) {
    Httpd httpd({.config = metrics_location});
    httpd.start();
    const std::vector<std::string> names = MetricsPage(httpd).sample_names();
    const std::set<std::string> existing(names.begin(), names.end());
    EXPECT_GE(existing.size(), 20U);
    for (const std::string& text : {read_file(rules_file()), dashboard()}) {
        const std::set<std::string> named = metrics_named_in(text);
        EXPECT_GE(named.size(), 8U);
        for (const std::string& name : named)
            EXPECT_TRUE(existing.contains(name)) << name;
    }
    const std::set<std::string> shown = metrics_named_in(dashboard());
    for (const std::string& name : existing) {
        const bool is_part_of_histogram = name.starts_with("httpd_circuitbreaker_probe_duration_seconds_") ||
                                          name.starts_with("httpd_circuitbreaker_outage_waiting_seconds_");
        EXPECT_TRUE(shown.contains(name) || is_part_of_histogram) << name;
    }
}

TEST(Prometheus, ScrapesTheModuleAndEvaluatesTheRulesAndTheDashboard) {
    Backend app("app");
    Httpd httpd(
        site(Mpm::event, std::string(quick_policy) + long_open + metrics_location, balancer_of(member_line(app))));
    httpd.start();
    Prometheus prometheus(httpd);
    prometheus.start();
    EXPECT_TRUE(prometheus.wait_for("up{job=\"httpd\"}", 1)) << prometheus.console();
    const std::string labels = "{vhost=\"127.0.0.1\",balancer=\"balancer://app\",member=\"" + app.member() + "\"";
    EXPECT_EQ(statuses(2, httpd.url("/app/x")), "200 200");
    app.answer(Reply::status(502));
    EXPECT_EQ(answerers(5, httpd.url("/app/x")), "app app app httpd httpd");
    EXPECT_TRUE(prometheus.wait_for("httpd_circuitbreaker_state" + labels + ",state=\"open\"}", 1))
        << prometheus.console();
    EXPECT_TRUE(prometheus.wait_for("sum(httpd_circuitbreaker_calls_total)", 5));
    EXPECT_TRUE(
        prometheus.wait_for("httpd_circuitbreaker_calls_total" + labels + ",verdict=\"failure\",probe=\"0\"}", 3));
    EXPECT_TRUE(prometheus.wait_for("httpd_circuitbreaker_rejected_total" + labels + ",reason=\"open\"}", 2));
    EXPECT_TRUE(prometheus.wait_for("httpd_circuitbreaker_call_duration_seconds_count" + labels + "}", 5));
    EXPECT_TRUE(prometheus.wait_for("httpd_circuitbreaker_call_duration_seconds_bucket" + labels + ",le=\"30.0\"}", 5))
        << "it was scraped as OpenMetrics";
    EXPECT_TRUE(prometheus.wait_for("httpd_circuitbreaker_events_lost_total", 0));

    const std::vector<std::string> expressions = expressions_of_dashboard();
    EXPECT_GE(expressions.size(), 20U);
    for (std::string expression : expressions) {
        for (const auto& [name, value] : std::map<std::string, std::string>{{"$__rate_interval", "1m"},
                                                                            {"$job", ".*"},
                                                                            {"$instance", ".*"},
                                                                            {"$balancer", ".*"},
                                                                            {"$member", ".*"}}) {
            for (std::size_t at = 0; (at = expression.find(name, at)) != std::string::npos;)
                expression.replace(at, name.size(), value);
        }
        EXPECT_NO_THROW((void)prometheus.query(expression));
    }
    EXPECT_TRUE(wait_until(
        [&] {
            const std::string rules = get(prometheus.url("/api/v1/rules")).body;
            EXPECT_EQ(rules.find("\"health\":\"err\""), std::string::npos) << rules;
            return rules.find("\"health\":\"ok\"") != std::string::npos &&
                   rules.find("\"health\":\"unknown\"") == std::string::npos;
        },
        patience, "the rules to be evaluated"));
    EXPECT_TRUE(prometheus.wait_for(
        "count(ALERTS{alertname=\"HttpdCircuitBreakerAllMembersOpen\",alertstate=\"pending\"})", 1));
}

}  // namespace
}  // namespace cb::test
