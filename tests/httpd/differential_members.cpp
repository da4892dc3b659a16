#include "differential_members.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <functional>
#include <optional>
#include <system_error>

namespace cb::test {
namespace {

enum class Progress { unfinished, whole, nonsense };

/// The value of a field of the head; nullopt if it has none, both joined if there are two.
std::optional<std::string> field(std::string_view head, std::string_view name) {
    std::optional<std::string> found;
    for (auto at = head.find("\r\n"); at != std::string_view::npos; at = head.find("\r\n", at + 2)) {
        const std::string_view line = head.substr(at + 2, head.find("\r\n", at + 2) - at - 2);
        const auto is_same = [](char a, char b) { return std::tolower(a) == std::tolower(b); };
        if (line.size() <= name.size() || line[name.size()] != ':' ||
            !std::equal(name.begin(), name.end(), line.begin(), is_same))
            continue;
        std::string_view value = line.substr(name.size() + 1);
        value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
        found = found ? *found + ", " + std::string(value) : std::string(value);
    }
    return found;
}

bool is_number(std::string_view text, int base, std::size_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    return !text.empty() && error == std::errc{} && end == text.data() + text.size();
}

/// `used` is how much of `bytes` the body takes.
Progress read_chunks(std::string_view bytes, std::string& body, std::size_t& used) {
    for (used = 0;;) {
        const auto line_end = bytes.find("\r\n", used);
        if (line_end == std::string_view::npos) return Progress::unfinished;
        std::size_t size = 0;
        if (!is_number(bytes.substr(used, line_end - used), 16, size)) return Progress::nonsense;
        used = line_end + 2;
        if (size == 0) break;
        body += bytes.substr(used, size);
        if (bytes.size() - used < size + 2) return Progress::unfinished;
        if (bytes.substr(used + size, 2) != "\r\n") return Progress::nonsense;
        used += size + 2;
    }
    if (bytes.size() - used < 2) return Progress::unfinished;
    if (bytes.substr(used, 2) != "\r\n") return Progress::nonsense;  // httpd forwards no trailers
    used += 2;
    return Progress::whole;
}

Progress read_body(std::string_view bytes, Message& message, std::size_t& used) {
    const auto length = field(message.head, "Content-Length");
    const auto coding = field(message.head, "Transfer-Encoding");
    used = 0;
    if (coding) {
        message.is_chunked = true;
        if (*coding != "chunked" || length) return Progress::nonsense;
        return read_chunks(bytes, message.body, used);
    }
    if (length && !is_number(*length, 10, used)) return Progress::nonsense;
    message.body = bytes.substr(0, used);
    return bytes.size() >= used ? Progress::whole : Progress::unfinished;
}

/// The first message of what a connection has sent; takes it away if it is whole.
Progress read_message(std::string& bytes, Message& message) {
    const auto head_end = bytes.find("\r\n\r\n");
    if (head_end == std::string::npos) return Progress::unfinished;
    message.head = bytes.substr(0, head_end + 4);
    std::size_t used = 0;
    const Progress progress = read_body(std::string_view(bytes).substr(head_end + 4), message, used);
    if (progress == Progress::whole) {
        message.is_whole = true;
        bytes.erase(0, head_end + 4 + used);
    }
    return progress;
}

void hide(std::string& text, std::string_view part) {
    const auto at = text.find(part);
    if (at != std::string::npos) text.replace(at, part.size(), "(member)");
}

}  // namespace

std::string Message::text() const {
    return std::string(is_whole ? "" : "(unfinished) ") + head + body;
}

RecordingMembers::RecordingMembers(const std::vector<Manner>& manners) : events_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (!events_.valid()) throw std::system_error(errno, std::generic_category(), "epoll");
    for (const Manner manner : manners) {
        Listener& listener = *listeners_.emplace_back(std::make_unique<Listener>());
        listener.manner = manner;
        if (manner == Manner::refuses) continue;
        listener.socket = listen_on_port(listener.port.number());
        watch(listener.socket);
    }
}

std::string RecordingMembers::url(unsigned member) const {
    return "http://127.0.0.1:" + std::to_string(listeners_.at(member)->port.number());
}

void RecordingMembers::watch(const Socket& socket) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = socket.fd();
    if (::epoll_ctl(events_.fd(), EPOLL_CTL_ADD, socket.fd(), &event) != 0)
        throw std::system_error(errno, std::generic_category(), "epoll_ctl");
}

