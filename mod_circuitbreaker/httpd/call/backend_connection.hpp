// The connection to the member that the running call uses.
//
// Purpose: notes in the call what happens on its connection: whether it is new, how its TLS handshake ended, how far
// writing the request has come, and what mod_proxy says of it in the error log.
// Thread safety: a call runs on one thread, and everything here looks at that thread's own call.
#ifndef CIRCUITBREAKER_HTTPD_CALL_BACKEND_CONNECTION_HPP
#define CIRCUITBREAKER_HTTPD_CALL_BACKEND_CONNECTION_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

void register_backend_filter() noexcept;

/// While it lives, connections that this thread makes are for this call. (An ErrorDocument may be a call within a
/// call.)
class RunningCall {
  public:
    explicit RunningCall(Call& call) noexcept;
    ~RunningCall();
    RunningCall(const RunningCall&) = delete;
    RunningCall& operator=(const RunningCall&) = delete;

  private:
    Call* const outer_;
};

/// From now on the call does not look at its new connection any more: the request was written, and the member answers.
/// If the client reads slowly, the handler gives the connection back to the pool long before it returns, and other
/// threads use it.
void leave_connection(Call& call) noexcept;

/// A connection serves a request. It counts as in use until the pool of that response is destroyed.
void note_use(const request_rec& response) noexcept;

/// A kept connection has ended before any answer to the request that was written at `sent_at` (0: writing failed).
/// Notes whether that was a race: the member closed an idle connection while the request was on its way. That is so if
/// the connection had been idle for a while and its end came at once. Otherwise the member may have died over the
/// request.
void note_end_of_kept(Call& call, conn_rec& c, core::Millis sent_at) noexcept;

/// Called for every new connection, also for those to members.
extern "C" int cb_on_pre_connection(conn_rec* c, void* socket) noexcept;

/// Reads what the scheme handler logs about the call that this thread is making.
extern "C" void cb_on_error_log(const ap_errorlog_info* said, const char* text) noexcept;

}  // namespace cb::httpd

#endif
