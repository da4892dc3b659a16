// Text of others (names, routes, paths) made safe for markup and for JSON.
//
// Purpose: the only way in which such text gets onto a page. Whatever comes in, what comes out is well-formed: bytes
// that are no UTF-8, and characters that XML forbids, become U+FFFD.
// Thread safety: pure, but for the pool.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_ESCAPE_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_ESCAPE_HPP

#include "httpd/httpd_api.hpp"

namespace cb::httpd {

/// For HTML and XML, in text and between quotes of either kind. ASCII only, so that the page's charset is of no matter
/// (balancer-manager and mod_status say ISO-8859-1).
[[nodiscard]] const char* markup(apr_pool_t* p, const char* text) noexcept;

/// Between the quotes of a JSON string. ASCII only.
[[nodiscard]] const char* json_text(apr_pool_t* p, const char* text) noexcept;

}  // namespace cb::httpd

#endif
