// What can be seen of a call while it runs: the request being sent, the first bytes of the response, its headers.
//
// Purpose: a filter reads what the member sends over HTTP. What goes to the client passes failover/answer_filter, which
// calls note_headers().
#ifndef CIRCUITBREAKER_HTTPD_CALL_WATCH_HPP
#define CIRCUITBREAKER_HTTPD_CALL_WATCH_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

void register_watch_filters() noexcept;
/// Registers for mod_proxy's optional hooks, in pre_config.
void register_watch_hooks() noexcept;

/// The scheme handler for that worker is about to run. Over a protocol without a hook for it, a request without a body
/// counts as sent from now on; with a body it may still wait for its client.
void prepare_run(RequestState& state, const proxy_worker& worker) noexcept;

/// The answer begins: notes its status, and what the rules need of its headers. It may turn out that there are none.
void note_headers(RequestState& state) noexcept;

/// Notes in a probe's lease what the probe counts as, if nothing more comes of its answer before `at`. A thread that is
/// blocked runs no code of ours; then whoever asks for the slot after the probe's deadline settles it.
void mark_answer(RequestState& state, core::Millis at) noexcept;

}  // namespace cb::httpd

#endif
