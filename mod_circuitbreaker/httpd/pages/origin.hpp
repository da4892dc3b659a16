// Does a request come from a page of this very host?
//
// Purpose: half of the protection of the actions (the other half is the token): a browser says in `Origin`, or else in
// `Referer`, which page made it send a form.
// Thread safety: pure.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_ORIGIN_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_ORIGIN_HPP

namespace cb::httpd {

/// `origin` and `referer` as they stand in the request, or nullptr; the first there is must name `host` (the Host
/// field), with the same port. Neither: false.
[[nodiscard]] bool is_same_host(const char* host, const char* origin, const char* referer) noexcept;

/// Path and query of an absolute URL, from its "/" on; nullptr if it has none, or one that would lead elsewhere.
[[nodiscard]] const char* path_of_url(const char* url) noexcept;

}  // namespace cb::httpd

#endif
