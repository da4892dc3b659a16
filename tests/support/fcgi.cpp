#include "fcgi.hpp"

namespace cb::test {
namespace {

constexpr char end_request = 3;
constexpr char standard_input = 5;
constexpr char standard_output = 6;

std::size_t byte_at(const std::string& bytes, std::size_t at) {
    return static_cast<unsigned char>(bytes[at]);
}

std::string record(char type, const std::string& content) {
    const std::size_t size = content.size();
    return std::string{1, type, 0, 1, static_cast<char>(size >> 8), static_cast<char>(size & 0xff), 0, 0} + content;
}

bool read_request(Wire& wire) {
    for (;;) {
        const auto header = wire.take(8);
        if (!header) return false;
        const std::size_t length = byte_at(*header, 4) * 256 + byte_at(*header, 5);
        if (!wire.take(length + byte_at(*header, 6))) return false;
        if ((*header)[1] == standard_input && length == 0) return true;
    }
}

}  // namespace

Dialect fcgi() {
    return {.scheme = "fcgi",
            .read_request = read_request,
            .head = [](int status, const std::string& fields,
                       std::size_t) { return record(standard_output, cgi_head(status, fields)); },
            .body =
                [](const std::string& body) {
                    return in_frames(body, 60'000, [](const auto& piece) { return record(standard_output, piece); });
                },
            .end = record(standard_output, "") + record(end_request, std::string(8, '\0')),
            .keeps_connection = true,
            .has_cgi_head = true};
}

}  // namespace cb::test
