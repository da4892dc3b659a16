#include "request_reader.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace cb::test {
namespace {

constexpr std::size_t most_line = 64 * 1024;

std::optional<std::size_t> number(std::string_view text, int base) {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || end == text.data()) return std::nullopt;
    return value;
}

}  // namespace

bool RequestReader::fill() {
    char piece[16 * 1024];
    const std::size_t count = connection_.receive(piece, sizeof piece);
    buffer_.append(piece, count);
    return count > 0;
}

std::optional<std::string> RequestReader::read_line() {
    auto end = buffer_.find('\n');
    while (end == std::string::npos) {
        if (buffer_.size() > most_line || !fill()) return std::nullopt;
        end = buffer_.find('\n');
    }
    std::string line = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return line;
}

std::optional<Request> RequestReader::read_head() {
    const auto first = read_line();
    if (!first) return std::nullopt;
    const auto method_end = first->find(' ');
    const auto target_end = first->rfind(' ');
    if (method_end == std::string::npos || target_end == method_end) return std::nullopt;

    Request request;
    request.method = first->substr(0, method_end);
    request.target = first->substr(method_end + 1, target_end - method_end - 1);
    request.path = request.target.substr(0, request.target.find('?'));
    request.version = first->substr(target_end + 1);
    request.connection = connection_.number();
    request.nth_on_connection = ++count_;
    for (;;) {
        const auto line = read_line();
        if (!line) return std::nullopt;
        if (line->empty()) break;
        if (!request.headers.add_line(*line)) return std::nullopt;
    }
    request.at = std::chrono::steady_clock::now();
    return request;
}

bool RequestReader::read_body(Request& request) {
    if (Headers::same(request.headers.get("Expect"), "100-continue") &&
        !connection_.send("HTTP/1.1 100 Continue\r\n\r\n"))
        return false;
    if (request.headers.has("Transfer-Encoding")) return read_chunks(request);
    if (!request.headers.has("Content-Length")) return true;
    const auto length = number(request.headers.get("Content-Length"), 10);
    return length && read_bytes(request, *length);
}

bool RequestReader::read_bytes(Request& request, std::size_t count) {
    while (count > 0) {
        if (buffer_.empty() && !fill()) return false;
        const std::size_t here = std::min(count, buffer_.size());
        const std::size_t room = Request::most_kept_body - std::min(Request::most_kept_body, request.body.size());
        request.body.append(buffer_, 0, std::min(here, room));
        request.body_size += here;
        buffer_.erase(0, here);
        count -= here;
    }
    return true;
}

bool RequestReader::read_chunks(Request& request) {
    for (;;) {
        const auto line = read_line();
        if (!line) return false;
        const auto size = number(*line, 16);
        if (!size) return false;
        if (*size == 0) break;
        if (!read_bytes(request, *size)) return false;
        if (!read_line()) return false;
    }
    for (;;) {  // the trailer section
        const auto line = read_line();
        if (!line) return false;
        if (line->empty()) return true;
    }
}

}  // namespace cb::test
