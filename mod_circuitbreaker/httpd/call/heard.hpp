// What mod_proxy says of a call in the error log.
//
// Purpose: FCGI, SCGI and AJP answer 503 or 500 to whatever happens, on sockets that no hook or filter sees, and no
// handler tells why a connection did not come about: only the log does, each time in words and with a number of its
// own. Below LogLevel error nothing is said. The full table, by handler, is in DESIGN.md. Thread safety: pure
// functions, and one call of one thread.
#ifndef CIRCUITBREAKER_HTTPD_CALL_HEARD_HPP
#define CIRCUITBREAKER_HTTPD_CALL_HEARD_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// Notes in `call` what this record says. `text`: the message, as it is logged.
void hear(Call& call, const ap_errorlog_info& said, const char* text) noexcept;

/// Are errors logged for this server, so that what has not been heard of has not happened?
[[nodiscard]] bool hears_errors(const request_rec* r) noexcept;

}  // namespace cb::httpd

#endif
