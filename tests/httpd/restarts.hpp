// Restarts, seen to their end.
//
// Thread safety: as Httpd.
#pragma once

#include <string>
#include <vector>

#include "support/httpd.hpp"

namespace cb::test {

/// A graceful restart after which no child of before is left to answer with the old configuration.
[[nodiscard]] inline bool graceful_to_the_end(Httpd& httpd) {
    const std::vector<pid_t> old = httpd.children();
    return httpd.graceful() && httpd.wait_for_end_of(old);
}

[[nodiscard]] inline bool graceful_to_the_end(Httpd& httpd, const std::string& config) {
    httpd.set_config(config);
    return graceful_to_the_end(httpd);
}

}  // namespace cb::test
