#include "connection_server.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <iterator>
#include <system_error>

namespace cb::test {
namespace {

Socket new_event() {
    const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    return Socket(fd);
}

void ring(const Socket& event) {
    ::eventfd_write(event.fd(), 1);
}

void quieten(const Socket& event) {
    eventfd_t ignored = 0;
    ::eventfd_read(event.fd(), &ignored);
}

}  // namespace

Connection::Connection(ConnectionServer& server, Socket socket, unsigned number)
    : server_(server), number_(number), socket_(std::move(socket)), wake_(new_event()) {}

std::size_t Connection::receive(char* into, std::size_t size) {
    for (;;) {
        const ssize_t count = ::recv(socket_.fd(), into, size, 0);
        if (count < 0 && errno == EINTR) continue;
        if (ending_) return 0;
        return count > 0 ? static_cast<std::size_t>(count) : 0;
    }
}

Connection::Woken Connection::wait(const std::function<bool()>& condition, std::optional<Clock::time_point> deadline) {
    for (;;) {
        quieten(wake_);
        if (server_.stopping_) return Woken::by_stop;
        if (condition && condition()) return Woken::by_condition;
        int timeout = -1;
        if (deadline) {
            const auto left = std::chrono::ceil<milliseconds>(*deadline - Clock::now()).count();
            if (left <= 0) return Woken::by_deadline;
            timeout = static_cast<int>(left);
        }
        pollfd events[2] = {{socket_.fd(), POLLRDHUP, 0}, {wake_.fd(), POLLIN, 0}};
        ::poll(events, 2, timeout);
        if ((events[0].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0)
            return server_.stopping_ ? Woken::by_stop : Woken::by_peer_leaving;
    }
}

bool Connection::become_idle() {
    const std::scoped_lock lock(server_.mutex_);  // against a refuse() that is closing the idle ones right now
    if (server_.refusing_ || server_.resetting_ || server_.stopping_ || ending_) return false;
    state_ = State::idle;
    return true;
}

bool Connection::end_if_idle(bool with_reset) {
    const std::scoped_lock lock(closing_);
    if (state_ != State::idle || ending_ || !socket_.valid()) return false;
    ending_ = true;
    if (with_reset) {
        const linger at_once{1, 0};
        ::setsockopt(socket_.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    // With the sending half, too, a FIN would leave before the RST, which its thread's close() will send.
    ::shutdown(socket_.fd(), with_reset ? SHUT_RD : SHUT_RDWR);
    return true;
}

bool Connection::is_working() {
    const std::scoped_lock lock(closing_);
    if (state_ != State::busy || !socket_.valid()) return false;
    pollfd gone{socket_.fd(), POLLRDHUP, 0};
    return ::poll(&gone, 1, 0) == 0;
}

void Connection::close() {
    const std::scoped_lock lock(closing_);
    socket_.close();
}

void Connection::reset() {
    const std::scoped_lock lock(closing_);
    socket_.reset();
}

ConnectionServer::ConnectionServer(Serve serve, std::filesystem::path unix_socket, unsigned most_connections)
    : serve_(std::move(serve)),
      unix_socket_(std::move(unix_socket)),
      most_connections_(most_connections),
      wake_acceptor_(new_event()) {
    start_accepting();
}

void ConnectionServer::start_accepting() {
    listener_ = unix_socket_.empty() ? listen_on_port(port()) : listen_on_path(unix_socket_);
    // A connection that goes away between poll and accept must not leave the acceptor blocked.
    ::fcntl(listener_.fd(), F_SETFL, O_NONBLOCK);
    refusing_ = false;
    acceptor_ = std::thread([this] { accept_loop(); });
}

void ConnectionServer::stop_accepting() {
    {
        const std::scoped_lock lock(mutex_);
        refusing_ = true;
    }
    ring(wake_acceptor_);
    if (acceptor_.joinable()) acceptor_.join();
    quieten(wake_acceptor_);
    listener_.close();
}

void ConnectionServer::refuse() {
    const std::scoped_lock lock(listening_);
    stop_accepting();
    end_idle(false);
}

void ConnectionServer::accept_again() {
    const std::scoped_lock lock(listening_);
    if (refusing_ && !stopping_) start_accepting();
}

void ConnectionServer::reset_on_accept(bool on) {
    resetting_ = on;
    if (on) end_idle(true);
}

void ConnectionServer::accept_loop() {
    while (!refusing_) {
        forget_finished_connections();
        const bool room = open_connections() < most_connections_;
        pollfd events[2] = {{wake_acceptor_.fd(), POLLIN, 0}, {listener_.fd(), POLLIN, 0}};
        ::poll(events, room ? 2 : 1, room ? -1 : 5);
        if (refusing_ || !room || (events[1].revents & POLLIN) == 0) continue;
        Socket socket(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!socket.valid()) continue;
        const unsigned number = ++accepted_;
        // An answer comes in several writes; none of them shall wait for the peer's delayed ACK of the one before.
        const int on = 1;
        ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // not on a unix domain socket: no matter
        if (resetting_) {
            socket.reset();
            continue;
        }
        const std::scoped_lock lock(mutex_);
        Connection& connection =
            *connections_.emplace_back(std::make_unique<Connection>(*this, std::move(socket), number));
        connection.thread_ = std::thread([this, &connection] {
            try {
                serve_(connection);
            } catch (const std::exception& error) {
                std::fprintf(stderr, "a connection's thread gave up: %s\n", error.what());
            }
            connection.close();
            connection.finished_ = true;
        });
    }
}

void ConnectionServer::forget_finished_connections() {
    std::list<std::unique_ptr<Connection>> finished;
    {
        const std::scoped_lock lock(mutex_);
        for (auto it = connections_.begin(); it != connections_.end();) {
            const auto next = std::next(it);
            if ((*it)->finished_) finished.splice(finished.end(), connections_, it);
            it = next;
        }
    }
    for (const auto& connection : finished)
        connection->thread_.join();
}

unsigned ConnectionServer::open_connections() {
    const std::scoped_lock lock(mutex_);
    return static_cast<unsigned>(
        std::count_if(connections_.begin(), connections_.end(), [](const auto& c) { return !c->finished_; }));
}

unsigned ConnectionServer::working_connections() {
    const std::scoped_lock lock(mutex_);
    return static_cast<unsigned>(
        std::count_if(connections_.begin(), connections_.end(), [](const auto& c) { return c->is_working(); }));
}

unsigned ConnectionServer::end_idle(bool with_reset) {
    const auto none = [this](const auto& property) {
        const std::scoped_lock lock(mutex_);
        return std::none_of(connections_.begin(), connections_.end(),
                            [&](const auto& c) { return !c->finished_ && property(*c); });
    };
    // A client may have its answer before the thread that sent the last byte gets to say "idle".
    (void)wait_until(
        [&] { return none([](const Connection& c) { return c.state_ == Connection::State::nearly_idle; }); }, patience,
        "the last byte of an answer to leave, before idle connections are closed");
    unsigned ended = 0;
    {
        const std::scoped_lock lock(mutex_);
        for (const auto& connection : connections_)
            ended += connection->end_if_idle(with_reset) ? 1U : 0U;
    }
    (void)wait_until([&] { return none([](const Connection& c) { return c.ending_.load(); }); }, patience,
                     "idle connections to be closed");
    return ended;
}

void ConnectionServer::wake_all() {
    const std::scoped_lock lock(mutex_);
    for (const auto& connection : connections_)
        ring(connection->wake_);
}

void ConnectionServer::stop() {
    const std::scoped_lock lock(listening_);
    stopping_ = true;
    stop_accepting();
    std::list<std::unique_ptr<Connection>> last;
    {
        const std::scoped_lock connections(mutex_);
        last.swap(connections_);
    }
    for (const auto& connection : last) {
        const std::scoped_lock closing(connection->closing_);
        if (connection->socket_.valid()) ::shutdown(connection->socket_.fd(), SHUT_RDWR);
        ring(connection->wake_);
    }
    for (const auto& connection : last)
        connection->thread_.join();
    if (!unix_socket_.empty()) ::unlink(unix_socket_.c_str());
}

}  // namespace cb::test
