// A member's own Retry-After (RFC 9110 10.2.3).
//
// Purpose: `CircuitBreakerOpenTime ... retry-after=On`: a member that asks for time gets it.
#ifndef CIRCUITBREAKER_HTTPD_CALL_RETRY_AFTER_HPP
#define CIRCUITBREAKER_HTTPD_CALL_RETRY_AFTER_HPP

#include "core/policy.hpp"
#include "httpd/httpd_api.hpp"

namespace cb::httpd {

/// The time that the response asks for, ms, at most a day. 0 if it asks for none or can't be parsed.
[[nodiscard]] core::Millis retry_after_of(const request_rec* r) noexcept;

}  // namespace cb::httpd

#endif
