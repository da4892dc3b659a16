// What the tests about CircuitBreakerSlowCall have in common.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "outcomes.hpp"

namespace cb::test {

inline constexpr milliseconds too_slow{800};

/// For as long as a slow member takes: nothing can be awaited in which nothing is to happen.
inline void dawdle(milliseconds span = too_slow) {
    std::this_thread::sleep_for(span);
}

/// More than all buffers on the way hold (small_buffers), in eight parts that each end with "mark".
inline std::string long_body() {
    std::string body;
    for (int i = 0; i < 8; ++i)
        body += std::string(2'000'000, 'x') + "mark";
    return body;
}

inline std::string get_request(const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: me\r\nConnection: close\r\n\r\n";
}

}  // namespace cb::test
