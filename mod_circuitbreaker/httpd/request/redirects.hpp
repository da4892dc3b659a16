// Requests that httpd makes of others: an ErrorDocument's own, internal redirects, subrequests; and the log, which has
// one line for all of them.
//
// Purpose: what the breakers say of one of them is known to all, but to no application (see `environment`).
// Thread safety: the requests of one chain, one after the other.
#ifndef CIRCUITBREAKER_HTTPD_REQUEST_REDIRECTS_HPP
#define CIRCUITBREAKER_HTTPD_REQUEST_REDIRECTS_HPP

#include "httpd/httpd_api.hpp"

namespace cb::httpd {

extern "C" {
/// A request that is made of another one: gets all that the other one's environment has for expressions.
int cb_on_create_request(request_rec* r) noexcept;
/// First of all handlers: none of them is to see what was inherited before its answer begins. Nor does that answer
/// have the Retry-After of a refusal, if it is no 503.
int cb_on_handler(request_rec* r) noexcept;
/// An error page of httpd's own, whose status is final.
void cb_on_insert_error_filter(request_rec* r) noexcept;
/// Before the first log: each request of the chain has the values that are right for the one that the client made.
int cb_on_log_transaction(request_rec* r) noexcept;
}

void register_redirect_filter() noexcept;

}  // namespace cb::httpd

#endif
