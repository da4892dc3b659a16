// A listener in the test's own process that serves each connection on a thread of its own, whatever the protocol.
// `Backend` puts HTTP on top of it; a test that needs AJP, FCGI or the like brings its own function.
//
// Thread safety: ConnectionServer may be used from any thread, except that its destructor, `stop` and `refuse` must not
// be called on a connection's thread. A Connection belongs to its thread; what the server does to it from outside is
// locked.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "net.hpp"

namespace cb::test {

class ConnectionServer;

/// One accepted connection, as the function that serves it sees it. It is closed when that function returns.
class Connection {
  public:
    using Clock = std::chrono::steady_clock;
    enum class Woken { by_condition, by_deadline, by_peer_leaving, by_stop };

    Connection(ConnectionServer& server, Socket socket, unsigned number);

    /// 1 for the first connection the server accepted.
    [[nodiscard]] unsigned number() const { return number_; }

    /// Bytes read, 0 at the end (the peer closed or the server stops).
    std::size_t receive(char* into, std::size_t size);
    /// False when the peer is gone.
    bool send(std::string_view bytes) { return send_all(socket_.fd(), bytes); }
    /// Sleeps until the condition holds (asked at the start and after each ConnectionServer::wake_all), the deadline
    /// passes, the peer leaves or the server stops.
    Woken wait(const std::function<bool()>& condition, std::optional<Clock::time_point> deadline = {});

    /// Says that this connection now waits for a request, so that `close_idle` may close it. False: close it instead.
    [[nodiscard]] bool become_idle();
    void become_busy() { state_ = State::busy; }
    /// What is left is the last byte of an answer; `close_idle` waits until that is over.
    void become_nearly_idle() { state_ = State::nearly_idle; }

    void close();
    void reset();

  private:
    friend class ConnectionServer;
    enum class State { idle, busy, nearly_idle };

    bool end_if_idle(bool with_reset);
    [[nodiscard]] bool is_working();

    ConnectionServer& server_;
    const unsigned number_;
    std::mutex closing_;  // guards the closing of socket_ against the server's shutdown of it
    Socket socket_;
    Socket wake_;  // an eventfd
    std::atomic<State> state_{State::busy};
    std::atomic<bool> ending_{false};  // the server has shut it down: what still comes is not read
    std::atomic<bool> finished_{false};
    std::thread thread_;
};

class ConnectionServer {
  public:
    using Serve = std::function<void(Connection&)>;

    /// Listens at once, on a TCP port of its own, or on the unix domain socket of that path. Connections beyond
    /// `most_connections` wait in the kernel's queue.
    explicit ConnectionServer(Serve serve, std::filesystem::path unix_socket = {}, unsigned most_connections = 256);
    ~ConnectionServer() { stop(); }

    ConnectionServer(const ConnectionServer&) = delete;
    ConnectionServer& operator=(const ConnectionServer&) = delete;

    /// The TCP port, the same for life. (Reserved, but without a listener, if this serves a unix domain socket.)
    [[nodiscard]] std::uint16_t port() const { return port_.number(); }
    [[nodiscard]] const std::filesystem::path& unix_socket() const { return unix_socket_; }

    /// Closes the listener and all idle connections; connections at work are closed after their answer. When this
    /// returns, connecting is refused.
    void refuse();
    void accept_again();
    [[nodiscard]] bool refusing() const { return refusing_; }

    /// From now on a connection gets a RST at once, before anything is read; idle ones get theirs now.
    void reset_on_accept(bool on);

    /// Closes every connection that waits for a request, without a word. Returns how many, when it is done.
    unsigned close_idle() { return end_idle(false); }
    unsigned reset_idle() { return end_idle(true); }

    /// Lets every Connection::wait ask its condition again.
    void wake_all();

    /// Ends listener, connections and threads; final.
    void stop();
    [[nodiscard]] bool stopping() const { return stopping_; }

    [[nodiscard]] unsigned accepted() const { return accepted_; }
    [[nodiscard]] unsigned open_connections();
    /// Those that do not wait for a request, and whose peer is still there. (A peer that leaves, or is killed, counts
    /// no longer from then on, though the connection's thread may see it later.)
    [[nodiscard]] unsigned working_connections();

  private:
    friend class Connection;

    void start_accepting();
    void stop_accepting();
    void accept_loop();
    void forget_finished_connections();
    unsigned end_idle(bool with_reset);

    const Serve serve_;
    const ReservedPort port_;
    const std::filesystem::path unix_socket_;
    const unsigned most_connections_;

    std::mutex listening_;  // serialises refuse, accept_again and stop
    Socket listener_;
    Socket wake_acceptor_;
    std::thread acceptor_;

    std::mutex mutex_;  // guards connections_
    std::list<std::unique_ptr<Connection>> connections_;
    std::atomic<unsigned> accepted_{0};
    std::atomic<bool> refusing_{true};
    std::atomic<bool> resetting_{false};
    std::atomic<bool> stopping_{false};
};

}  // namespace cb::test
