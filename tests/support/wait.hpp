// Waiting for a condition instead of sleeping for a guessed time.
//
// Thread safety: no state; the predicate runs on the calling thread only.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

namespace cb::test {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// How long a test waits for something that should happen "now"; only a failing test ever waits that long.
inline constexpr milliseconds patience{10'000};

/// Asks `predicate` until it holds or `timeout` has passed, every 2 ms at first, and up to every 10 ms when that takes
/// long; it is asked at least once, and once more at the end. Returns whether it held; a timeout is reported on stderr
/// with `what`, so that a red test says what was missing.
template <typename Predicate>
[[nodiscard]] bool wait_until(Predicate&& predicate, milliseconds timeout, std::string_view what) {
    const auto begin = std::chrono::steady_clock::now();
    while (!predicate()) {
        const auto waited = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
        if (waited >= timeout) {
            if (predicate()) return true;
            std::fprintf(stderr, "waited %lld ms in vain for %s\n", static_cast<long long>(timeout.count()),
                         std::string(what).c_str());
            return false;
        }
        std::this_thread::sleep_for(std::clamp<milliseconds>(waited / 20, 2ms, 10ms));
    }
    return true;
}

}  // namespace cb::test
