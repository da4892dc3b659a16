// What the tests about traffic have in common: configurations as text, one client for each child, gates.
//
//     Httpd httpd(site(GetParam(), "CircuitBreakerConsecutiveFailures 3\n", plain_worker(app)));
//     httpd.start();
//     EXPECT_EQ(statuses(4, httpd.url("/app/x")), "503 503 503 503");
//
// Thread safety: values and pure functions; a ClientForEachChild belongs to one thread; a Gate is for all of them.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "breaker_page.hpp"
#include "support/backend.hpp"
#include "support/http_client.hpp"
#include "support/httpd.hpp"
#include "support/load.hpp"

namespace cb::test {

/// A policy that trips on failures in a row only, and that a test need not wait for. Nothing is probed early.
inline constexpr const char* quick_policy =
    "CircuitBreaker On\nCircuitBreakerFailureRate Off\nCircuitBreakerConsecutiveFailures 3\n"
    "CircuitBreakerOpenTime 500ms jitter=0 min=10min\nCircuitBreakerProbes 1\n";

/// The same, but once open it stays open for the rest of the test.
inline constexpr const char* long_open = "CircuitBreakerOpenTime 10min jitter=0 min=10min\n";

/// Limits what httpd reads of an answer before its client takes it. The kernel may let that grow to 32 MB otherwise.
inline constexpr const char* small_buffers = "ProxyReceiveBufferSize 131072\n";

/// Nothing trips that a test could do; for tests of what is counted.
inline constexpr const char* counting_policy =
    "CircuitBreaker On\nCircuitBreakerFailureRate 100\nCircuitBreakerMinimumCalls 1000000\n"
    "CircuitBreakerConsecutiveFailures Off\n";

/// `ProxyPass /app http://...` with parameters of that worker ("timeout=1"); `/app/x` is the backend's `/x`.
[[nodiscard]] std::string plain_worker(const Backend& backend, const std::string& parameters = "");

/// A BalancerMember line.
[[nodiscard]] std::string member_line(const Backend& backend, const std::string& parameters = "");

/// `balancer://app` with these lines inside, at /app as well.
[[nodiscard]] std::string balancer_of(const std::string& lines);

/// Options for a server with that policy, the status page at /breakers, and those proxied paths.
[[nodiscard]] HttpdOptions site(Mpm mpm, const std::string& policy, const std::string& proxied);

/// Sequential requests, each on a connection of its own: their statuses, "200 503 503".
[[nodiscard]] std::string statuses(unsigned count, const std::string& url);

/// Who answered them: names of backends, "httpd" where it answered itself.
[[nodiscard]] std::string answerers(unsigned count, const std::string& url);

/// Sends these bytes, and reads to the end of the connection.
[[nodiscard]] std::string answer_to(const Httpd& httpd, const std::string& request, bool finishes_sending = false);

/// Lines of the error log about changes of a breaker's state.
[[nodiscard]] std::vector<std::string> transition_lines(const Httpd& httpd);

/// Of those, the ones that say "from -> to".
[[nodiscard]] std::size_t transitions(const Httpd& httpd, const std::string& from, const std::string& to);

/// The time until the breaker of that backend may be probed has run out, by the status page.
[[nodiscard]] bool wait_for_end_of_open_time(const Httpd& httpd, const std::string& member);
[[nodiscard]] inline bool wait_for_end_of_open_time(const Httpd& httpd, const Backend& backend) {
    return wait_for_end_of_open_time(httpd, backend.member());
}

/// The counter on the status page has reached that value.
[[nodiscard]] bool wait_for_counter(const Httpd& httpd, const std::string& member, const std::string& key,
                                    std::uint64_t value);
[[nodiscard]] inline bool wait_for_counter(const Httpd& httpd, const Backend& backend, const std::string& key,
                                           std::uint64_t value) {
    return wait_for_counter(httpd, backend.member(), key, value);
}

/// No call and no probe is under way, and no lease is taken: every permit has come back.
[[nodiscard]] bool wait_for_no_permits(const Httpd& httpd, const std::string& member);
[[nodiscard]] inline bool wait_for_no_permits(const Httpd& httpd, const Backend& backend) {
    return wait_for_no_permits(httpd, backend.member());
}

/// `/seat`, a worker without a breaker: where a ClientForEachChild finds its children.
[[nodiscard]] std::string seats_at(const Backend& backend);

/// Clients whose kept connections lead to as many different children. The server needs that many (`few_threads_each`),
/// and `seats` at /seat. A connection can be lost on the way (httpd closes it after a 503, and mpm_event when it wants
/// to): the client then comes back to any child.
class ClientForEachChild {
  public:
    ClientForEachChild(const Httpd& httpd, Backend& seats, unsigned count);
    /// The next client in turn makes the request.
    [[nodiscard]] Response get(const std::string& path, const RequestOptions& options = {});

