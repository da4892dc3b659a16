#include "request_body.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "httpd/runtime.hpp"

namespace cb::httpd {
namespace {

ap_filter_rec_t* body_filter;

void stop_keeping(RequestBody& body) noexcept {
    body.keeps = false;
    apr_brigade_cleanup(body.kept);
}

/// Copies the data; what the handler does with its own buckets does not touch ours.
void keep(RequestBody& body, apr_bucket_brigade* bb) noexcept {
    for (apr_bucket* b = APR_BRIGADE_FIRST(bb); b != APR_BRIGADE_SENTINEL(bb); b = APR_BUCKET_NEXT(b)) {
        if (APR_BUCKET_IS_METADATA(b)) continue;
        const char* data = nullptr;
        apr_size_t length = 0;
        if (apr_bucket_read(b, &data, &length, APR_BLOCK_READ) != APR_SUCCESS ||
            apr_brigade_write(body.kept, nullptr, nullptr, data, length) != APR_SUCCESS) {
            stop_keeping(body);
            return;
        }
    }
}

/// A copy of the buckets; their data is shared, and lives as long as one of them.
void copy(apr_bucket_brigade* from, apr_bucket_brigade* to) noexcept {
    for (apr_bucket* b = APR_BRIGADE_FIRST(from); b != APR_BRIGADE_SENTINEL(from); b = APR_BUCKET_NEXT(b)) {
        apr_bucket* twin = nullptr;
        if (apr_bucket_copy(b, &twin) == APR_SUCCESS) APR_BRIGADE_INSERT_TAIL(to, twin);
    }
}

void give_end(RequestBody& body, apr_bucket_brigade* bb) noexcept {
    body.is_end_ahead = false;
    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_eos_create(bb->bucket_alloc));
}

/// Moves at most `bytes` (one line, if `is_line`) of what was read ahead.
apr_status_t take_ahead(RequestBody& body, apr_bucket_brigade* bb, bool is_line, apr_off_t bytes) noexcept {
    if (is_line) return apr_brigade_split_line(bb, body.ahead, APR_BLOCK_READ, bytes);
    apr_bucket* end = nullptr;
    const apr_status_t rv = apr_brigade_partition(body.ahead, bytes, &end);
    if (rv != APR_SUCCESS && rv != APR_INCOMPLETE) return rv;
    while (!APR_BRIGADE_EMPTY(body.ahead) && APR_BRIGADE_FIRST(body.ahead) != end) {
        apr_bucket* const b = APR_BRIGADE_FIRST(body.ahead);
        APR_BUCKET_REMOVE(b);
        APR_BRIGADE_INSERT_TAIL(bb, b);
    }
    return APR_SUCCESS;
}

/// Notes what has come of the body.
void note(RequestBody& body, apr_bucket_brigade* bb) noexcept {
    const apr_off_t before = body.size;
    for (apr_bucket* b = APR_BRIGADE_FIRST(bb); b != APR_BRIGADE_SENTINEL(bb); b = APR_BUCKET_NEXT(b)) {
        if (APR_BUCKET_IS_EOS(b) && !body.has_end) {
            body.has_end = true;
            body.ended_at = now();
        }
        if (b->length != static_cast<apr_size_t>(-1)) body.size += static_cast<apr_off_t>(b->length);
    }
    body.is_end_alone = body.has_end && body.size == before;
    if (body.keeps && body.size > body.limit) stop_keeping(body);
    if (body.keeps) keep(body, bb);
}

/// While it lives, reading from the client of a probe waits at most until the body is due. (Not on an HTTP/2 stream,
/// whose connection belongs to mod_http2.)
class ShortPatience {
  public:
    ShortPatience(const RequestBody& body, conn_rec* c) noexcept {
        if (body.due_at == 0 || c->master != nullptr) return;
        const core::Millis present = now();
        const auto left = static_cast<apr_interval_time_t>(body.due_at > present ? body.due_at - present : 1) * 1000;
        apr_socket_t* const socket = ap_get_conn_socket(c);
        if (socket == nullptr || apr_socket_timeout_get(socket, &own_) != APR_SUCCESS) return;
        if ((own_ < 0 || left < own_) && apr_socket_timeout_set(socket, left) == APR_SUCCESS) socket_ = socket;
    }
    ~ShortPatience() {
        if (socket_ != nullptr) apr_socket_timeout_set(socket_, own_);
    }
    ShortPatience(const ShortPatience&) = delete;
    ShortPatience& operator=(const ShortPatience&) = delete;

