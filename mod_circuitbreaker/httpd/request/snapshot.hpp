// The request record as it was before a call.
//
// Purpose: an answer that is withheld leaves nothing behind, neither for the client (no header, status, note, trailer,
// cookie or filter) nor for the next member. This is the one list of what is put back, and why that is right. It is put
// back only after a call that failed by the member's doing: what httpd itself has said of the request stays, the
// connection that it closes above all.
// Thread safety: one request's.
// Invariants: a snapshot shares no table with the request; it can be put back once.
#ifndef CIRCUITBREAKER_HTTPD_REQUEST_SNAPSHOT_HPP
#define CIRCUITBREAKER_HTTPD_REQUEST_SNAPSHOT_HPP

#include "httpd/httpd_api.hpp"

namespace cb::httpd {

struct Snapshot {
    // The failing answer's own.
    apr_table_t* headers_out;
    apr_table_t* err_headers_out;
    apr_table_t* trailers_out;
    const char* status_line;
    const char* content_type;
    const char* content_encoding;
    const char* vlist_validator;  // of its Last-Modified and ETag
    apr_array_header_t* content_languages;
    apr_time_t mtime;
    apr_off_t clength;
    int status;
    int chunked;
    int no_cache;       // mod_proxy marks an answer that broke off
    int main_no_cache;  // of the request that this one is a part of
    int no_local_copy;
    // How much of it has left: nothing, or it would not be withheld. mod_proxy_http counts the headers as sent.
    apr_off_t sent_bodyct;
    apr_off_t bytes_sent;
    bool is_eos_sent;
    // What mod_proxy and the handler have noted for this member: each does so again for the next one, and what appends
    // itself (ProxyFCGISetEnvIf) would stand there twice, or the next member would get what was meant for the first.
    apr_table_t* notes;
    apr_table_t* subprocess_env;
    apr_table_t* headers_in;
    // How far the body was read (ap_get_client_block): it is read again from its first byte.
    apr_off_t remaining;
    apr_off_t read_length;
    int read_chunked;
    // Filters that the handler has added (AddOutputFilterByType, by the failing answer's type) go. mod_proxy_wstunnel
    // replaces the chains by the connection's own, and marks the connection for closing: a tunnel that did not come
    // about needs neither. Nothing else of mod_proxy marks it; whoever has, has a reason, and the mark stays.
    apr_array_header_t* filters;  // of ap_filter_t*, on the way to the client
    ap_filter_t* output_filters;
    ap_filter_t* proto_output_filters;
    ap_filter_t* input_filters;
    ap_filter_t* proto_input_filters;
    ap_conn_keepalive_e keepalive;
};

[[nodiscard]] Snapshot* take_snapshot(const request_rec* r) noexcept;
void put_back(request_rec* r, const Snapshot& snapshot) noexcept;

}  // namespace cb::httpd

#endif
