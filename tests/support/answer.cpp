#include "answer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace cb::test {
namespace {

const char* reason_of(int code) {
    static constexpr std::array<std::pair<int, const char*>, 14> reasons{{{101, "Switching Protocols"},
                                                                          {103, "Early Hints"},
                                                                          {200, "OK"},
                                                                          {204, "No Content"},
                                                                          {302, "Found"},
                                                                          {304, "Not Modified"},
                                                                          {400, "Bad Request"},
                                                                          {404, "Not Found"},
                                                                          {429, "Too Many Requests"},
                                                                          {500, "Internal Server Error"},
                                                                          {501, "Not Implemented"},
                                                                          {502, "Bad Gateway"},
                                                                          {503, "Service Unavailable"},
                                                                          {504, "Gateway Timeout"}}};
    const auto* const found =
        std::find_if(reasons.begin(), reasons.end(), [code](const auto& entry) { return entry.first == code; });
    return found != reasons.end() ? found->second : "Status";
}

std::string hexadecimal(std::size_t number) {
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
    return {digits.data(), end};
}

std::string status_line(int code) {
    return "HTTP/1.1 " + std::to_string(code) + " " + reason_of(code) + "\r\n";
}

}  // namespace

Reply Reply::upgrade(std::string protocol) {
    Reply reply = status(101);
    reply.header("Upgrade", std::move(protocol)).header("Connection", "Upgrade");
    reply.echo_ = true;
    return reply;
}

Reply Reply::raw(std::string bytes, Ending ending) {
    Reply reply;
    reply.raw_ = std::move(bytes);
    reply.ending_ = ending;
    return reply;
}

bool Answer::give() {
    if (reply_.when_released_ && !sleep(std::nullopt)) return false;
    if (reply_.delay_ > 0ms && !sleep(reply_.delay_)) return false;
    if (reply_.raw_) return connection_.send(*reply_.raw_) && end_early();
    if (reply_.interim_ && !connection_.send(status_line(*reply_.interim_) + "X-Interim: yes\r\n\r\n")) return false;
    if (reply_.echo_) {
        if (connection_.send(head())) echo();
        return false;
    }
    return send_body();
}

/// False if there is nobody left to answer to.
bool Answer::sleep(std::optional<milliseconds> pause) {
    if (!pause) return connection_.wait(context_.released) == Connection::Woken::by_condition;
    return connection_.wait({}, Connection::Clock::now() + *pause) == Connection::Woken::by_deadline;
}

bool Answer::send_body() {
    const std::size_t size = has_body() ? reply_.body_->size() : 0;
    const std::size_t end = std::min(reply_.cut_at_.value_or(size), size);
    std::string wire = head();
    // Not after a long body has been put together, or the backend would be slow to its first byte.
    constexpr std::size_t long_body = 1'000'000;
    if (size > long_body && !connection_.send(std::exchange(wire, {}))) return false;
    for (std::size_t at = 0; at < end;) {
        const bool pause_here = reply_.pause_at_ == at;
        if (pause_here || reply_.drip_size_ > 0) {
            if (!connection_.send(std::exchange(wire, {}))) return false;
            if (pause_here && !sleep(reply_.pause_)) return false;
            if (reply_.drip_size_ > 0 && !sleep(reply_.drip_pause_)) return false;
        }
        std::size_t next = end;
        if (reply_.drip_size_ > 0) next = std::min(next, at + reply_.drip_size_);
        if (reply_.pause_at_ > at) next = std::min(next, *reply_.pause_at_);
        wire += framed(at, next, next < end || !reply_.cut_at_ || !reply_.cut_in_chunk_);
        at = next;
    }
    if (reply_.cut_at_) return connection_.send(wire) && end_early();

    if (reply_.framing_ == Reply::Framing::chunked && has_body()) wire += "0\r\n\r\n";
    send_last(std::move(wire));
    const bool one_shot =
        request_.version == "HTTP/1.0" && !Headers::same(request_.headers.get("Connection"), "keep-alive");
    return !one_shot && !Headers::same(request_.headers.get("Connection"), "close") && !reply_.closing_ &&
           !reply_.closing_silently_ && reply_.framing_ != Reply::Framing::until_close;
}

/// The answer counts as over just before the peer can know that it is: whoever sees the end of an answer and sends the
/// next request at once must not be counted as two at once.
void Answer::send_last(std::string wire) {
    const std::size_t last = wire.size() > 4096 ? wire.size() - 1 : 0;
    if (last > 0 && !connection_.send(std::string_view(wire).substr(0, last))) return;
    context_.before_last_byte();
    connection_.send(std::string_view(wire).substr(last));
}

bool Answer::end_early() {
    if (reply_.ending_ == Ending::silence) sleep(std::nullopt);
    context_.before_last_byte();
    if (reply_.ending_ == Ending::reset) connection_.reset();
    return false;
}

void Answer::echo() {
    std::array<char, 4096> piece{};
    for (;;) {
        const std::size_t count = connection_.receive(piece.data(), piece.size());
        if (count == 0 || !connection_.send({piece.data(), count})) return;
    }
}

std::string Answer::head() const {
    std::string text = status_line(reply_.code_) + "X-Backend: " + context_.backend_name + "\r\n";
    for (const auto& [name, value] : reply_.headers_)
        text += name + ": " + value + "\r\n";
    const bool bodiless = reply_.code_ < 200 || reply_.code_ == 204 || reply_.code_ == 304;
    if (!bodiless && reply_.framing_ == Reply::Framing::chunked) text += "Transfer-Encoding: chunked\r\n";
    if (!bodiless && reply_.framing_ == Reply::Framing::length && !reply_.headers_.has("Content-Length"))
        text += "Content-Length: " + std::to_string(reply_.body_->size()) + "\r\n";
    if (reply_.closing_ || reply_.framing_ == Reply::Framing::until_close) text += "Connection: close\r\n";
    return text + "\r\n";
}

bool Answer::has_body() const {
    return request_.method != "HEAD" && reply_.code_ >= 200 && reply_.code_ != 204 && reply_.code_ != 304;
}

/// A chunk that is not `whole` announces the rest of the body and stops before it.
std::string Answer::framed(std::size_t from, std::size_t to, bool whole) const {
    std::string bytes = reply_.body_->substr(from, to - from);
    if (reply_.framing_ != Reply::Framing::chunked) return bytes;
    if (!whole) return hexadecimal(reply_.body_->size() - from) + "\r\n" + bytes;
    return hexadecimal(bytes.size()) + "\r\n" + bytes + "\r\n";
}

}  // namespace cb::test