  private:
    apr_socket_t* socket_ = nullptr;
    apr_interval_time_t own_ = 0;
};

/// Reads from the client.
apr_status_t read(RequestBody& body, ap_filter_t* next, apr_bucket_brigade* bb, ap_input_mode_t mode,
                  apr_read_type_e block, apr_off_t bytes) noexcept {
    if (body.waits_since == 0) body.waits_since = now();
    body.is_reading = true;
    const ShortPatience patience(body, next->c);
    const apr_status_t rv = ap_get_brigade(next, bb, mode, block, bytes);
    body.is_reading = false;
    if (rv == APR_SUCCESS && !APR_BRIGADE_EMPTY(bb)) {
        body.pause = std::max(body.pause, now() - body.waits_since);
        body.waits_since = 0;
    }
    if (rv != APR_SUCCESS && !APR_STATUS_IS_EAGAIN(rv)) body.failure = rv;
    return rv;
}

/// What was read ahead, for the handler; the end of it is told by `is_end_ahead`. Copied: a bucket that holds one byte
/// may keep 8000 in memory, as it comes from the socket.
void set_aside(RequestBody& body, apr_bucket_brigade* bb) noexcept {
    for (apr_bucket* b = APR_BRIGADE_FIRST(bb); b != APR_BRIGADE_SENTINEL(bb); b = APR_BUCKET_NEXT(b)) {
        if (APR_BUCKET_IS_METADATA(b)) continue;
        const char* data = nullptr;
        apr_size_t length = 0;
        apr_status_t rv = apr_bucket_read(b, &data, &length, APR_BLOCK_READ);
        if (rv == APR_SUCCESS) rv = apr_brigade_write(body.ahead, nullptr, nullptr, data, length);
        if (rv != APR_SUCCESS) body.failure = rv;
    }
    apr_brigade_cleanup(bb);
}

/// The probe's time is over: reading fails, so that the call to the member ends.
bool is_over(const RequestBody& body) noexcept {
    if (body.due_at != 0 && now() >= body.due_at) return true;
    return body.probe != nullptr && shm::is_over(*body.probe, runtime.process);
}

extern "C" apr_status_t on_body(ap_filter_t* f, apr_bucket_brigade* bb, ap_input_mode_t mode, apr_read_type_e block,
                                apr_off_t bytes) noexcept {
    auto& body = *static_cast<RequestBody*>(f->ctx);
    // HTTP_IN reads the trailers from the first of the protocol filters again (ap_get_mime_headers): no bytes of the
    // body.
    if (body.is_reading) return ap_get_brigade(f->next, bb, mode, block, bytes);
    const bool takes = mode == AP_MODE_READBYTES || mode == AP_MODE_GETLINE;
    if (takes && (!APR_BRIGADE_EMPTY(body.ahead) || body.is_end_ahead)) {
        if (body.fields_after != nullptr) f->r->headers_in = std::exchange(body.fields_after, nullptr);
        if (APR_BRIGADE_EMPTY(body.ahead)) {
            give_end(body, bb);
            return APR_SUCCESS;
        }
        const apr_status_t rv = take_ahead(body, bb, mode == AP_MODE_GETLINE, bytes);
        if (rv == APR_SUCCESS && body.is_end_ahead && !body.is_end_alone && APR_BRIGADE_EMPTY(body.ahead)) {
            give_end(body, bb);
        }
        return rv;
    }
    const bool had_end = body.has_end;
    const apr_status_t rv = read(body, f->next, bb, mode, block, bytes);
    if (rv != APR_SUCCESS || had_end) return rv;
    if (is_over(body)) {
        apr_brigade_cleanup(bb);
        body.failure = APR_TIMEUP;
        return APR_TIMEUP;
    }
    if (takes) {
        note(body, bb);
    } else if (mode != AP_MODE_INIT && body.keeps) {
        stop_keeping(body);  // a speculative read, or one of another mode
    }
    return rv;
}

void note_fields(const request_rec* r, RequestBody& body) noexcept {
    if (body.fields == nullptr) body.fields = apr_table_copy(r->pool, r->headers_in);
}

void put_fields_back(request_rec* r, const RequestBody& body) noexcept {
    r->headers_in = apr_table_copy(r->pool, body.fields);
}

/// Nearest to the handler, and first of the protocol filters: mod_proxy_http takes a filter for content before them for
/// one that changes the body, and would then not send the client's Content-Length but wait for the whole body
/// (ap_proxy_http_prefetch compares the two pointers). httpd's functions would put it behind HTTP_IN.
void put_first(request_rec* r, RequestBody& body) noexcept {
    auto* const filter = static_cast<ap_filter_t*>(apr_pcalloc(r->pool, sizeof(ap_filter_t)));
    filter->frec = body_filter;
    filter->ctx = &body;
    filter->r = r;
    filter->c = r->connection;
    filter->next = r->input_filters;
    body.filter = filter;
    if (r->proto_input_filters == r->input_filters) r->proto_input_filters = filter;
    r->input_filters = filter;
}

}  // namespace

