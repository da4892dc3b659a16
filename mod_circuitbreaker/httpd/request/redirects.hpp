// Requests that httpd makes of another one (ErrorDocument, internal redirects, subrequests), and the log, which has one
// line for all of them.
//
// Purpose: the variables of one of these requests reach the others and the log, but no application (see `environment`).
// Thread safety: the requests of a chain run one after the other.
#ifndef CIRCUITBREAKER_HTTPD_REQUEST_REDIRECTS_HPP
#define CIRCUITBREAKER_HTTPD_REQUEST_REDIRECTS_HPP

#include "httpd/httpd_api.hpp"

namespace cb::httpd {

extern "C" {
/// A request that is made of another one inherits the variables of that one, for its expressions.
int cb_on_create_request(request_rec* r) noexcept;
/// Runs before all other handlers. Hides the inherited variables until the answer begins. Takes the Retry-After of a
/// refusal away from an answer that is not a 503.
int cb_on_handler(request_rec* r) noexcept;
/// The same Retry-After, on an error page of httpd's own: its status is final here.
void cb_on_insert_error_filter(request_rec* r) noexcept;
/// Runs before the first logger: each request of the chain gets what it lacks from the nearest other one.
int cb_on_log_transaction(request_rec* r) noexcept;
}

void register_redirect_filter() noexcept;

}  // namespace cb::httpd

#endif
