#include "ajp.hpp"

#include <cstdint>

namespace cb::test {
namespace {

constexpr char forward_request = 2;
constexpr char send_body_chunk = 3;
constexpr char send_headers = 4;
constexpr char end_response = 5;
constexpr char get_body_chunk = 6;
constexpr char pong = 9;
constexpr char ping = 10;

std::string number(std::size_t value) {
    return {static_cast<char>(value >> 8), static_cast<char>(value & 0xff)};
}

std::string text(const std::string& value) {
    return number(value.size()) + value + '\0';
}

std::string packet(const std::string& content) {
    return "AB" + number(content.size()) + content;
}

std::optional<std::string> take_packet(Wire& wire) {
    const auto header = wire.take(4);
    if (!header || !header->starts_with("\x12\x34")) return {};
    return wire.take(256U * static_cast<unsigned char>((*header)[2]) + static_cast<unsigned char>((*header)[3]));
}

/// The size of the body, the largest there is if it comes in chunks.
std::size_t body_size(const std::string& request) {
    const std::size_t at = request.find("\xa0\x08");  // the code of Content-Length
    if (at != std::string::npos) return std::stoul(request.substr(at + 4));
    return request.find("chunked") != std::string::npos ? SIZE_MAX : 0;
}

/// The first packet comes by itself if the size is known, each other one when asked for.
bool take_body(Wire& wire, std::size_t size) {
    for (std::size_t taken = 0; taken < size;) {
        if ((taken > 0 || size == SIZE_MAX) && !wire.send(packet(get_body_chunk + number(8186)))) return false;
        const auto piece = take_packet(wire);
        if (!piece) return false;
        if (piece->size() <= 2) return size == SIZE_MAX;
        taken += piece->size() - 2;
    }
    return true;
}

bool read_request(Wire& wire, bool answers_ping) {
    for (;;) {
        const auto request = take_packet(wire);
        if (!request || request->empty()) return false;
        if (request->front() == ping && answers_ping) wire.send(packet({pong}));
        if (request->front() == forward_request) return take_body(wire, body_size(*request));
    }
}

}  // namespace

Dialect ajp(bool answers_ping) {
    return {
        .scheme = "ajp",
        .read_request = [=](Wire& wire) { return read_request(wire, answers_ping); },
        .head =
            [](int status, const std::string& fields, std::size_t) {
                const std::size_t colon = fields.find(':');
                const std::string value = fields.substr(colon + 2, fields.size() - colon - 4);
                return packet(send_headers + number(static_cast<std::size_t>(status)) + text("Whatever") + number(2) +
                              "\xa0\x01" + text("text/plain") + text(fields.substr(0, colon)) + text(value));
            },
        .body =
            [](const std::string& body) {
                return in_frames(body, 8000, [](const auto& piece) { return packet(send_body_chunk + text(piece)); });
            },
        .end = packet({end_response, 1}),
        .keeps_connection = true};
}

}  // namespace cb::test
