#include "request_body.hpp"

#include <cstring>
#include <new>

namespace cb::httpd {
namespace {

ap_filter_rec_t* body_filter;

void give_up(KeptBody& body) noexcept {
    body.is_over = true;
    apr_brigade_cleanup(body.bytes);
}

/// Copies the data; what the handler does with its own buckets does not touch ours.
void keep(KeptBody& body, apr_bucket_brigade* bb) noexcept {
    for (apr_bucket* b = APR_BRIGADE_FIRST(bb); b != APR_BRIGADE_SENTINEL(bb); b = APR_BUCKET_NEXT(b)) {
        if (APR_BUCKET_IS_EOS(b)) body.has_end = true;
        if (APR_BUCKET_IS_METADATA(b)) continue;
        const char* data = nullptr;
        apr_size_t length = 0;
        if (apr_bucket_read(b, &data, &length, APR_BLOCK_READ) != APR_SUCCESS ||
            body.size + static_cast<apr_off_t>(length) > body.limit ||
            apr_brigade_write(body.bytes, nullptr, nullptr, data, length) != APR_SUCCESS) {
            give_up(body);
            return;
        }
        body.size += static_cast<apr_off_t>(length);
    }
}

/// A copy of the buckets; their data is shared, and lives as long as one of them.
void copy(apr_bucket_brigade* from, apr_bucket_brigade* to) noexcept {
    for (apr_bucket* b = APR_BRIGADE_FIRST(from); b != APR_BRIGADE_SENTINEL(from); b = APR_BUCKET_NEXT(b)) {
        apr_bucket* twin = nullptr;
        if (apr_bucket_copy(b, &twin) == APR_SUCCESS) APR_BRIGADE_INSERT_TAIL(to, twin);
    }
}

/// Moves at most `bytes` (one line, if `is_line`) from the replay.
apr_status_t read_again(KeptBody& body, apr_bucket_brigade* bb, bool is_line, apr_off_t bytes) noexcept {
    if (is_line) return apr_brigade_split_line(bb, body.replay, APR_BLOCK_READ, bytes);
    apr_bucket* end = nullptr;
    const apr_status_t rv = apr_brigade_partition(body.replay, bytes, &end);
    if (rv != APR_SUCCESS && rv != APR_INCOMPLETE) return rv;
    while (!APR_BRIGADE_EMPTY(body.replay) && APR_BRIGADE_FIRST(body.replay) != end) {
        apr_bucket* const b = APR_BRIGADE_FIRST(body.replay);
        APR_BUCKET_REMOVE(b);
        APR_BRIGADE_INSERT_TAIL(bb, b);
    }
    return APR_SUCCESS;
}

/// -1 if the request doesn't tell.
apr_off_t announced_length(const request_rec* r) noexcept {
    const char* const text = apr_table_get(r->headers_in, "Content-Length");
    apr_off_t length = 0;
    if (text == nullptr || apr_table_get(r->headers_in, "Transfer-Encoding") != nullptr) return -1;
    return ap_parse_strict_length(&length, text) != 0 ? length : -1;
}

extern "C" apr_status_t on_body(ap_filter_t* f, apr_bucket_brigade* bb, ap_input_mode_t mode, apr_read_type_e block,
                                apr_off_t readbytes) noexcept {
    auto& body = *static_cast<KeptBody*>(f->ctx);
    const bool is_reading = mode == AP_MODE_READBYTES || mode == AP_MODE_GETLINE;
    if (is_reading && !APR_BRIGADE_EMPTY(body.replay)) {
        const apr_status_t rv = read_again(body, bb, mode == AP_MODE_GETLINE, readbytes);
        if (rv == APR_SUCCESS && body.has_end && APR_BRIGADE_EMPTY(body.replay)) {
            APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_eos_create(bb->bucket_alloc));
        }
        return rv;
    }
    const apr_status_t rv = ap_get_brigade(f->next, bb, mode, block, readbytes);
    if (rv == APR_SUCCESS && !body.is_over && !body.has_end) {
        if (is_reading) {
            keep(body, bb);
        } else if (mode != AP_MODE_INIT) {
            give_up(body);  // a read that leaves its bytes, or takes them in a way of its own
        }
    }
    return rv;
}

}  // namespace

void register_body_filter() noexcept {
    body_filter = ap_register_input_filter("CIRCUITBREAKER_REQUEST_BODY", on_body, nullptr,
                                           static_cast<ap_filter_type>(AP_FTYPE_RESOURCE - 1));
}

bool has_body(const request_rec* r) noexcept {
    const char* const length = apr_table_get(r->headers_in, "Content-Length");
    return apr_table_get(r->headers_in, "Transfer-Encoding") != nullptr ||
           (length != nullptr && std::strcmp(length, "0") != 0);
}

KeptBody* keep_body(request_rec* r, apr_off_t limit) noexcept {
    if (announced_length(r) > limit) return nullptr;
    auto* const body = new (apr_palloc(r->pool, sizeof(KeptBody))) KeptBody();
    body->bytes = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    body->replay = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    body->limit = limit;
    ap_add_input_filter_handle(body_filter, body, r, r->connection);
    return body;
}

void rewind_body(request_rec* r, KeptBody& body) noexcept {
    apr_brigade_cleanup(body.replay);
    copy(body.bytes, body.replay);
    // mod_proxy_http keeps what it has read and not sent: it comes from us again.
    void* prefetched = nullptr;
    apr_pool_userdata_get(&prefetched, "proxy-req-input", r->pool);
    if (prefetched != nullptr) apr_brigade_cleanup(static_cast<apr_bucket_brigade*>(prefetched));
}

}  // namespace cb::httpd
