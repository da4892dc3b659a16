// Many clients at once, bounded in number and time.
//
// Thread safety: `load` may be called from any thread; a BackgroundLoad belongs to one thread at a time.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <thread>

#include "http_client.hpp"

namespace cb::test {

struct LoadOptions {
    unsigned threads = 8;
    unsigned requests_per_thread = 100;
    milliseconds time_limit{30'000};  // no request starts after it
    bool keep_connections = true;     // each thread on one connection; else a new one for each request
    RequestOptions request{};
};

struct LoadResult {
    std::map<int, unsigned> by_status{};           // 0: no answer
    std::map<std::string, unsigned> by_backend{};  // by X-Backend; "" are the answers of httpd itself
    std::map<std::string, unsigned> errors{};      // what curl said of answers that didn't come, or not whole
    milliseconds slowest{0};

    [[nodiscard]] unsigned total() const;
    [[nodiscard]] unsigned with_status(int status) const;
    [[nodiscard]] unsigned from(const std::string& backend) const;
    /// Every single answer had that status and came whole.
    [[nodiscard]] bool all(int status) const { return total() > 0 && with_status(status) == total() && errors.empty(); }
    /// "1200x 200, 3x 503; error x1: ...", for the message of a failed expectation.
    [[nodiscard]] std::string describe() const;
};

/// All threads start at the same instant; returns when the last has done its requests.
[[nodiscard]] LoadResult load(const std::string& url, const LoadOptions& options = {});

/// Load that goes on while the test does something else; `finish` (or the destructor) ends it.
class BackgroundLoad {
  public:
    /// `requests_per_thread` doesn't count here; `time_limit` does.
    BackgroundLoad(const std::string& url, const LoadOptions& options);
    ~BackgroundLoad() { (void)finish(); }
    BackgroundLoad(const BackgroundLoad&) = delete;
    BackgroundLoad& operator=(const BackgroundLoad&) = delete;

    /// Answers so far.
    [[nodiscard]] unsigned answers() const { return answers_; }
    [[nodiscard]] bool wait_for_answers(unsigned more, milliseconds timeout = patience) const;
    /// Lets the requests under way end, and says how all went.
    LoadResult finish();

  private:
    std::atomic<bool> stop_{false};
    std::atomic<unsigned> answers_{0};
    LoadResult result_;
    std::thread thread_;
};

}  // namespace cb::test
