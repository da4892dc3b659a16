// What the tests of early probes share: a policy that allows them soon, and two members that can be tripped.
//
// Thread safety: belongs to the main thread (see process.hpp).
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "traffic.hpp"

namespace cb::test {

/// Opens at the third failure, for ten minutes; is probed early after 300 ms.
inline const std::string last_resort_policy =
    std::string(quick_policy) + "CircuitBreakerOpenTime 10min factor=1 jitter=0 min=300ms\n";

class LastResortTest : public TrafficTest {
  protected:
    [[nodiscard]] static bool is_open(const Httpd& httpd, const Backend& member) {
        return state_of(httpd, member) == "open";
    }
    /// They answer 503 until all of them are open, and after that.
    static void open(const Httpd& httpd, const std::vector<Backend*>& members, const std::string& path = "/app/trip") {
        for (Backend* member : members)
            member->answer(Reply::status(503));
        const auto are_all_open = [&] {
            return std::all_of(members.begin(), members.end(),
                               [&](const Backend* member) { return is_open(httpd, *member); });
        };
        for (int i = 0; i < 12 && !are_all_open(); ++i)
            (void)get(httpd.url(path));
        ASSERT_TRUE(are_all_open()) << httpd.describe();
    }
    /// Since it opened, or since its last early probe.
    [[nodiscard]] static bool wait_for_minimum(const Httpd& httpd, const Backend& member) {
        constexpr std::uint64_t kMin = 300;
        const std::uint64_t from = BreakerPage(httpd).member(member).number("Next-probe-ms");
        return wait_until([&] { return BreakerPage(httpd).member(member).number("Next-probe-ms") + kMin < from; },
                          patience, "the minimum to be over");
    }
    /// All of them are open, may be probed early, are well again, and have forgotten their requests.
    static void trip(const Httpd& httpd, const std::vector<Backend*>& members, const std::string& path = "/app/trip") {
        open(httpd, members, path);
        for (Backend* member : members) {
            ASSERT_TRUE(wait_for_minimum(httpd, *member));
            member->answer_as_usual();
            member->forget();
        }
    }

    Backend one_{"one"};
    Backend two_{"two"};
};

}  // namespace cb::test
