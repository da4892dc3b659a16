#include "net.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace cb::test {
namespace {

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

Socket new_socket(int family, int flags = 0) {
    const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (fd < 0) fail("socket");
    return Socket(fd);
}

void set_option(const Socket& socket, int option, int value) {
    if (::setsockopt(socket.fd(), SOL_SOCKET, option, &value, sizeof value) != 0) fail("setsockopt");
}

void bind_to(const Socket& socket, const sockaddr_in& address) {
    if (::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        fail("bind to 127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
}

/// Limits what the kernel keeps for a test's client or server that does not read. It may grow to 32 MB otherwise.
constexpr int receive_buffer = 128 * 1024;

int connect_socket(const Socket& socket, std::uint16_t port) {
    const sockaddr_in address = loopback(port);
    return ::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

bool everything_has_left(int fd) {
    int unsent = 0;
    return ::ioctl(fd, SIOCOUTQNSD, &unsent) != 0 || unsent == 0;
}

}  // namespace

void Socket::close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void Socket::reset() {
    if (fd_ < 0) return;
    // A RST throws away what is still in the send queue. A peer that doesn't read may keep it there: then a second is
    // enough.
    for (int tries = 0; tries < 500 && !everything_has_left(fd_); ++tries)
        std::this_thread::sleep_for(2ms);
    const linger at_once{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
}

ReservedPort::ReservedPort() : bound_(new_socket(AF_INET)) {
    // Bound without SO_REUSEADDR, so that it is ours alone; set afterwards, so that a listener may join (the kernel
    // looks at both sockets' flag at the time of the second bind, and that the first one doesn't listen).
    bind_to(bound_, loopback(0));
    set_option(bound_, SO_REUSEADDR, 1);
    sockaddr_in address{};
    socklen_t size = sizeof address;
    if (::getsockname(bound_.fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0) fail("getsockname");
    number_ = ntohs(address.sin_port);
}

SilentPort::SilentPort() : listener_(new_socket(AF_INET)) {
    set_option(listener_, SO_REUSEADDR, 1);
    bind_to(listener_, loopback(number()));
    if (::listen(listener_.fd(), 0) != 0) fail("listen");
    // With a backlog of 0 Linux queues one connection; the first that stays in progress proves the queue is full.
    for (int i = 0; i < 16; ++i) {
        fillers_.push_back(new_socket(AF_INET, SOCK_NONBLOCK));
        connect_socket(fillers_.back(), number());
        pollfd waiting{fillers_.back().fd(), POLLOUT, 0};
        if (::poll(&waiting, 1, 50) == 0) return;
    }
    throw std::runtime_error("the accept queue of a SilentPort can't be filled");
}

Socket listen_on_port(std::uint16_t port) {
    Socket listener = new_socket(AF_INET);
    set_option(listener, SO_REUSEADDR, 1);
    set_option(listener, SO_RCVBUF, receive_buffer);
    bind_to(listener, loopback(port));
    if (::listen(listener.fd(), SOMAXCONN) != 0) fail("listen");
    return listener;
}

Socket listen_on_path(const std::filesystem::path& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string text = path.string();
    if (text.size() >= sizeof address.sun_path) throw std::invalid_argument("socket path too long: " + text);
    std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
    ::unlink(text.c_str());
    Socket listener = new_socket(AF_UNIX);
    if (::bind(listener.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("bind " + text);
    if (::chmod(text.c_str(), 0777) != 0) fail("chmod " + text);
    if (::listen(listener.fd(), SOMAXCONN) != 0) fail("listen " + text);
    return listener;
}

Socket connect_to_port(std::uint16_t port) {
    Socket socket = new_socket(AF_INET);
    if (connect_socket(socket, port) != 0) socket.close();
    return socket;
}

bool send_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

RawClient::RawClient(std::uint16_t port) : socket_(new_socket(AF_INET)) {
    set_option(socket_, SO_RCVBUF, receive_buffer);
    if (connect_socket(socket_, port) != 0) socket_.close();
}

bool RawClient::read_more(std::chrono::steady_clock::time_point deadline) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd readable{socket_.fd(), POLLIN, 0};
    if (!connected() || ::poll(&readable, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) <= 0) return false;
    char piece[16 * 1024];
    const ssize_t count = ::recv(socket_.fd(), piece, sizeof piece, 0);
    if (count <= 0) {
        end_seen_ = true;
        reset_seen_ = count < 0 && errno == ECONNRESET;
        return false;
    }
    buffer_.append(piece, static_cast<std::size_t>(count));
    return true;
}

std::string RawClient::read_until(std::string_view marker, milliseconds timeout) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    auto at = buffer_.find(marker);
    while (at == std::string::npos && read_more(deadline))
        at = buffer_.find(marker);
    if (at == std::string::npos) return std::exchange(buffer_, {});
    const auto end = at + marker.size();
    std::string result = buffer_.substr(0, end);
    buffer_.erase(0, end);
    return result;
}

std::string RawClient::read_to_end(milliseconds timeout) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (read_more(deadline)) {
    }
    return std::exchange(buffer_, {});
}

void RawClient::finish_sending() {
    ::shutdown(socket_.fd(), SHUT_WR);
}

}  // namespace cb::test
