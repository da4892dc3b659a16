// The metrics page of the module under test, as data.
//
//     MetricsPage page(httpd);                                          // GET /metrics, text format
//     EXPECT_EQ(page.value("calls_total", app, {"verdict=\"failure\"", "probe=\"0\""}), 3);
//
// Thread safety: values; the constructor makes one request.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/backend.hpp"
#include "support/httpd.hpp"

namespace cb::test {

/// Lines of httpd.conf that put the page at /metrics; ahead of a `ProxyPass /`.
inline constexpr const char* metrics_location =
    "ProxyPass /metrics !\n<Location /metrics>\n    SetHandler circuitbreaker-metrics\n</Location>\n";

class MetricsPage {
  public:
    explicit MetricsPage(const Httpd& httpd);
    explicit MetricsPage(std::string text);

    /// Of the one series of that member with these labels; throws if there is none, or more.
    [[nodiscard]] double value(const std::string& metric, const std::string& member,
                               const std::vector<std::string>& labels = {}) const;
    [[nodiscard]] double value(const std::string& metric, const Backend& backend,
                               const std::vector<std::string>& labels = {}) const {
        return value(metric, backend.member(), labels);
    }
    [[nodiscard]] const std::string& text() const { return text_; }
    /// `name{labels}` of each series; twice the same one is an error of the page, and thrown.
    [[nodiscard]] const std::map<std::string, double>& series() const { return series_; }
    /// Names after the TYPE lines, with the suffixes of their samples.
    [[nodiscard]] std::vector<std::string> sample_names() const;

  private:
    void parse();

    std::string text_;
    std::map<std::string, double> series_;
};

}  // namespace cb::test
