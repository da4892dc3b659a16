#include "scgi.hpp"

namespace cb::test {
namespace {

bool read_request(Wire& wire) {
    const auto size = wire.take_through(':');
    if (!size) return false;
    const auto variables = wire.take(std::stoul(*size) + 1);  // and a comma
    constexpr std::string_view first("CONTENT_LENGTH\0", 15);
    if (!variables || !variables->starts_with(first)) return false;
    return wire.take(std::stoul(variables->substr(first.size()))).has_value();
}

}  // namespace

Dialect scgi() {
    return {.scheme = "scgi",
            .read_request = read_request,
            .head = [](int status, const std::string& fields, std::size_t) { return cgi_head(status, fields); },
            .body = [](const std::string& piece) { return piece; },
            .end = ""};
}

}  // namespace cb::test
