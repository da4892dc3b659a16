// A scripted backend for the protocols that are not HTTP: how each looks on the wire is a Dialect (fcgi.hpp, scgi.hpp,
// uwsgi.hpp, ajp.hpp), what it does with a request is a WireReply, the same for all.
//
//     WireBackend app("app", fcgi());
//     app.answer(WireReply::status(503));
//     app.answer(WireReply::cut(Ending::reset));      // headers, half of the body, and a RST
//
// Thread safety: everything may be called from any thread, except that the destructor and `refuse` must not be called
// on a connection's thread.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "connection_server.hpp"
#include "http_message.hpp"
#include "temp_dir.hpp"

namespace cb::test {

/// The bytes of a connection, as many as one wants.
class Wire {
  public:
    explicit Wire(Connection& connection) : connection_(connection) {}
    /// None if the connection ends before.
    [[nodiscard]] std::optional<std::string> take(std::size_t count);
    /// Up to and with that character.
    [[nodiscard]] std::optional<std::string> take_through(char last);
    bool send(std::string_view bytes) { return connection_.send(bytes); }
    /// Bytes taken since the last time.
    [[nodiscard]] std::string taken() { return std::exchange(taken_, {}); }

  private:
    bool fill();

    Connection& connection_;
    std::string buffer_;
    std::string taken_;
};

/// How a protocol looks on the wire.
struct Dialect {
    std::string scheme;
    std::function<bool(Wire&)> read_request;  ///< one request with its body; false at the end of the connection
    std::function<std::string(int status, const std::string& fields, std::size_t length)> head;
    std::function<std::string(const std::string& piece)> body;
    std::string end;                ///< of an answer
    bool keeps_connection = false;  ///< else the end of the connection ends the answer
    bool has_cgi_head = false;      ///< its garbage has to come in a frame
};

/// The head of a CGI script's answer; like PHP it says no status when that is 200.
[[nodiscard]] std::string cgi_head(int status, const std::string& fields);

/// Each piece of at most that many bytes in a frame of its own.
[[nodiscard]] std::string in_frames(const std::string& body, std::size_t most,
                                    const std::function<std::string(const std::string&)>& frame);

struct WireReply {
    enum class Turn { whole, cut_after_head, cut_in_body, nothing, garbage };

    static WireReply status(int code, std::string body = "what it has to say") {
        return {Turn::whole, code, std::move(body), Ending::fin, {}};
    }
    /// The whole answer, but the connection stays open until `release`.
    static WireReply lingering() { return {Turn::whole, 200, "all there is", Ending::silence, {}}; }
    /// Reads the request, says not a byte, and ends that way; `silence` is a hang.
    static WireReply nothing(Ending ending) { return {Turn::nothing, 200, "", ending, {}}; }
    static WireReply garbage() { return {Turn::garbage, 200, "", Ending::fin, {}}; }
    /// Headers and not a byte of the body that should follow, and that end.
    static WireReply head_only(Ending ending) {
        return {Turn::cut_after_head, 200, std::string(2000, 'x'), ending, {}};
    }
    /// Headers, half of the body, and that end.
    static WireReply cut(Ending ending) { return {Turn::cut_in_body, 200, std::string(2000, 'x'), ending, {}}; }

    /// Waits in the middle of its body.
    WireReply& pausing(milliseconds span) { return pause = span, *this; }

    Turn turn = Turn::whole;
    int code = 200;
    std::string body{};
    Ending ending = Ending::fin;
    std::string more_fields{};  // "Name: value\r\n", in the dialects with a CGI head
    milliseconds pause{0};      // of a whole answer
};

class WireBackend {
  public:
    /// On a TCP port, or on a unix domain socket in a folder of its own.
    WireBackend(std::string name, Dialect dialect, bool on_unix_socket = false);

    [[nodiscard]] const std::string& name() const { return name_; }
    /// For BalancerMember and ProxyPass: `fcgi://127.0.0.1:PORT` or `unix:PATH|fcgi://NAME`.
    [[nodiscard]] std::string member() const;
    [[nodiscard]] const Dialect& dialect() const { return dialect_; }

    void answer(const WireReply& reply);
    /// Lets go who hangs; they are closed.
    void release();
    void refuse() { server_.refuse(); }
    void accept_again() { server_.accept_again(); }
    void reset_connections(bool on = true) { server_.reset_on_accept(on); }

    [[nodiscard]] unsigned requests() const { return requests_; }
    /// The last request as it was on the wire, its body with it.
    [[nodiscard]] std::string last_request();
    [[nodiscard]] unsigned hanging() const { return hanging_; }
    [[nodiscard]] bool wait_for_hanging(unsigned count) const;

  private:
    void serve(Connection& connection);
    bool give(Wire& wire, Connection& connection, const WireReply& reply);
    void end(Connection& connection, Ending ending);

    const std::string name_;
    const Dialect dialect_;
    const std::optional<TempDir> folder_;
    std::mutex mutex_;  // guards the next two
    WireReply reply_ = WireReply::status(200);
    std::string last_request_;
    std::atomic<unsigned> requests_{0};
    std::atomic<unsigned> hanging_{0};
    std::atomic<unsigned> releases_{0};
    ConnectionServer server_;  // last: its threads use all of the above
};

}  // namespace cb::test
