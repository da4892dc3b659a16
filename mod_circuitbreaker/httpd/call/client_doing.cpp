#include "client_doing.hpp"

#include <cstring>

#include "httpd/runtime.hpp"

namespace cb::httpd {

bool is_request_bad(const RequestState& state) noexcept {
    return state.call.seen.is_request_error || (state.body != nullptr && state.body->failure != APR_SUCCESS);
}

bool is_uploading(const RequestState& state) noexcept {
    if (state.body == nullptr) return false;
    const Call& call = state.call;
    if (!call.target.is_http) return !state.body->has_end || call.seen.is_write_failed;
    return !call.is_sent() || call.seen.waits_for_100 || call.seen.is_write_failed;
}

bool was_kept_waiting(const RequestState& state) noexcept {
    constexpr core::Millis kShortest = 1000;  // every server waits at least this long
    const RequestBody* const body = state.body;
    if (body == nullptr || !body->has_end || body->pause < kShortest) return false;
    const Call& call = state.call;
    // All of it was here before, or for an earlier call.
    if (body->ended_at <= (call.target.is_http ? call.seen.written_at : call.target.started)) return false;
    return now() - body->ended_at < body->pause;
}

std::size_t length_of_head(const request_rec* r) noexcept {
    constexpr std::size_t kEach = 12;  // as nghttp2_hd_deflate_bound() counts
    std::size_t length = std::strlen(r->unparsed_uri);
    const apr_array_header_t* const fields = apr_table_elts(r->headers_in);
    for (int i = 0; i < fields->nelts; ++i) {
        const auto& field = APR_ARRAY_IDX(fields, i, apr_table_entry_t);
        length += std::strlen(field.key) + std::strlen(field.val) + kEach;
    }
    return length;
}

bool is_tls_name_of_client(const RequestState& state) noexcept {
    const request_rec* const r = state.r;
    if (proxy_dir_config(r).preserve_host == 0) return false;
    const char* const name = r->hostname;
    if (name == nullptr) return true;
    const server_rec& server = *r->server;
    if (ap_cstr_casecmp(name, state.call.target.worker->s->hostname_ex) == 0) return false;
    if (server.server_hostname != nullptr && ap_cstr_casecmp(name, server.server_hostname) == 0) return false;
    for (int i = 0; server.names != nullptr && i < server.names->nelts; ++i) {
        const char* const alias = APR_ARRAY_IDX(server.names, i, const char*);
        if (alias != nullptr && ap_cstr_casecmp(name, alias) == 0) return false;
    }
    return true;
}

bool may_be_reset_by_http2(const RequestState& state) noexcept {
    const request_rec* const r = state.r;
    if (state.call.target.is_http || state.call.target.worker->s->scheme[0] != 'h') return false;
    const char* const host = apr_table_get(r->headers_in, "Host");
    const bool has_no_name = proxy_dir_config(r).preserve_host != 0 && host != nullptr && *host == '\0';
    return has_no_name || apr_is_empty_table(r->trailers_in) == 0;
}

bool is_client_too_slow(const Call& call) noexcept {
    constexpr core::Millis kShortest = 100;  // ordinary flow control is shorter
    const core::Millis present = now();
    return call.seen.client_wait >= kShortest && present > call.seen.caught_up_at &&
           call.seen.client_wait * 2 > present - call.seen.caught_up_at;
}

}  // namespace cb::httpd
