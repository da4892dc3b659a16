// Reads HTTP/1.x requests off a connection, one after the other, with their bodies.
//
// Thread safety: belongs to the connection's thread.
#pragma once

#include <optional>
#include <string>

#include "connection_server.hpp"
#include "http_message.hpp"

namespace cb::test {

class RequestReader {
  public:
    explicit RequestReader(Connection& connection) : connection_(connection) {}

    /// The next request's line and header fields; none at the end of the connection or for what is no HTTP.
    [[nodiscard]] std::optional<Request> read_head();
    /// The body of that request (asked for with `100 Continue` if the peer waits for it); false if it didn't come
    /// whole.
    [[nodiscard]] bool read_body(Request& request);

  private:
    std::optional<std::string> read_line();
    bool read_bytes(Request& request, std::size_t count);
    bool read_chunks(Request& request);
    bool fill();

    Connection& connection_;
    std::string buffer_;
    unsigned count_ = 0;
};

}  // namespace cb::test
