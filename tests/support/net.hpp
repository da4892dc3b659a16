// Sockets on the loopback interface: ports that nobody else gets, listeners, and a client that can send half a request.
//
// Thread safety: an object belongs to one thread at a time. All descriptors are close-on-exec, so no httpd started by a
// test inherits one and keeps a listener alive that the test has closed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wait.hpp"

namespace cb::test {

/// An owned descriptor.
class Socket {
  public:
    Socket() = default;
    explicit Socket(int fd) : fd_(fd) {}
    Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Socket& operator=(Socket&& other) noexcept {
        if (this != &other) {
            close();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }
    ~Socket() { close(); }

    [[nodiscard]] bool valid() const { return fd_ >= 0; }
    [[nodiscard]] int fd() const { return fd_; }
    void close();
    /// Ends the connection with a RST instead of a FIN; bytes already written leave first.
    void reset();

  private:
    int fd_ = -1;
};

/// A TCP port on 127.0.0.1 that stays reserved as long as this lives: a socket is bound to it, but doesn't listen. The
/// kernel then gives the port to nobody who asks for any port, nor to an outgoing connection as its source (which could
/// otherwise connect to itself), while a listener with SO_REUSEADDR, as httpd and `listen_on_port` set it, can bind to
/// it. Until one does, connections are refused.
class ReservedPort {
  public:
    ReservedPort();
    [[nodiscard]] std::uint16_t number() const { return number_; }

  private:
    Socket bound_;
    std::uint16_t number_ = 0;
};

/// A port where connecting neither succeeds nor fails: its accept queue is full, so the kernel drops every SYN.
class SilentPort {
  public:
    SilentPort();
    [[nodiscard]] std::uint16_t number() const { return port_.number(); }

  private:
    ReservedPort port_;
    Socket listener_;
    std::vector<Socket> fillers_;
};

[[nodiscard]] Socket listen_on_port(std::uint16_t port);
/// Anybody may connect. An old socket file of that name is replaced.
[[nodiscard]] Socket listen_on_path(const std::filesystem::path& path);
/// An invalid socket if nobody listens.
[[nodiscard]] Socket connect_to_port(std::uint16_t port);

/// Writes everything; false when the peer is gone.
bool send_all(int fd, std::string_view bytes);

/// A client that speaks bytes: for requests that stop half way, uploads that stall, downloads that nobody reads.
class RawClient {
  public:
    explicit RawClient(std::uint16_t port);

    [[nodiscard]] bool connected() const { return socket_.valid(); }
    bool send(std::string_view bytes) { return send_all(socket_.fd(), bytes); }
    /// What has come when `marker` is there, the peer has closed, or the time is up, whichever is first. The bytes
    /// after the marker are kept for the next read.
    [[nodiscard]] std::string read_until(std::string_view marker, milliseconds timeout = patience);
    /// Everything up to the end of the connection.
    [[nodiscard]] std::string read_to_end(milliseconds timeout = patience);
    /// Whether the last read ended because the peer closed (or reset) the connection.
    [[nodiscard]] bool closed_by_peer() const { return end_seen_; }
    [[nodiscard]] bool reset_by_peer() const { return reset_seen_; }
    void finish_sending();
    void close() { socket_.close(); }
    void reset() { socket_.reset(); }

  private:
    bool read_more(std::chrono::steady_clock::time_point deadline);

    Socket socket_;
    std::string buffer_;
    bool end_seen_ = false;
    bool reset_seen_ = false;
};

}  // namespace cb::test
