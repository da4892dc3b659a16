#include "response_head.hpp"

#include <cstring>

namespace cb::httpd {
namespace {

/// 0 if these bytes begin no status line.
int status_in(const char* line, apr_size_t length) noexcept {
    constexpr apr_size_t kLength = sizeof "HTTP/1.1 200" - 1;
    if (length < kLength || memcmp(line, "HTTP/1.", 7) != 0 || apr_isdigit(line[7]) == 0 || line[8] != ' ') return 0;
    int status = 0;
    for (const char* digit = line + 9; digit < line + kLength; ++digit)
        status = apr_isdigit(*digit) != 0 ? status * 10 + (*digit - '0') : 0;
    return status;
}

}  // namespace

int note_bytes(Call& call, apr_bucket_brigade* bb, core::Millis now) noexcept {
    char line[12];
    apr_size_t length = sizeof line;
    if (apr_brigade_flatten(bb, line, &length) != APR_SUCCESS) length = 0;
    const int status = status_in(line, length);
    if (call.seen.interim != Interim::none && status == 0) {
        const bool is_blank = length > 0 && (line[0] == '\n' || line[0] == '\r');
        if (is_blank && call.seen.interim == Interim::fields_of_continue) call.seen.interim = Interim::continued;
        return 0;
    }
    call.seen.reached = Reached::bytes;
    call.seen.first_byte_at = now;
    call.seen.line_status = status;
    const bool is_interim = status >= 100 && status < 200 && status != HTTP_SWITCHING_PROTOCOLS;
    call.seen.interim = is_interim ? Interim::fields : Interim::none;
    call.seen.has_interim = call.seen.has_interim || (is_interim && status != HTTP_CONTINUE);
    if (status == HTTP_CONTINUE) {
        // After a `100 Continue` the body is sent, and the call is where it was before. Only the connection is known to
        // be alive now.
        call.seen.interim = Interim::fields_of_continue;
        call.seen.reached = Reached::nothing;
        call.seen.is_kept_alive = false;
        call.seen.is_new_connection = true;
    }
    return status;
}

int count_fields(const request_rec* r) noexcept {
    return apr_table_elts(r->headers_out)->nelts + apr_table_elts(r->err_headers_out)->nelts;
}

bool has_set_fields(const RequestState& state) noexcept {
    const Call& call = state.call;
    const request_rec* const r = state.r;
    if (r->status != HTTP_OK || r->status_line != call.seen.line_before || count_fields(r) != call.seen.fields_before)
        return true;
    // By a file's name, and a member that says the same leaves it as it is: that can't be told apart.
    return r->content_type != call.seen.type_before || call.seen.type_before != nullptr;
}

bool is_without_head(const RequestState& state, const apr_bucket_brigade* bb) noexcept {
    if (std::strcmp(state.call.target.worker->s->scheme, "fcgi") != 0) return false;
    bool has_data = false;
    bool has_end = false;
    for (const apr_bucket* b = APR_BRIGADE_FIRST(bb); b != APR_BRIGADE_SENTINEL(bb); b = APR_BUCKET_NEXT(b)) {
        has_end = has_end || APR_BUCKET_IS_EOS(b);
        has_data = has_data || !APR_BUCKET_IS_METADATA(b);
    }
    return has_end && (has_data || !has_set_fields(state));
}

bool may_tunnel(const Call& call, const request_rec* r) noexcept {
    const proxy_worker_shared& worker = *call.target.worker->s;
    return (worker.scheme[0] == 'w' || *worker.upgrade != '\0') && apr_table_get(r->headers_in, "Upgrade") != nullptr;
}

}  // namespace cb::httpd
