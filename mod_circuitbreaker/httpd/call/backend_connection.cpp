#include "backend_connection.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "heard.hpp"
#include "httpd/runtime.hpp"

namespace cb::httpd {
namespace {

ap_filter_rec_t* write_filter;

/// The call that this thread is making.
constinit thread_local Call* running_call = nullptr;

/// mod_ssl notes how the handshake ended (ssl_engine_io.c, ssl_io_filter_handshake). When its library finds an error
/// later, it tries once more while it closes the connection: the note then says that a good handshake failed.
void note_handshake(Call& call, const conn_rec& c) noexcept {
    const char* const result = apr_table_get(c.notes, "SSL_connect_rv");
    if (result == nullptr) return;
    if (std::strcmp(result, "ok") == 0) {
        call.seen.handshake = Handshake::done;
    } else {
        call.seen.handshake = call.seen.handshake == Handshake::done ? Handshake::broken : Handshake::failed;
    }
}

/// The connection ends, perhaps before the handler returns.
extern "C" apr_status_t on_connection_end(void* data) noexcept {
    auto& call = *static_cast<Call*>(data);
    note_handshake(call, *call.seen.new_connection);
    call.seen.new_connection = nullptr;
    return APR_SUCCESS;
}

/// What we keep with a connection to a member.
struct KeptConnection {
    core::Millis used_at = 0;  // when its last response was over; 0: it has had none
};

KeptConnection* kept_connection(const conn_rec& c) noexcept {
    return static_cast<KeptConnection*>(ap_get_module_config(c.conn_config, &circuitbreaker_module));
}

extern "C" apr_status_t on_response_end(void* connection) noexcept {
    static_cast<KeptConnection*>(connection)->used_at = now();
    return APR_SUCCESS;
}

/// As the kernel has measured it; 0 for a unix domain socket.
core::Millis round_trip_of(conn_rec& c) noexcept {
    apr_os_sock_t fd = -1;
    apr_socket_t* const socket = ap_get_conn_socket(&c);
    if (socket == nullptr || apr_os_sock_get(&fd, socket) != APR_SUCCESS) return 0;
    tcp_info info{};
    socklen_t size = sizeof info;
    return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_rtt / 1000 : 0;
}

/// Has the member answered already? What came before a reset can still be read.
bool has_answer(conn_rec& c) noexcept {
    apr_bucket_brigade* const bb = apr_brigade_create(c.pool, c.bucket_alloc);
    apr_off_t length = 0;
    const bool has = ap_get_brigade(c.input_filters, bb, AP_MODE_SPECULATIVE, APR_NONBLOCK_READ, 1) == APR_SUCCESS &&
                     apr_brigade_length(bb, 0, &length) == APR_SUCCESS && length > 0;
    apr_brigade_destroy(bb);
    return has;
}

/// mod_proxy_http sends the body also after a final answer that came in place of a `100 Continue`.
bool is_answered(const Call& call) noexcept {
    return call.seen.waits_for_100 && call.seen.line_status >= HTTP_OK;
}

/// Does the brigade hold more of the body than mod_proxy_http reads before it connects? Then the request was spooled,
/// and is written in one brigade. If that fails, part of it may have been written.
bool is_spooled(apr_bucket_brigade* bb) noexcept {
    constexpr apr_off_t kFirstPart = 16384 + 65536;
    apr_off_t length = 0;
    return apr_brigade_length(bb, 0, &length) == APR_SUCCESS && length > kFirstPart;
}

/// A member may answer before it has read the whole request, and then close. mod_proxy_http would only see that writing
/// fails, and never read the answer. So the rest of the request is dropped here, and mod_proxy_http goes on.
extern "C" apr_status_t on_backend_write(ap_filter_t* f, apr_bucket_brigade* bb) noexcept {
    Call* const call = running_call;
    if (call == nullptr) return ap_pass_brigade(f->next, bb);
    if (!call->target.is_http || (call->is_sent() && !is_answered(*call))) {
        const apr_status_t rv = ap_pass_brigade(f->next, bb);
        if (call->seen.handshake == Handshake::none) note_handshake(*call, *f->c);
        return rv;
    }
    if (call->seen.is_write_failed) {
        apr_brigade_cleanup(bb);
        return APR_SUCCESS;
    }
    conn_rec& c = *f->c;
    const bool is_in_parts = call->seen.has_written || is_spooled(bb);
    const apr_status_t rv = ap_pass_brigade(f->next, bb);
    if (call->seen.handshake == Handshake::none) note_handshake(*call, c);
    if (rv == APR_SUCCESS && c.aborted == 0) {
        if (!call->seen.has_written) call->seen.written_at = now();
        call->seen.has_written = true;
        return rv;
    }
    if (!call->seen.has_written && !call->seen.is_new_connection) {
        call->seen.is_kept = true;
        note_end_of_kept(*call, c, 0);
    }
    if (call->seen.handshake == Handshake::failed || !call->target.breaker->is_enforcing())
        return rv;  // Observe changes nothing
    // Bytes that wait on a kept connection may not be the answer to this request, but a 408 from a server that closes
    // it.
    if (!call->seen.has_written) {
        if (!call->seen.is_new_connection) return rv;
        call->seen.has_written = is_in_parts;
    }
    const unsigned was_aborted = c.aborted;
    c.aborted = 0;  // mod_ssl reads no more where it is set
    if (!is_answered(*call) && !has_answer(c)) {
        c.aborted = was_aborted != 0 ? 1 : 0;
        return rv;
    }
    call->seen.is_write_failed = true;
    c.keepalive = AP_CONN_CLOSE;
    apr_brigade_cleanup(bb);
    return APR_SUCCESS;
}

}  // namespace

RunningCall::RunningCall(Call& call) noexcept : outer_(std::exchange(running_call, &call)) {}

RunningCall::~RunningCall() {
    leave_connection(*std::exchange(running_call, outer_));
}

void leave_connection(Call& call) noexcept {
    if (call.seen.new_connection == nullptr) return;
    note_handshake(call, *call.seen.new_connection);
    apr_pool_cleanup_kill(call.seen.new_connection->pool, &call, on_connection_end);
    call.seen.new_connection = nullptr;
}

void note_use(const request_rec& response) noexcept {
    KeptConnection* const connection = kept_connection(*response.connection);
    if (connection == nullptr) return;
    // mod_proxy destroys it when it gives the connection back.
    apr_pool_cleanup_register(response.pool, connection, on_response_end, apr_pool_cleanup_null);
}

void note_end_of_kept(Call& call, conn_rec& c, core::Millis sent_at) noexcept {
    constexpr core::Millis kIdle = 100;    // one that served a request less than that ago was busy
    constexpr core::Millis kAtOnce = 100;  // or two round trips; a busy machine's own delays are part of it
    const KeptConnection* const connection = kept_connection(c);  // nullptr: made for a call that was not watched
    const core::Millis present = now();
    const core::Millis until = sent_at != 0 ? sent_at : present;
    const bool was_idle = connection == nullptr || until >= connection->used_at + kIdle;
    call.seen.is_race = was_idle && present - until <= std::max(kAtOnce, 2 * round_trip_of(c));
}

void register_backend_filter() noexcept {
    // Before mod_ssl's, which is of this type + 5: what is written is the request itself.
    write_filter = ap_register_output_filter("CIRCUITBREAKER_WRITE", on_backend_write, nullptr, AP_FTYPE_CONNECTION);
}

extern "C" int cb_on_pre_connection(conn_rec* c, void*) noexcept {
    Call* const call = running_call;
    if (call == nullptr) return OK;
    if (call->seen.new_connection != nullptr) {  // a second one, after the first address failed
        apr_pool_cleanup_kill(call->seen.new_connection->pool, call, on_connection_end);
    }
    call->seen.new_connection = c;
    call->seen.is_new_connection = true;
    call->seen.handshake = Handshake::none;
    if (call->seen.told == core::Outcome::connect)
        call->seen.told = core::Outcome::none;  // that was said of an address that failed
    // Before the pool's subpools go, in which the connection's notes may live.
    apr_pool_pre_cleanup_register(c->pool, call, on_connection_end);
    ap_set_module_config(c->conn_config, &circuitbreaker_module,
                         new (apr_pcalloc(c->pool, sizeof(KeptConnection))) KeptConnection());
    ap_add_output_filter_handle(write_filter, nullptr, nullptr, c);
    return OK;
}

extern "C" void cb_on_error_log(const ap_errorlog_info* said, const char* text) noexcept {
    if (running_call != nullptr) hear(*running_call, *said, text);
}

}  // namespace cb::httpd
