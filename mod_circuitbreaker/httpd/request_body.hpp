// A request's body, kept so that it can be sent again.
//
// Purpose: an input filter next to the handler copies what passes, up to a limit. A request whose body is longer, or
// has not been kept from its first byte on, is not sent twice. Thread safety: one request's.
#ifndef CIRCUITBREAKER_HTTPD_REQUEST_BODY_HPP
#define CIRCUITBREAKER_HTTPD_REQUEST_BODY_HPP

#include "httpd_api.hpp"

namespace cb::httpd {

struct KeptBody {
    apr_bucket_brigade* bytes = nullptr;   // from the first on
    apr_bucket_brigade* replay = nullptr;  // what of them is still to be read again
    apr_off_t size = 0;
    apr_off_t limit = 0;
    bool has_end = false;
    bool is_over = false;  // there was more than the limit: nothing is kept
};

void register_body_filter() noexcept;

/// Does the client send a body with this request?
[[nodiscard]] bool has_body(const request_rec* r) noexcept;

/// Begins to keep the body. To be called before anything is read of it. nullptr if it says itself that it is longer: a
/// filter of ours would make mod_proxy_http wait for the whole of it before it asks the member.
[[nodiscard]] KeptBody* keep_body(request_rec* r, apr_off_t limit) noexcept;

/// It will be read from its first byte on once more.
void rewind_body(request_rec* r, KeptBody& body) noexcept;

}  // namespace cb::httpd

#endif
