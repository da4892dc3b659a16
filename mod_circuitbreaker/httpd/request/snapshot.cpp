#include "snapshot.hpp"

#include <new>

namespace cb::httpd {
namespace {

apr_table_t* copy_of(const request_rec* r, const apr_table_t* table) noexcept {
    return table != nullptr ? apr_table_copy(r->pool, table) : nullptr;
}

bool contains(const apr_array_header_t* filters, const ap_filter_t* filter) noexcept {
    for (int i = 0; i < filters->nelts; ++i) {
        if (APR_ARRAY_IDX(filters, i, const ap_filter_t*) == filter) return true;
    }
    return false;
}

}  // namespace

Snapshot* take_snapshot(const request_rec* r) noexcept {
    auto* const snapshot = new (apr_palloc(r->pool, sizeof(Snapshot))) Snapshot();
    snapshot->headers_out = copy_of(r, r->headers_out);
    snapshot->err_headers_out = copy_of(r, r->err_headers_out);
    snapshot->trailers_out = copy_of(r, r->trailers_out);
    snapshot->notes = copy_of(r, r->notes);
    snapshot->subprocess_env = copy_of(r, r->subprocess_env);
    snapshot->headers_in = copy_of(r, r->headers_in);
    snapshot->status_line = r->status_line;
    snapshot->content_type = r->content_type;
    snapshot->content_encoding = r->content_encoding;
    snapshot->vlist_validator = r->vlist_validator;
    snapshot->content_languages = r->content_languages;
    snapshot->filters = apr_array_make(r->pool, 8, sizeof(ap_filter_t*));
    for (ap_filter_t* filter = r->output_filters; filter != nullptr; filter = filter->next)
        APR_ARRAY_PUSH(snapshot->filters, ap_filter_t*) = filter;
    snapshot->output_filters = r->output_filters;
    snapshot->proto_output_filters = r->proto_output_filters;
    snapshot->input_filters = r->input_filters;
    snapshot->proto_input_filters = r->proto_input_filters;
    snapshot->sent_bodyct = r->sent_bodyct;
    snapshot->bytes_sent = r->bytes_sent;
    snapshot->clength = r->clength;
    snapshot->remaining = r->remaining;
    snapshot->read_length = r->read_length;
    snapshot->mtime = r->mtime;
    snapshot->status = r->status;
    snapshot->chunked = r->chunked;
    snapshot->read_chunked = r->read_chunked;
    snapshot->no_cache = r->no_cache;
    snapshot->main_no_cache = r->main != nullptr ? r->main->no_cache : 0;
    snapshot->no_local_copy = r->no_local_copy;
    snapshot->is_eos_sent = r->eos_sent != 0;
    snapshot->keepalive = r->connection->keepalive;
    return snapshot;
}

void put_back(request_rec* r, const Snapshot& snapshot) noexcept {
    r->headers_out = snapshot.headers_out;
    r->err_headers_out = snapshot.err_headers_out;
    r->trailers_out = snapshot.trailers_out;
    r->notes = snapshot.notes;
    r->subprocess_env = snapshot.subprocess_env;
    r->headers_in = snapshot.headers_in;
    r->status_line = snapshot.status_line;
    // Not ap_set_content_type(): that would insert the filters of AddOutputFilterByType.
    r->content_type = snapshot.content_type;
    r->content_encoding = snapshot.content_encoding;
    r->vlist_validator = const_cast<char*>(snapshot.vlist_validator);
    r->content_languages = snapshot.content_languages;
    // mod_proxy_wstunnel takes the request's own away; elsewhere they stay, but for those that end by themselves.
    if (r->output_filters == r->connection->output_filters) {
        r->output_filters = snapshot.output_filters;
        r->proto_output_filters = snapshot.proto_output_filters;
        r->input_filters = snapshot.input_filters;
        r->proto_input_filters = snapshot.proto_input_filters;
        r->connection->keepalive = snapshot.keepalive;
    }
    for (ap_filter_t* filter = r->output_filters; filter != nullptr;) {
        ap_filter_t* const next = filter->next;
        if (!contains(snapshot.filters, filter)) ap_remove_output_filter(filter);
        filter = next;
    }
    r->sent_bodyct = snapshot.sent_bodyct;
    r->bytes_sent = snapshot.bytes_sent;
    r->clength = snapshot.clength;
    r->remaining = snapshot.remaining;
    r->read_length = snapshot.read_length;
    r->mtime = snapshot.mtime;
    r->status = snapshot.status;
    r->chunked = snapshot.chunked;
    r->read_chunked = snapshot.read_chunked;
    r->no_cache = snapshot.no_cache;
    if (r->main != nullptr) r->main->no_cache = snapshot.main_no_cache;
    r->no_local_copy = snapshot.no_local_copy;
    r->eos_sent = snapshot.is_eos_sent ? 1 : 0;
}

}  // namespace cb::httpd
