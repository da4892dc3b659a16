// What can be seen of a call while it runs: the request being sent, the first bytes of the response, its headers.
//
// A filter reads what the member sends over HTTP. What goes to the client passes failover/answer_filter, which tells of
// the headers here.
// Thread safety: each request on its own thread.
#ifndef CIRCUITBREAKER_HTTPD_CALL_WATCH_HPP
#define CIRCUITBREAKER_HTTPD_CALL_WATCH_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

void register_watch_filters() noexcept;
/// mod_proxy's optional hooks, in pre_config.
void register_watch_hooks() noexcept;

/// The handler of that worker's scheme is about to run. Where no hook will tell when the request is sent, one without a
/// body counts as sent from now on; one with a body may wait for its client.
void prepare_run(RequestState& state, const proxy_worker& worker) noexcept;

/// The answer begins: notes its status, and what is judged by the headers. It may turn out to have none.
void note_headers(RequestState& state) noexcept;

}  // namespace cb::httpd

#endif
