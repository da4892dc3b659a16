// How a test opens a breaker: by failing answers of the backend itself, exactly as many as its policy needs.
//
// Thread safety: belongs to the main thread.
#pragma once

#include <string>

#include "traffic.hpp"

namespace cb::test {

/// The requests to it: quick_policy needs three failures.
struct Trip {
    unsigned failures = 3;
    std::string path = "/app/trip";
    RequestOptions request{};
};

/// Opens its breaker. Then the backend is well again and has forgotten these requests.
void trip(const Httpd& httpd, Backend& backend, const Trip& how = {});

/// The same, and waits until it may be probed.
void make_due(const Httpd& httpd, Backend& backend, const Trip& how = {});

}  // namespace cb::test
