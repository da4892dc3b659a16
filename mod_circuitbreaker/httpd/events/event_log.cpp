#include "event_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "httpd/config/settings.hpp"

namespace cb::httpd {
namespace {

/// APR has no call for this on a pipe that httpd has made.
bool set_non_blocking(int fd) noexcept {
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

apr_file_t* open_program(apr_pool_t* pconf, const char* program, server_rec* s) noexcept {
    piped_log* const pipe = ap_open_piped_log(pconf, program);
    if (pipe == nullptr) {
        ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_CRIT, 0, s,
                     "mod_circuitbreaker: CircuitBreakerEventLog: can't start the program \"%s\"", program);
        return nullptr;
    }
    return ap_piped_log_write_fd(pipe);
}

apr_status_t open_to_write(apr_pool_t* pconf, const char* path, apr_file_t*& file) noexcept {
    constexpr apr_int32_t kFlags = APR_FOPEN_APPEND | APR_FOPEN_WRITE | APR_FOPEN_CREATE | APR_FOPEN_LARGEFILE |
                                   APR_FOPEN_NONBLOCK;  // a FIFO without a reader must not hang the start
    // A regular file is to be read too, for its last byte. A FIFO is not: we would be its reader.
    apr_finfo_t about;
    const bool is_there = apr_stat(&about, path, APR_FINFO_TYPE, pconf) == APR_SUCCESS;
    if (!is_there || about.filetype == APR_REG) {
        const apr_status_t status = apr_file_open(&file, path, kFlags | APR_FOPEN_READ, APR_OS_DEFAULT, pconf);
        if (!APR_STATUS_IS_EACCES(status)) return status;
    }
    const apr_status_t status = apr_file_open(&file, path, kFlags, APR_OS_DEFAULT, pconf);
    if (status != ENXIO) return status;
    // Such a FIFO can't be opened for writing. But a restart must not end httpd because its reader restarts too: for a
    // moment we are the reader. Its lines are lost, and said to be, until there is one.
    const int reader = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (reader < 0) return status;
    const apr_status_t again = apr_file_open(&file, path, kFlags, APR_OS_DEFAULT, pconf);
    close(reader);
    return again;
}

apr_file_t* open_file(apr_pool_t* pconf, const char* name, server_rec* s) noexcept {
    apr_file_t* file = nullptr;
    const char* const path = ap_server_root_relative(pconf, name);
    const apr_status_t status = path == nullptr ? APR_EBADPATH : open_to_write(pconf, path, file);
    if (status == APR_SUCCESS) return file;
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_CRIT, status, s,
                 "mod_circuitbreaker: CircuitBreakerEventLog: can't open \"%s\"", path != nullptr ? path : name);
    return nullptr;
}

enum class Tail : std::uint8_t { whole, half, unknown };

/// How the log ends. Only a regular file can end in half a line: a pipe takes a line as a whole or not at all.
Tail tail_of(int fd) noexcept {
    struct stat about {};
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0) return Tail::whole;
    char last = '\0';
    if (pread(fd, &last, 1, about.st_size - 1) != 1) return Tail::unknown;
    return last == '\n' ? Tail::whole : Tail::half;
}

void note_loss(int error) noexcept {
    shm::Header& header = *runtime.segment.header;
    const std::uint64_t before = header.events_lost.fetch_add(1, std::memory_order_relaxed);
    std::uint64_t none = 0;
    if (!header.events_spell.compare_exchange_strong(none, before + 1, std::memory_order_relaxed)) return;
    ap_log_error(APLOG_MARK, APLOG_WARNING, error, runtime.server,
                 "circuit breaker: the event log does not take its lines; they are lost until it does");
}

void note_success() noexcept {
    shm::Header& header = *runtime.segment.header;
    if (header.events_spell.load(std::memory_order_relaxed) == 0) return;
    const std::uint64_t spell = header.events_spell.exchange(0, std::memory_order_relaxed);
    if (spell == 0) return;
    ap_log_error(APLOG_MARK, APLOG_WARNING, 0, runtime.server,
                 "circuit breaker: the event log takes its lines again; %" APR_UINT64_T_FMT " were lost",
                 header.events_lost.load(std::memory_order_relaxed) - (spell - 1));
}

}  // namespace

bool open_event_log(apr_pool_t* pconf, server_rec* main_server) noexcept {
    const EventLog& wanted = server_settings(main_server).event_log;
    const char* const target = wanted.target;
    if (target == nullptr) return true;
    apr_file_t* const file =
        *target == '|' ? open_program(pconf, target + 1, main_server) : open_file(pconf, target, main_server);
    if (file == nullptr) return false;
    int fd = -1;
    if (apr_os_file_get(&fd, file) != APR_SUCCESS || !set_non_blocking(fd)) return false;
    runtime.segment.header->events_spell.store(0, std::memory_order_relaxed);  // of the log before this one
    if (tail_of(fd) == Tail::half) runtime.segment.header->events_torn.store(shm::monotonic_ns());
    runtime.event_log = fd;
    runtime.logs_probes = wanted.with_probes;
    return true;
}

void write_event(const shm::Slot& slot, const EventData& event) noexcept {
    if (runtime.event_log < 0) return;
    char line[kMaxEventLine];
    const std::size_t length = write_event_line(line, slot, event);
    shm::Atomic64& torn = runtime.segment.header->events_torn;
    // Acquire: who sees that it is torn sees the half line in the file. The half line can't be taken back, since
    // another process may have written after it, so it is ended and stays as a line of its own. (If two processes end
    // it at once, there is an empty line.)
    std::uint64_t seen = torn.load(std::memory_order_acquire);
    const bool is_after_half = seen != 0 && tail_of(runtime.event_log) != Tail::whole;
    char newline = '\n';
    iovec parts[] = {{&newline, is_after_half ? 1U : 0U}, {line, length}};
    ssize_t written = 0;
    do {
        written = writev(runtime.event_log, parts, 2);
    } while (written < 0 && errno == EINTR);
    const auto all = static_cast<ssize_t>(parts[0].iov_len + length);
    if (written == all) {
        // Only the half line that we have seen to: another one may have come since.
        if (seen != 0) torn.compare_exchange_strong(seen, 0, std::memory_order_relaxed);
    } else if (written > 0) {
        torn.store(shm::monotonic_ns(), std::memory_order_release);
    }
    if (written >= all - 1) {  // without its newline it is an event all the same
        note_success();
    } else {
        note_loss(written < 0 ? errno : ENOSPC);
    }
}

}  // namespace cb::httpd
