#include "differential_exchange.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "support/process.hpp"

namespace cb::test {
namespace {

/// Of a client that sends nothing more and gets nothing. Too short changes nothing, but for the way it ends.
constexpr milliseconds quiet_time{300};

std::uint16_t own_port(const Socket& socket) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
}

/// False when the server takes no more.
bool send_some(int fd, std::string_view& unsent, int flags) {
    const ssize_t sent = ::send(fd, unsent.data(), unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT | flags);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    unsent.remove_prefix(static_cast<std::size_t>(sent));
    return true;
}

}  // namespace

void Lane::speak(Socket& client, const Exchange& exchange, Outcome& outcome) {
    // Large enough for all of a request in one write.
    const int room = 1024 * 1024;
    ::setsockopt(client.fd(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    std::string_view unsent = exchange.bytes;
    bool is_half_closed = false;
    // The end leaves together with the last bytes: whether httpd sees it when it has read them is no matter of luck
    // then.
    const int flags = exchange.after == After::half_close ? MSG_MORE : 0;
    const auto half_close = [&] {
        if (!is_half_closed) ::shutdown(client.fd(), SHUT_WR);
        is_half_closed = true;
    };
    for (;;) {
        if (!unsent.empty() && !send_some(client.fd(), unsent, flags)) unsent = {};
        if (unsent.empty() && (exchange.after == After::close || exchange.after == After::reset)) {
            if (exchange.after == After::reset) client.reset();
            client.close();
            return;
        }
        if (unsent.empty() && exchange.after == After::half_close) half_close();
        members.serve();
        const short wanted = unsent.empty() ? POLLIN : POLLIN | POLLOUT;
        pollfd ready[2] = {{client.fd(), wanted, 0}, {members.fd(), POLLIN, 0}};
        const bool is_waiting = exchange.after == After::wait && !is_half_closed;
        const milliseconds timeout = is_waiting ? quiet_time : patience;
        if (::poll(ready, 2, static_cast<int>(timeout.count())) == 0) {
            if (!is_waiting) {
                outcome.is_ended = false;
                return;
            }
            half_close();
        }
        if ((ready[0].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
        char piece[16 * 1024];
        const ssize_t count = ::recv(client.fd(), piece, sizeof piece, MSG_DONTWAIT);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (count <= 0) return;
        outcome.answer.append(piece, static_cast<std::size_t>(count));
    }
}

Outcome Lane::run(const Door& door, const Exchange& exchange) {
    Outcome outcome;
    const bool leaves = exchange.after == After::close || exchange.after == After::reset;
    const std::size_t logged = leaves ? read_file(door.log).size() : 0;
    Socket client = connect_to_port(exchange.after == After::stall ? door.impatient_port : door.port);
    const std::uint16_t port = own_port(client);
    exchanges.emplace_back(port, &exchange);
    if (client.valid()) speak(client, exchange, outcome);
    // Who is gone does not see when the server is through.
    if (leaves) wait_for_line(door, port, logged);
    members.serve();
    outcome.messages = members.take();
    return outcome;
}

void Lane::wait_for_line(const Door& door, std::uint16_t port, std::size_t from) {
    const std::string begin = std::to_string(port) + " ";
    (void)wait_until(
        [&] {
            members.serve();
            const std::string log = read_file(door.log).substr(from);
            return log.starts_with(begin) || log.find("\n" + begin) != std::string::npos;
        },
        patience, "the log's line of a client that has left");
}

}  // namespace cb::test
