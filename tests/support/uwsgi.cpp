#include "uwsgi.hpp"

namespace cb::test {
namespace {

std::size_t little_endian(const std::string& bytes, std::size_t at) {
    return static_cast<unsigned char>(bytes[at]) + 256U * static_cast<unsigned char>(bytes[at + 1]);
}

bool read_request(Wire& wire) {
    const auto header = wire.take(4);
    if (!header) return false;
    const auto variables = wire.take(little_endian(*header, 1));
    if (!variables) return false;
    const std::string name = "CONTENT_LENGTH";
    const std::size_t at = variables->find(name);
    if (at == std::string::npos) return true;
    const std::string value = variables->substr(at + name.size() + 2, little_endian(*variables, at + name.size()));
    return value.empty() || wire.take(std::stoul(value)).has_value();
}

}  // namespace

Dialect uwsgi() {
    return {.scheme = "uwsgi",
            .read_request = read_request,
            .head =
                [](int status, const std::string& fields, std::size_t length) {
                    return "HTTP/1.1 " + std::to_string(status) + " Whatever\r\nContent-Type: text/plain\r\n" +
                           "Content-Length: " + std::to_string(length) + "\r\n" + fields + "\r\n";
                },
            .body = [](const std::string& piece) { return piece; },
            .end = ""};
}

}  // namespace cb::test
