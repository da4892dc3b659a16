// The status page's style sheet and script.
//
// Purpose: everything the page needs is on it; it loads nothing.
// Thread safety: constants.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_STYLE_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_STYLE_HPP

namespace cb::httpd {

extern const char kStyle[];
extern const char kScript[];

}  // namespace cb::httpd

#endif
