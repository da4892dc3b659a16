// Where markup goes: into a brigade, and on from there.
//
// Purpose: the same sections on pages of our own and on those of others, where a filter adds them.
// Thread safety: belongs to one request.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_HTML_OUT_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_HTML_OUT_HPP

#include "escape.hpp"

namespace cb::httpd {

struct HtmlOut {
    apr_bucket_brigade* bb;
    ap_filter_t* next;  // takes the brigade when it gets long; nullptr: it is kept
    apr_pool_t* p;      // scratch; may be cleared between two members

    void put(const char* html) const noexcept { (void)apr_brigade_puts(bb, flush(), next, html); }
    /// Text of others.
    void text(const char* text) const noexcept { put(markup(p, text)); }
    template <class... Args>
    void print(const char* format, Args... args) const noexcept {
        (void)apr_brigade_printf(bb, flush(), next, format, args...);
    }

  private:
    [[nodiscard]] apr_brigade_flush flush() const noexcept { return next != nullptr ? ap_filter_flush : nullptr; }
};

}  // namespace cb::httpd

#endif
