// The status page of the module under test, as data.
//
//     BreakerPage page(httpd);                                  // GET /breakers, text
//     EXPECT_EQ(page.member(app).at("State"), "open");
//     EXPECT_TRUE(wait_for_state(httpd, app, "half-open"));
//
// Every configuration of these tests contains `status_location`, which serves it.
//
// Thread safety: values; the functions make one request each.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "support/backend.hpp"
#include "support/httpd.hpp"

namespace cb::test {

/// Lines of httpd.conf that put the page at /breakers; ahead of a `ProxyPass /`.
inline constexpr const char* status_location =
    "ProxyPass /breakers !\n<Location /breakers>\n    SetHandler circuitbreaker-status\n</Location>\n";

class BreakerBlock {
  public:
    [[nodiscard]] bool empty() const { return values_.empty(); }
    /// "" for a key that isn't there.
    [[nodiscard]] std::string at(const std::string& key) const;
    /// A number; throws for a key that isn't there or is no number, so that a typo in a test can't pass.
    [[nodiscard]] std::uint64_t number(const std::string& key) const;
    void set(const std::string& key, const std::string& value) { values_[key] = value; }

  private:
    std::map<std::string, std::string> values_;
};

/// " Calls=5 Outcome-client=5": those of these counters that are not zero.
[[nodiscard]] std::string non_zero(const BreakerBlock& block, std::initializer_list<const char*> counters);

/// It says what is expected.
template <typename Read>
bool wait_for_text(Read read, const std::string& expected) {
    const bool is_so = wait_until([&] { return read() == expected; }, patience, expected);
    EXPECT_EQ(is_so ? expected : read(), expected);
    return is_so;
}

class BreakerPage {
  public:
    explicit BreakerPage(const Httpd& httpd);
    /// The block of that member (by `Member:`), and of that balancer if it is named; empty if there is none.
    [[nodiscard]] BreakerBlock member(const std::string& name, const std::string& balancer = "") const;
    [[nodiscard]] BreakerBlock member(const Backend& backend) const { return member(backend.member()); }
    [[nodiscard]] const std::vector<BreakerBlock>& members() const { return blocks_; }

  private:
    std::vector<BreakerBlock> blocks_;
};

/// "closed", "open", ...
[[nodiscard]] inline std::string state_of(const Httpd& httpd, const std::string& member) {
    return BreakerPage(httpd).member(member).at("State");
}
[[nodiscard]] inline std::string state_of(const Httpd& httpd, const Backend& backend) {
    return state_of(httpd, backend.member());
}
[[nodiscard]] bool wait_for_state(const Httpd& httpd, const Backend& backend, const std::string& state,
                                  milliseconds timeout = patience);

}  // namespace cb::test
