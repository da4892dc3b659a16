// The connection to the member that the running call uses.
//
// Purpose: what happens on it, told to the call: that it is new, how its TLS handshake ended, how far writing the
// request has come, and what mod_proxy says of it in the error log. Thread safety: a call runs on one thread, and
// everything here looks at that thread's own call.
#ifndef CIRCUITBREAKER_HTTPD_CALL_BACKEND_CONNECTION_HPP
#define CIRCUITBREAKER_HTTPD_CALL_BACKEND_CONNECTION_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

void register_backend_filter() noexcept;

/// While it lives, connections are made for this call on this thread. (An ErrorDocument may be a call within a call.)
class RunningCall {
  public:
    explicit RunningCall(Call& call) noexcept;
    ~RunningCall();
    RunningCall(const RunningCall&) = delete;
    RunningCall& operator=(const RunningCall&) = delete;

  private:
    Call* const outer_;
};

/// The request has been written, and the member answers: nothing of the new connection is looked at any more. The
/// handler may give it back to the pool long before it returns, to a client that reads slowly, and other threads use it
/// then.
void leave_connection(Call& call) noexcept;

/// A kept connection serves one more request, until the pool of that response is gone.
void note_use(const request_rec& response) noexcept;

/// A kept connection has ended before the member said a word to the request, which was written at `sent_at` (0: it
/// could not be). Was that a race? The member closes an idle connection while a request is on its way to it: so the end
/// comes at once, and the connection has been idle for a while. One over which a worker died is none.
void note_end_of_kept(Call& call, conn_rec& c, core::Millis sent_at) noexcept;

/// A new connection: also one to a backend.
extern "C" int cb_on_pre_connection(conn_rec* c, void* socket) noexcept;

/// Listens to what the handler of the call that this thread is making says of it.
extern "C" void cb_on_error_log(const ap_errorlog_info* said, const char* text) noexcept;

}  // namespace cb::httpd

#endif
