// The request record as it was before a call.
//
// Purpose: an answer that is withheld leaves nothing behind for the client (DESIGN 7): no header, status, note,
// trailer, cookie or filter. Thread safety: one request's. Invariants: a snapshot shares no table with the request; it
// can be put back once.
#ifndef CIRCUITBREAKER_HTTPD_SNAPSHOT_HPP
#define CIRCUITBREAKER_HTTPD_SNAPSHOT_HPP

#include "httpd_api.hpp"

namespace cb::httpd {

struct Snapshot {
    apr_table_t* headers_out;
    apr_table_t* err_headers_out;
    apr_table_t* trailers_out;
    apr_table_t* notes;
    const char* status_line;
    const char* content_type;
    const char* content_encoding;
    const char* vlist_validator;
    apr_array_header_t* content_languages;
    apr_array_header_t* filters;  // of ap_filter_t*, on the way to the client
    ap_filter_t* output_filters;
    ap_filter_t* proto_output_filters;
    ap_filter_t* input_filters;
    ap_filter_t* proto_input_filters;
    apr_off_t sent_bodyct;
    apr_off_t bytes_sent;
    apr_off_t clength;
    apr_off_t remaining;  // of the request's body, as ap_get_client_block() counts it
    apr_off_t read_length;
    apr_time_t mtime;
    int status;
    int chunked;
    int read_chunked;
    int no_cache;
    int main_no_cache;  // of the request that this one is a part of
    int no_local_copy;
    bool is_eos_sent;
    ap_conn_keepalive_e keepalive;
};

[[nodiscard]] Snapshot* take_snapshot(const request_rec* r) noexcept;
void put_back(request_rec* r, const Snapshot& snapshot) noexcept;

}  // namespace cb::httpd

#endif
