// What the tests about evidence have in common: servers that stop reading a request when they like, clients that send
// what they like, and what the member was charged with.
//
// Thread safety: belongs to the main thread.
#pragma once

#include "outcomes.hpp"
#include "support/ajp.hpp"
#include "support/fcgi.hpp"
#include "support/h2c.hpp"
#include "support/scgi.hpp"
#include "support/uwsgi.hpp"

namespace cb::test {

/// One failure opens a breaker, and it stays open.
inline const std::string touchy = std::string(quick_policy) + "CircuitBreakerConsecutiveFailures 1\n" + long_open;

/// A server where that holds, with these modules too.
[[nodiscard]] inline HttpdOptions touchy_site(const std::string& proxied, const std::string& policy = "",
                                              std::vector<std::string> modules = {}) {
    HttpdOptions options = site(Mpm::event, touchy + policy, proxied);
    options.add_modules = std::move(modules);
    return options;
}

[[nodiscard]] inline std::string status_of(const std::string& answer) {
    return answer.size() > 12 ? answer.substr(9, 3) : "none";
}

/// A server that reads the head of a request and then does what the test wants.
class HeadServer {
  public:
    using Act = std::function<void(Connection&, const std::string& head)>;
    explicit HeadServer(Act act)
        : act_(std::move(act)), server_([this](Connection& connection) { serve(connection); }) {}

    [[nodiscard]] std::string member(const std::string& scheme = "http") const {
        return scheme + "://127.0.0.1:" + std::to_string(server_.port());
    }
    [[nodiscard]] std::string worker(const std::string& parameters = "") const {
        return "ProxyPass /app " + member() + " " + parameters + "\n";
    }
    [[nodiscard]] unsigned heads() const { return heads_; }

  private:
    void serve(Connection& connection) {
        std::string bytes;
        char piece[1024];
        for (;;) {
            const std::size_t count = connection.receive(piece, sizeof piece);
            if (count == 0) return;
            bytes.append(piece, count);
            const std::size_t end = bytes.find("\r\n\r\n");
            if (end == std::string::npos) continue;
            ++heads_;
            act_(connection, bytes.substr(0, end + 4));
            return;
        }
    }

    const Act act_;
    std::atomic<unsigned> heads_{0};
    ConnectionServer server_;  // last: its threads use all of the above
};

/// Reads and throws away so many bytes, or up to the end.
inline void swallow(Connection& connection, std::size_t count = ~std::size_t{0}) {
    char piece[8192];
    while (count > 0) {
        const std::size_t got = connection.receive(piece, std::min(count, sizeof piece));
        if (got == 0) return;
        count -= got;
    }
}

[[nodiscard]] inline std::string upload(const std::string& path, std::size_t length, const std::string& fields = "") {
    return "POST " + path + " HTTP/1.1\r\nHost: me\r\nContent-Length: " + std::to_string(length) + "\r\n" + fields +
           "\r\n";
}

[[nodiscard]] inline std::string chunked(const std::string& path, const std::string& body,
                                         const std::string& method = "PUT") {
    return method + " " + path + " HTTP/1.1\r\nHost: me\r\nTransfer-Encoding: chunked\r\n\r\n" + body;
}

/// "closed Calls=5 Outcome-client=5": the state, and every counter of calls that is not zero.
[[nodiscard]] inline std::string charged(const Httpd& httpd, const std::string& member) {
    const BreakerBlock block = BreakerPage(httpd).member(member);
    return block.at("State") + " Calls=" + block.at("Calls") +
           non_zero(block, {"Slow", "Outcome-connect", "Outcome-timeout", "Outcome-reset", "Outcome-stale",
                            "Outcome-truncated", "Outcome-protocol", "Outcome-local", "Outcome-client",
                            "Outcome-upload", "Outcome-2xx", "Outcome-4xx", "Outcome-5xx", "Verdict-failure"});
}

[[nodiscard]] inline bool wait_for_charge(const Httpd& httpd, const std::string& member, const std::string& expected) {
    return wait_for_text([&] { return charged(httpd, member); }, expected);
}

}  // namespace cb::test
