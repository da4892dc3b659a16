// How points of time and methods are shown, on pages and in events.
#ifndef CIRCUITBREAKER_HTTPD_SHOWN_HPP
#define CIRCUITBREAKER_HTTPD_SHOWN_HPP

#include "httpd_api.hpp"

namespace cb::httpd {

/// RFC 3339, UTC, with milliseconds: `2026-01-31T12:00:00.000Z`.
struct UtcText {
    char text[64];
    explicit UtcText(apr_time_t at) noexcept;
};

/// `method`: httpd's number of it (M_GET is HEAD's too). "other" for one that a module or a directive has registered,
/// and for one that httpd does not know.
[[nodiscard]] const char* method_name(int method) noexcept;

}  // namespace cb::httpd

#endif
