// The path that CircuitBreakerRecordPath keeps of a failing call.
//
// Purpose: the path as the client wrote it (`r->uri` is decoded). Query, fragment, and the authority of an absolute URI
// are left out, as they may hold secrets.
#ifndef CIRCUITBREAKER_HTTPD_CALL_RECORDED_PATH_HPP
#define CIRCUITBREAKER_HTTPD_CALL_RECORDED_PATH_HPP

#include "httpd/httpd_api.hpp"

namespace cb::httpd {

[[nodiscard]] inline const char* recorded_path(const request_rec* r) noexcept {
    const char* path = r->unparsed_uri != nullptr ? r->unparsed_uri : "";
    if (*path != '/') {
        const char* const authority = ap_strstr_c(path, "://");
        if (authority != nullptr) path = authority + 3 + strcspn(authority + 3, "/?#");
    }
    return apr_pstrmemdup(r->pool, path, strcspn(path, "?#"));
}

}  // namespace cb::httpd

#endif
