// Clients that send requests at a steady rate. A client that could not send one in time does not make up for it later,
// or requests would pile up on a slow machine and then be sent all at once.
//
//     SteadyLoad load(httpd.url("/app/x"));                 // three clients, one request every 20 ms each
//     ... load.finish();  EXPECT_EQ(load.lost(), 0U);
//
// Thread safety: belongs to one thread; the numbers may be read at any time.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "support/http_client.hpp"
#include "support/wait.hpp"

namespace cb::test {

class SteadyLoad {
  public:
    explicit SteadyLoad(const std::string& url, unsigned clients = 3, milliseconds period = milliseconds(20)) {
        for (unsigned i = 0; i < clients; ++i)
            threads_.emplace_back([this, url, period, offset = period * i / clients] { run(url, period, offset); });
    }
    ~SteadyLoad() { finish(); }
    SteadyLoad(const SteadyLoad&) = delete;
    SteadyLoad& operator=(const SteadyLoad&) = delete;
    [[nodiscard]] bool wait_for_answers(unsigned count) const {
        return wait_until([&] { return answers_ >= count; }, patience, "answers");
    }
    /// No more requests begin.
    void stop() { stop_ = true; }
    void finish() {
        stop();
        threads_.clear();
    }
    [[nodiscard]] unsigned answers() const { return answers_; }
    [[nodiscard]] unsigned lost() const { return lost_; }
    [[nodiscard]] unsigned served() const { return answers_ - lost_; }
    /// The longest time from when a request was due to when its answer was there. If the server answers at once, that
    /// is how long the machine stood still.
    [[nodiscard]] milliseconds longest() const { return milliseconds(longest_); }

  private:
    void run(const std::string& url, milliseconds period, milliseconds offset) {
        Client client;
        using Clock = std::chrono::steady_clock;
        for (auto next = Clock::now() + offset; !stop_; next = std::max(next + period, Clock::now())) {
            std::this_thread::sleep_until(next);
            const Response response = client.get(url);
            if (response.status != 200 || !response.complete()) ++lost_;
            ++answers_;
            const auto took = Clock::now() - next;
            const auto ms = std::chrono::duration_cast<milliseconds>(took).count();
            for (auto longest = longest_.load(); ms > longest && !longest_.compare_exchange_weak(longest, ms);) {
            }
        }
    }

    std::atomic<bool> stop_{false};
    std::atomic<unsigned> answers_{0};
    std::atomic<unsigned> lost_{0};
    std::atomic<milliseconds::rep> longest_{0};
    std::vector<std::jthread> threads_;
};

}  // namespace cb::test