void RecordingMembers::serve() {
    for (;;) {
        epoll_event ready[16];
        const int count = ::epoll_wait(events_.fd(), ready, 16, 0);
        if (count <= 0) return;
        for (int i = 0; i < count; ++i) {
            const int fd = ready[i].data.fd;
            const auto peer = peers_.find(fd);
            if (peer != peers_.end()) {
                if (!read_from(peer->second)) peers_.erase(peer);
                continue;
            }
            for (unsigned member = 0; member < listeners_.size(); ++member) {
                if (listeners_[member]->socket.fd() == fd) accept_on(member);
            }
        }
    }
}

void RecordingMembers::accept_on(unsigned member) {
    Socket socket(::accept4(listeners_[member]->socket.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.valid()) return;
    // What is sent in two pieces shall not wait for the peer's delayed ACK of the first.
    const int on = 1;
    ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    watch(socket);
    const int fd = socket.fd();
    peers_.emplace(fd, Peer{member, std::move(socket), {}});
}

bool RecordingMembers::read_from(Peer& peer) {
    char piece[64 * 1024];
    const ssize_t count = ::recv(peer.socket.fd(), piece, sizeof piece, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (count <= 0) {
        keep_unfinished(peer);
        return false;
    }
    peer.bytes.append(piece, static_cast<std::size_t>(count));
    while (!peer.bytes.empty()) {
        Message message;
        message.member = peer.member;
        const Progress progress = read_message(peer.bytes, message);
        const bool expects = !message.head.empty() && field(message.head, "Expect").has_value();
        if (expects && !peer.was_told_to_continue) {
            send_all(peer.socket.fd(), "HTTP/1.1 100 Continue\r\n\r\n");
            peer.was_told_to_continue = true;
        }
        if (progress == Progress::unfinished) return true;
        peer.was_told_to_continue = false;
        if (progress == Progress::nonsense) {
            keep_unfinished(peer);
            send_all(peer.socket.fd(), "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
            return false;
        }
        const bool goes_on = answer(peer, message);
        hide(message.head, url(peer.member).substr(7));
        whole_.push_back(std::move(message));
        if (!goes_on) {
            if (listeners_[peer.member]->manner == Manner::resets) peer.socket.reset();
            return false;
        }
    }
    return true;
}

bool RecordingMembers::answer(const Peer& peer, const Message& message) {
    const Manner manner = listeners_[peer.member]->manner;
    if (manner == Manner::resets) return false;
    const auto target_at = std::min(message.head.find(' ') + 1, message.head.size());
    const std::string target = message.head.substr(target_at, message.head.find(' ', target_at) - target_at);
    const std::string body = message.method() + " " + target + " " + std::to_string(message.body.size()) + " " +
                             std::to_string(std::hash<std::string>{}(message.body)) + "\n";
    const bool is_trip = peer.member == 0 && target == trip;
    // Nothing of a failed answer may be left in another member's.
    const char* const status = is_trip ? "599 Trip\r\n"
                               : manner == Manner::is_unavailable
                                   ? "503 Unavailable\r\nRetry-After: 9\r\nSet-Cookie: failed=1\r\nETag: \"f\"\r\n"
                                     "Content-Language: xx\r\nVary: *\r\nConnection: close\r\n"
                                   : "200 OK\r\n";
    return send_all(peer.socket.fd(),
                    std::string("HTTP/1.1 ") + status +
                        "Content-Type: text/plain\r\nX-Member: yes\r\nContent-Length: " + std::to_string(body.size()) +
                        "\r\n\r\n" + (message.method() == "HEAD" ? "" : body)) &&
           (is_trip || manner == Manner::answers);
}

void RecordingMembers::keep_unfinished(const Peer& peer) {
    if (peer.bytes.empty()) return;
    Message message;
    message.member = peer.member;
    std::string bytes = peer.bytes;
    if (read_message(bytes, message) == Progress::nonsense || message.head.empty()) {
        message.head = peer.bytes;
        message.body.clear();
    }
    message.is_whole = false;
    hide(message.head, url(peer.member).substr(7));
    unfinished_.push_back(std::move(message));
}

std::vector<Message> RecordingMembers::take() {
    for (auto it = peers_.begin(); it != peers_.end();) {
        keep_unfinished(it->second);
        it = it->second.bytes.empty() ? std::next(it) : peers_.erase(it);
    }
    std::vector<Message> all = std::move(whole_);
    all.insert(all.end(), unfinished_.begin(), unfinished_.end());
    whole_.clear();
    unfinished_.clear();
    return all;
}

}  // namespace cb::test
