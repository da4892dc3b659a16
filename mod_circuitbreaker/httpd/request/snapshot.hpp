// The request record as it was before a call.
//
// Purpose: an answer that is withheld must leave nothing behind, neither for the client (header, status, note,
// trailer, cookie, filter) nor for the next member. This is the one list of what is put back; DESIGN.md ("What is put
// back before another member is asked") has the reasons. It is put back only after a call that failed by the member's
// doing. What httpd itself has said of the request stays, above all that it closes the connection.
// Thread safety: belongs to the thread that handles the request.
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
    // How much of it was sent: nothing, or it would not be withheld. mod_proxy_http counts the headers as sent.
    apr_off_t sent_bodyct;
    apr_off_t bytes_sent;
    bool is_eos_sent;
    // What mod_proxy and the handler have written for this member. They do so again for the next one. Left here, values
    // that are appended (ProxyFCGISetEnvIf) would stand there twice, and the next member would get the first one's.
    apr_table_t* notes;
    apr_table_t* subprocess_env;
    apr_table_t* headers_in;
    // How far the body was read (ap_get_client_block): it is read again from its first byte.
    apr_off_t remaining;
    apr_off_t read_length;
    int read_chunked;
    // Filters that the handler has added (AddOutputFilterByType, by the failing answer's type) are removed.
    // mod_proxy_wstunnel replaces the chains by the connection's own, and marks the connection for closing; a tunnel
    // that did not come about needs neither. No other mark on the connection is taken back.
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
