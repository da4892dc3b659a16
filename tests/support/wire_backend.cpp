#include "wire_backend.hpp"

namespace cb::test {

bool Wire::fill() {
    char piece[16384];
    const std::size_t count = connection_.receive(piece, sizeof piece);
    connection_.become_busy();
    buffer_.append(piece, count);
    return count > 0;
}

std::optional<std::string> Wire::take(std::size_t count) {
    while (buffer_.size() < count) {
        if (!fill()) return {};
    }
    std::string bytes = buffer_.substr(0, count);
    buffer_.erase(0, count);
    taken_ += bytes;
    return bytes;
}

std::optional<std::string> Wire::take_through(char last) {
    std::size_t at = 0;
    while ((at = buffer_.find(last)) == std::string::npos) {
        if (!fill()) return {};
    }
    return take(at + 1);
}

std::string cgi_head(int status, const std::string& fields) {
    const std::string line = status == 200 ? "" : "Status: " + std::to_string(status) + " Whatever\r\n";
    return line + "Content-Type: text/plain\r\n" + fields + "\r\n";
}

std::string in_frames(const std::string& body, std::size_t most,
                      const std::function<std::string(const std::string&)>& frame) {
    std::string framed;
    for (std::size_t at = 0; at < body.size(); at += most)
        framed += frame(body.substr(at, most));
    return framed;
}

WireBackend::WireBackend(std::string name, Dialect dialect, bool on_unix_socket)
    : name_(std::move(name)),
      dialect_(std::move(dialect)),
      folder_(on_unix_socket ? std::optional<TempDir>(std::in_place, "cb-wire") : std::nullopt),
      server_([this](Connection& connection) { serve(connection); },
              folder_ ? folder_->path() / "socket" : std::filesystem::path()) {}

std::string WireBackend::member() const {
    return folder_ ? "unix:" + server_.unix_socket().string() + "|" + dialect_.scheme + "://" + name_
                   : dialect_.scheme + "://127.0.0.1:" + std::to_string(server_.port());
}

void WireBackend::answer(const WireReply& reply) {
    const std::scoped_lock lock(mutex_);
    reply_ = reply;
}

std::string WireBackend::last_request() {
    const std::scoped_lock lock(mutex_);
    return last_request_;
}

void WireBackend::release() {
    ++releases_;
    server_.wake_all();
}

bool WireBackend::wait_for_hanging(unsigned count) const {
    return wait_until([&] { return hanging_ >= count; }, patience, "requests that hang in " + name_);
}

void WireBackend::serve(Connection& connection) {
    Wire wire(connection);
    for (;;) {
        if (!connection.become_idle() || !dialect_.read_request(wire)) return;
        WireReply reply;
        {
            const std::scoped_lock lock(mutex_);
            last_request_ = wire.taken();
            reply = reply_;
        }
        ++requests_;
        if (!give(wire, connection, reply) || !dialect_.keeps_connection) return;
    }
}

bool WireBackend::give(Wire& wire, Connection& connection, const WireReply& reply) {
    const std::string fields = "X-Backend: " + name_ + "\r\n" + reply.more_fields;
    switch (reply.turn) {
        case WireReply::Turn::whole:
            if (reply.pause > 0ms) {
                const std::size_t half = reply.body.size() / 2;
                if (!wire.send(dialect_.head(reply.code, fields, reply.body.size()) +
                               dialect_.body(reply.body.substr(0, half))) ||
                    connection.wait({}, Connection::Clock::now() + reply.pause) != Connection::Woken::by_deadline)
                    return false;
                return wire.send(dialect_.body(reply.body.substr(half)) + dialect_.end);
            }
            if (reply.ending != Ending::silence) connection.become_nearly_idle();
            if (!wire.send(dialect_.head(reply.code, fields, reply.body.size()) + dialect_.body(reply.body) +
                           dialect_.end))
                return false;
            if (reply.ending != Ending::silence) return true;
            break;
        case WireReply::Turn::cut_after_head:
            wire.send(dialect_.head(reply.code, fields, reply.body.size()));
            break;
        case WireReply::Turn::cut_in_body:
            wire.send(dialect_.head(reply.code, fields, reply.body.size()) +
                      dialect_.body(reply.body.substr(0, reply.body.size() / 2)));
            break;
        case WireReply::Turn::garbage: {
            const std::string noise = "this is nothing that anybody could read\r\n\r\n";
            wire.send(dialect_.has_cgi_head ? dialect_.body(noise) + dialect_.end : noise);
            break;
        }
        case WireReply::Turn::nothing:
            break;
    }
    end(connection, reply.ending);
    return false;
}

void WireBackend::end(Connection& connection, Ending ending) {
    if (ending == Ending::reset) connection.reset();
    if (ending != Ending::silence) return;
    const unsigned before = releases_;
    ++hanging_;
    connection.wait([&] { return releases_ != before; });
    --hanging_;
}

}  // namespace cb::test
