// What mod_proxy says of a call in the error log.
//
// Purpose: over FCGI, SCGI and AJP a call fails with 503 or 500 whatever happened, on sockets that no hook or filter
// sees. And no handler tells why there is no connection. Only the error log does, by a message with a number of its
// own. Below LogLevel error nothing is heard. DESIGN.md has the full table, by handler.
#ifndef CIRCUITBREAKER_HTTPD_CALL_HEARD_HPP
#define CIRCUITBREAKER_HTTPD_CALL_HEARD_HPP

#include "httpd/request/request.hpp"

namespace cb::httpd {

/// Notes in `call` what this log record says. `text`: the message as it is logged.
void hear(Call& call, const ap_errorlog_info& said, const char* text) noexcept;

/// Are errors logged for this server? Only then does a message that was not heard prove that nothing happened.
[[nodiscard]] bool hears_errors(const request_rec* r) noexcept;

}  // namespace cb::httpd

#endif
