// `SetHandler circuitbreaker-metrics`: the breakers for Prometheus.
//
// Purpose: every metric of the module, what it means and where its value comes from.
// Thread safety: reads shared atomics one by one; a page is no snapshot.
// Invariants: the number of series depends on the number of members only; two members never have the same labels.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_METRICS_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_METRICS_HPP

#include "httpd/httpd_api.hpp"

namespace cb::httpd {

extern "C" int cb_on_metrics(request_rec* r) noexcept;

}  // namespace cb::httpd

#endif
