#include "metrics_page.hpp"

#include <set>
#include <sstream>
#include <stdexcept>

#include "support/http_client.hpp"

namespace cb::test {

MetricsPage::MetricsPage(const Httpd& httpd) : text_(get(httpd.url("/metrics")).body) {
    parse();
}

MetricsPage::MetricsPage(std::string text) : text_(std::move(text)) {
    parse();
}

void MetricsPage::parse() {
    std::istringstream lines(text_);
    for (std::string line; std::getline(lines, line);) {
        if (line.empty() || line.front() == '#') continue;
        const std::size_t space = line.rfind(' ');
        if (space == std::string::npos) throw std::runtime_error("no sample: " + line);
        if (!series_.emplace(line.substr(0, space), std::stod(line.substr(space + 1))).second) {
            throw std::runtime_error("twice: " + line);
        }
    }
}

double MetricsPage::value(const std::string& metric, const std::string& member,
                          const std::vector<std::string>& labels) const {
    const std::string begin = "httpd_circuitbreaker_" + metric + "{";
    std::vector<double> found;
    for (const auto& [series, number] : series_) {
        bool is_it = series.starts_with(begin) && series.find(",member=\"" + member + "\"") != std::string::npos;
        for (const std::string& label : labels)
            is_it = is_it && series.find("," + label) != std::string::npos;
        if (is_it) found.push_back(number);
    }
    if (found.size() != 1) throw std::runtime_error(metric + ": " + std::to_string(found.size()) + " series\n" + text_);
    return found.front();
}

std::vector<std::string> MetricsPage::sample_names() const {
    std::set<std::string> names;
    std::istringstream lines(text_);
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("# TYPE ")) continue;
        std::istringstream words(line.substr(7));
        std::string name;
        std::string kind;
        words >> name >> kind;
        if (kind == "histogram") {
            for (const char* suffix : {"_bucket", "_sum", "_count"})
                names.insert(name + suffix);
        } else {
            names.insert(name);
        }
    }
    return {names.begin(), names.end()};
}

}  // namespace cb::test
