// The filter through which everything passes that the scheme handler answers.
//
// It sees where the answer begins, ends or breaks off, has the call judged, and lets the answer go or holds it.
// Thread safety: each request on its own thread.
#ifndef CIRCUITBREAKER_HTTPD_FAILOVER_ANSWER_FILTER_HPP
#define CIRCUITBREAKER_HTTPD_FAILOVER_ANSWER_FILTER_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

void register_answer_filter() noexcept;

/// Puts it next to the scheme handler that is about to run.
[[nodiscard]] ap_filter_t* add_answer_filter(RequestState& state) noexcept;

}  // namespace cb::httpd

#endif
