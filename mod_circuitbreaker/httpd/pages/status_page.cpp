#include "status_page.hpp"

#include "text.hpp"

namespace cb::httpd {

extern "C" int cb_on_status(request_rec* r) noexcept {
    if (r->handler == nullptr || strcmp(r->handler, "circuitbreaker-status") != 0) return DECLINED;
    r->allowed = AP_METHOD_BIT << M_GET;
    if (r->method_number != M_GET) return HTTP_METHOD_NOT_ALLOWED;
    apr_table_setn(r->headers_out, "Cache-Control", "no-store");
    write_text(r, list_members(r->pool));
    return OK;
}

}  // namespace cb::httpd
