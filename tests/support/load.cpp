#include "load.hpp"

#include <algorithm>
#include <latch>
#include <limits>
#include <numeric>
#include <vector>

namespace cb::test {
namespace {

unsigned value_of(const auto& map, const auto& key) {
    const auto found = map.find(key);
    return found != map.end() ? found->second : 0;
}

void add(LoadResult& result, const Response& response) {
    ++result.by_status[response.status];
    if (response.status != 0) ++result.by_backend[response.backend()];
    if (!response.complete()) ++result.errors[response.error];
    result.slowest = std::max(result.slowest, response.total_time);
}

void add(LoadResult& result, const LoadResult& part) {
    for (const auto& [status, count] : part.by_status)
        result.by_status[status] += count;
    for (const auto& [backend, count] : part.by_backend)
        result.by_backend[backend] += count;
    for (const auto& [error, count] : part.errors)
        result.errors[error] += count;
    result.slowest = std::max(result.slowest, part.slowest);
}

LoadResult run_load(const std::string& url, const LoadOptions& options, unsigned requests_per_thread,
                    const std::atomic<bool>& stop, std::atomic<unsigned>& answers) {
    std::vector<LoadResult> results(options.threads);
    std::latch start(static_cast<std::ptrdiff_t>(options.threads));
    std::vector<std::jthread> threads;
    for (LoadResult& result : results) {
        threads.emplace_back([&] {
            RequestOptions request = options.request;
            request.fresh_connection = !options.keep_connections;
            Client client;
            start.arrive_and_wait();
            const auto end = std::chrono::steady_clock::now() + options.time_limit;
            for (unsigned i = 0; i < requests_per_thread && !stop && std::chrono::steady_clock::now() < end; ++i) {
                add(result, client.get(url, request));
                ++answers;
            }
        });
    }
    threads.clear();
    LoadResult all;
    for (const LoadResult& result : results)
        add(all, result);
    return all;
}

}  // namespace

unsigned LoadResult::total() const {
    return std::accumulate(by_status.begin(), by_status.end(), 0U,
                           [](unsigned sum, const auto& entry) { return sum + entry.second; });
}

unsigned LoadResult::with_status(int status) const {
    return value_of(by_status, status);
}

unsigned LoadResult::from(const std::string& backend) const {
    return value_of(by_backend, backend);
}

std::string LoadResult::describe() const {
    std::string text;
    for (const auto& [status, count] : by_status)
        text += std::to_string(count) + "x " + std::to_string(status) + ", ";
    for (const auto& [error, count] : errors)
        text += "error x" + std::to_string(count) + ": " + error + ", ";
    return text + "slowest " + std::to_string(slowest.count()) + " ms";
}

LoadResult load(const std::string& url, const LoadOptions& options) {
    const std::atomic<bool> never{false};
    std::atomic<unsigned> answers{0};
    return run_load(url, options, options.requests_per_thread, never, answers);
}

BackgroundLoad::BackgroundLoad(const std::string& url, const LoadOptions& options)
    : thread_([this, url, options] {
          result_ = run_load(url, options, std::numeric_limits<unsigned>::max(), stop_, answers_);
      }) {}

bool BackgroundLoad::wait_for_answers(unsigned more, milliseconds timeout) const {
    const unsigned before = answers_;
    return wait_until([&] { return answers_ - before >= more; }, timeout, std::to_string(more) + " more answers");
}

LoadResult BackgroundLoad::finish() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return result_;
}

}  // namespace cb::test
