// The status page's counters of outcomes and verdicts, and what one more call has added to them.
//
// Thread safety: values.
#pragma once

#include <map>

#include "traffic.hpp"

namespace cb::test {

/// Connections to members, which are kept, have been idle for so long that a member that closes one meanwhile is not
/// charged with it. (It takes 100 ms.)
inline void let_connections_idle() {
    const auto since = std::chrono::steady_clock::now();
    EXPECT_TRUE(wait_until([&] { return std::chrono::steady_clock::now() - since > 150ms; }, patience, "idle ones"));
}

/// If a request took less than 80 ms in all, its member ended the connection at once, and a kept one is `stale`. If it
/// took longer because the machine stood still, that may as well be a `reset`.
class Stopwatch {
  public:
    [[nodiscard]] bool was_at_once() const { return std::chrono::steady_clock::now() - begin_ < 80ms; }

  private:
    const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

class OutcomeCounters {
  public:
    OutcomeCounters(const Httpd& httpd, const Backend& backend) : OutcomeCounters(httpd, backend.member()) {}
    OutcomeCounters(const Httpd& httpd, const std::string& member) {
        const BreakerBlock block = BreakerPage(httpd).member(member);
        for (const char* outcome : {"connect", "timeout", "reset", "stale", "truncated", "protocol", "local", "client",
                                    "upload", "1xx", "2xx", "3xx", "4xx", "5xx", "6xx", "7xx", "8xx", "9xx"}) {
            count(block, std::string("Outcome-") + outcome);
        }
        for (const char* verdict : {"success", "failure", "fatal", "tolerate", "ignore"}) {
            count(block, std::string("Verdict-") + verdict);
        }
        calls_ = block.number("Calls");
    }

    /// When one more call than `before` has been judged.
    [[nodiscard]] static OutcomeCounters of_next_call(const Httpd& httpd, const Backend& backend,
                                                      const OutcomeCounters& before) {
        return of_next_call(httpd, backend.member(), before);
    }
    [[nodiscard]] static OutcomeCounters of_next_call(const Httpd& httpd, const std::string& member,
                                                      const OutcomeCounters& before) {
        OutcomeCounters now(httpd, member);
        const auto is_there = [&] {
            now = OutcomeCounters(httpd, member);
            // The verdict and the outcome are counted after the call, so the page may show a call without them.
            const std::uint64_t calls = now.calls_ - before.calls_;
            return calls > 0 && now.sum("Verdict-") - before.sum("Verdict-") >= calls &&
                   now.sum("Outcome-") - before.sum("Outcome-") >= calls;
        };
        EXPECT_TRUE(wait_until(is_there, patience, "one more call of " + member));
        return now;
    }

    /// What has come on top: "Outcome-reset Verdict-failure", with "x2" and the like where it is more than one.
    [[nodiscard]] std::string operator-(const OutcomeCounters& before) const {
        std::string text;
        for (const auto& [key, value] : values_) {
            const std::uint64_t more = value - before.values_.at(key);
            if (more > 0) text += (text.empty() ? "" : " ") + key + (more > 1 ? "x" + std::to_string(more) : "");
        }
        return text;
    }

  private:
    [[nodiscard]] std::uint64_t sum(const std::string& kind) const {
        std::uint64_t all = 0;
        for (const auto& [key, value] : values_) {
            if (key.starts_with(kind)) all += value;
        }
        return all;
    }
    void count(const BreakerBlock& block, const std::string& key) { values_[key] = block.number(key); }

    std::map<std::string, std::uint64_t> values_;
    std::uint64_t calls_ = 0;
};

}  // namespace cb::test
