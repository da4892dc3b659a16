#include "h2c.hpp"

#include <algorithm>
#include <cctype>

namespace cb::test {
namespace {

constexpr char data = 0;
constexpr char headers = 1;
constexpr char settings = 4;
constexpr char ping = 6;
constexpr char end_stream = 1;
constexpr char acknowledged = 1;
constexpr char end_headers = 4;

std::string frame(char type, char flags, char stream, const std::string& payload) {
    const std::size_t size = payload.size();
    return std::string{static_cast<char>(size >> 16),
                       static_cast<char>(size >> 8),
                       static_cast<char>(size),
                       type,
                       flags,
                       0,
                       0,
                       0,
                       stream} +
           payload;
}

/// Not in any table, not Huffman-coded.
std::string text(std::string value) {
    return static_cast<char>(value.size()) + value;
}

std::string header_block(int status, const std::string& fields) {
    const std::size_t colon = fields.find(':');
    std::string name = fields.substr(0, colon);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    constexpr char indexed_status = 8;
    return indexed_status + text(std::to_string(status)) + '\0' + text("content-type") + text("text/plain") + '\0' +
           text(name) + text(fields.substr(colon + 2, fields.size() - colon - 4));
}

bool read_request(Wire& wire) {
    if (!wire.take(24) || !wire.send(frame(settings, 0, 0, ""))) return false;  // the client's preface, the server's
    for (;;) {
        const auto head = wire.take(9);
        if (!head) return false;
        const auto byte = [&](std::size_t at) {
            return static_cast<std::size_t>(static_cast<unsigned char>((*head)[at]));
        };
        const auto payload = wire.take(byte(0) << 16 | byte(1) << 8 | byte(2));
        if (!payload) return false;
        const char type = (*head)[3];
        const char flags = (*head)[4];
        if ((type == headers || type == data) && (flags & end_stream) != 0) return true;
        if ((type == settings || type == ping) && (flags & acknowledged) == 0) {
            wire.send(frame(type, acknowledged, 0, type == ping ? *payload : ""));
        }
    }
}

}  // namespace

Dialect h2c() {
    return {.scheme = "h2c",
            .read_request = read_request,
            .head = [](int status, const std::string& fields,
                       std::size_t) { return frame(headers, end_headers, 1, header_block(status, fields)); },
            .body =
                [](const std::string& body) {
                    return in_frames(body, 16'000, [](const auto& piece) { return frame(data, 0, 1, piece); });
                },
            .end = frame(data, end_stream, 1, "")};
}

}  // namespace cb::test
