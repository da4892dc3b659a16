#include "ajp.hpp"

namespace cb::test {
namespace {

constexpr char forward_request = 2;
constexpr char send_body_chunk = 3;
constexpr char send_headers = 4;
constexpr char end_response = 5;
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

bool has_body(const std::string& request) {
    const std::size_t at = request.find("\xa0\x08");  // the code of Content-Length
    return at != std::string::npos && request.at(at + 4) != '0';
}

/// A body comes in one packet: the tests' are small.
bool read_request(Wire& wire, bool answers_ping) {
    for (;;) {
        const auto request = take_packet(wire);
        if (!request || request->empty()) return false;
        if (request->front() == ping && answers_ping) wire.send(packet({pong}));
        if (request->front() == forward_request) return !has_body(*request) || take_packet(wire).has_value();
    }
}

}  // namespace

Dialect ajp(bool answers_ping) {
    return {.scheme = "ajp",
            .read_request = [=](Wire& wire) { return read_request(wire, answers_ping); },
            .head =
                [](int status, const std::string& fields, std::size_t) {
                    const std::size_t colon = fields.find(':');
                    const std::string value = fields.substr(colon + 2, fields.size() - colon - 4);
                    return packet(send_headers + number(static_cast<std::size_t>(status)) + text("Whatever") +
                                  number(2) + "\xa0\x01" + text("text/plain") + text(fields.substr(0, colon)) +
                                  text(value));
                },
            .body = [](const std::string& piece) { return packet(send_body_chunk + text(piece)); },
            .end = packet({end_response, 1}),
            .keeps_connection = true};
}

}  // namespace cb::test
