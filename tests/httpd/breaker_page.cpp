#include "breaker_page.hpp"

#include <sstream>
#include <stdexcept>

#include "support/http_client.hpp"

namespace cb::test {

std::string BreakerBlock::at(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? "" : found->second;
}

std::uint64_t BreakerBlock::number(const std::string& key) const {
    const std::string value = at(key);
    std::size_t used = 0;
    if (value.empty() || value[0] == '-') throw std::runtime_error("no number on the status page: " + key);
    const std::uint64_t number = std::stoull(value, &used);
    if (used != value.size()) throw std::runtime_error("not a number on the status page: " + key + ": " + value);
    return number;
}

std::string non_zero(const BreakerBlock& block, std::initializer_list<const char*> counters) {
    std::string text;
    for (const char* counter : counters) {
        if (block.number(counter) > 0) text += std::string(" ") + counter + "=" + block.at(counter);
    }
    return text;
}

BreakerPage::BreakerPage(const Httpd& httpd) {
    const Response response = get(httpd.url("/breakers?auto"));
    if (response.status != 200) throw std::runtime_error("no status page: " + response.error + "\n" + httpd.describe());
    std::istringstream lines(response.body);
    BreakerBlock block;
    for (std::string line; std::getline(lines, line);) {
        const std::size_t colon = line.find(": ");
        if (line.empty()) {
            if (!block.empty()) blocks_.push_back(block);
            block = BreakerBlock();
        } else if (colon != std::string::npos) {
            block.set(line.substr(0, colon), line.substr(colon + 2));
        }
    }
    if (!block.empty()) blocks_.push_back(block);
}

BreakerBlock BreakerPage::member(const std::string& name, const std::string& balancer) const {
    for (const BreakerBlock& block : blocks_) {
        if (block.at("Member") == name && (balancer.empty() || block.at("Balancer") == balancer)) return block;
    }
    return {};
}

bool wait_for_state(const Httpd& httpd, const Backend& backend, const std::string& state, milliseconds timeout) {
    return wait_until([&] { return BreakerPage(httpd).member(backend).at("State") == state; }, timeout,
                      backend.name() + " to be " + state);
}

}  // namespace cb::test