void register_body_filter() noexcept {
    body_filter = ap_register_input_filter("CIRCUITBREAKER_REQUEST_BODY", on_body, nullptr, AP_FTYPE_PROTOCOL);
}

bool has_body(const request_rec* r) noexcept {
    if (r->main != nullptr) return false;
    if (apr_table_get(r->headers_in, "Transfer-Encoding") != nullptr) return true;
    const char* const length = apr_table_get(r->headers_in, "Content-Length");
    return length != nullptr && announced_length(r) != 0;
}

RequestBody* watch_body(request_rec* r) noexcept {
    if (!has_body(r)) return nullptr;
    auto* const body = new (apr_palloc(r->pool, sizeof(RequestBody))) RequestBody();
    body->kept = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    body->ahead = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    put_first(r, *body);
    return body;
}

bool keep_body(const request_rec* r, RequestBody& body, apr_off_t limit) noexcept {
    if (body.keeps && body.is_whole()) return true;  // it is here already
    if (!body.keeps && (body.size > 0 || body.has_end)) return false;
    if (body.failure != APR_SUCCESS || body.size > limit || announced_length(r) > limit) return false;
    body.keeps = true;
    body.limit = limit;
    note_fields(r, body);
    return true;
}

bool fetch_body(request_rec* r, RequestBody& body, apr_off_t bytes) noexcept {
    if (body.has_end || body.size >= bytes || body.failure != APR_SUCCESS) return body.failure == APR_SUCCESS;
    if (body.size == 0 && !body.keeps) body.keeps = true;
    body.limit = std::max(body.limit, bytes);
    note_fields(r, body);
    if (body.fields_after != nullptr) r->headers_in = body.fields_after;
    apr_bucket_brigade* const bb = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    while (!body.has_end && body.size < bytes && body.failure == APR_SUCCESS) {
        const auto most = std::min<apr_off_t>(bytes - body.size, HUGE_STRING_LEN);
        if (read(body, body.filter->next, bb, AP_MODE_READBYTES, APR_BLOCK_READ, most) != APR_SUCCESS) break;
        if (APR_BRIGADE_EMPTY(bb)) body.failure = APR_EOF;
        note(body, bb);
        set_aside(body, bb);
    }
    body.pause = 0;  // no member has waited yet
    body.is_end_ahead = body.has_end;
    body.fields_after = r->headers_in;
    put_fields_back(r, body);
    return body.failure == APR_SUCCESS;
}

void rewind_body(request_rec* r, RequestBody& body, apr_table_t* fields_after) noexcept {
    apr_brigade_cleanup(body.ahead);
    copy(body.kept, body.ahead);
    body.is_end_ahead = body.has_end;
    if (body.fields_after == nullptr) body.fields_after = fields_after;
    put_fields_back(r, body);
    // mod_proxy_http and mod_proxy_fcgi keep what they have read before they connect. The next call gets that from us.
    for (const char* name : {"proxy-req-input", "proxy-fcgi-input"})
        apr_pool_userdata_setn(nullptr, name, nullptr, r->pool);
}

apr_off_t announced_length(const request_rec* r) noexcept {
    const char* const text = apr_table_get(r->headers_in, "Content-Length");
    apr_off_t length = 0;
    if (text == nullptr || apr_table_get(r->headers_in, "Transfer-Encoding") != nullptr) return -1;
    return ap_parse_strict_length(&length, text) != 0 ? length : -1;
}

}  // namespace cb::httpd
