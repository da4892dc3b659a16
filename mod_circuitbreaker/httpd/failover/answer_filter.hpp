// The output filter next to the scheme handler: its whole answer passes here.
//
// Purpose: sees where the answer begins, ends or breaks off, has the call judged, and passes the answer on or holds it.
#ifndef CIRCUITBREAKER_HTTPD_FAILOVER_ANSWER_FILTER_HPP
#define CIRCUITBREAKER_HTTPD_FAILOVER_ANSWER_FILTER_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

void register_answer_filter() noexcept;

/// Adds the filter for the scheme handler that is about to run.
[[nodiscard]] ap_filter_t* add_answer_filter(RequestState& state) noexcept;

}  // namespace cb::httpd

#endif