  private:
    [[nodiscard]] bool find_seats(unsigned count);

    const Httpd& httpd_;
    std::vector<std::unique_ptr<Client>> clients_;
    std::set<std::string> children_;
    std::size_t rounds_ = 0;
    std::size_t next_ = 0;
};

/// Different children that have served requests for that path, by the access log.
[[nodiscard]] std::size_t children_that_served(const Httpd& httpd, const std::string& path);

/// More than one has. (A client has its answer before the access log has its line.)
[[nodiscard]] bool wait_for_several_children(const Httpd& httpd, const std::string& path);

/// So many children, and so few threads that concurrent requests spread over them. (Not one: an mpm_event of one thread
/// a child takes connections that then wait behind each other while other children are idle.)
[[nodiscard]] HttpdOptions few_threads_each(HttpdOptions options, unsigned children);

/// One child, so that the next request finds the connection of the last one.
[[nodiscard]] HttpdOptions one_child(HttpdOptions options);

/// Handlers wait in it until it is opened.
class Gate {
  public:
    void pass() {
        ++waiting_;
        open_.wait(false);
    }
    void open() {
        open_ = true;
        open_.notify_all();
    }
    [[nodiscard]] bool wait_for(unsigned waiting) const {
        return wait_until([&] { return waiting_ >= waiting; }, patience, "requests at the gate");
    }
    Gate() = default;
    ~Gate() { open(); }
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;

  private:
    std::atomic<unsigned> waiting_{0};
    std::atomic<bool> open_{false};
};

/// The line that loads a module of tests/httpd/modules.
[[nodiscard]] std::string load_test_module(const std::string& name);

/// Tests of one server on the MPM that is their parameter.
class TrafficTest : public testing::TestWithParam<Mpm> {
  protected:
    [[nodiscard]] static HttpdOptions site(const std::string& policy, const std::string& proxied) {
        return test::site(GetParam(), policy, proxied);
    }
    /// Four children, and room for fifty clients at once.
    [[nodiscard]] static HttpdOptions crowded(const std::string& policy, const std::string& proxied) {
        HttpdOptions options = site(policy, proxied);
        options.children = GetParam() == Mpm::prefork ? 13 : 4;
        options.threads = 16;
        return options;
    }
};

using Mpms = decltype(testing::ValuesIn(std::vector<Mpm>()));
/// For tests of what processes, threads and signals do.
extern const Mpms each_mpm;
/// For tests of anything else: mpm_event, and the others only with MPM=all in the environment.
extern const Mpms any_mpm;
extern const Mpms any_threaded_mpm;
[[nodiscard]] bool is_chosen(Mpm mpm);
/// Of these parameters of tests, those whose MPM is chosen.
template <typename Parameter>
[[nodiscard]] std::vector<Parameter> of_chosen_mpms(std::vector<Parameter> parameters) {
    std::erase_if(parameters, [](const Parameter& each) { return !is_chosen(each.mpm); });
    return parameters;
}
inline std::string mpm_name(const testing::TestParamInfo<Mpm>& info) {
    return name_of(info.param);
}

}  // namespace cb::test
