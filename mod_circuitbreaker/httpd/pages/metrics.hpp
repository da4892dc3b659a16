// `SetHandler circuitbreaker-metrics`: the breakers for Prometheus.
//
// Purpose: the figures (figures.hpp) of all members, and what the event log has lost.
// Thread safety: each request on its own thread. A member is read once for all its metrics.
// Invariants: the number of series depends on the number of members only; two members never have the same labels.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_METRICS_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_METRICS_HPP

#include "httpd/httpd_api.hpp"

namespace cb::httpd {

extern "C" int cb_on_metrics(request_rec* r) noexcept;

}  // namespace cb::httpd

#endif
