// Carries out one Reply on a connection.
//
// Thread safety: belongs to the connection's thread; `released` may lock.
#pragma once

#include <functional>
#include <string>

#include "connection_server.hpp"
#include "http_message.hpp"

namespace cb::test {

/// What the answer needs to know of the backend that gives it.
struct AnswerContext {
    std::string backend_name;                ///< becomes the header field X-Backend
    std::function<bool()> released;          ///< whether a waiting answer may go on
    std::function<void()> before_last_byte;  ///< called before the peer can know that the answer is over, if it ends
};

class Answer {
  public:
    Answer(Connection& connection, const Reply& reply, const Request& request, AnswerContext context)
        : connection_(connection), reply_(reply), request_(request), context_(std::move(context)) {}

    /// False: the connection is to be closed (or is already).
    [[nodiscard]] bool give();

  private:
    bool sleep(std::optional<milliseconds> pause);
    bool send_body();
    void send_last(std::string wire);
    bool end_early();
    void echo();

    [[nodiscard]] std::string head() const;
    [[nodiscard]] bool has_body() const;
    [[nodiscard]] std::string framed(std::size_t from, std::size_t to, bool whole) const;

    Connection& connection_;
    const Reply& reply_;
    const Request& request_;
    AnswerContext context_;
};

}  // namespace cb::test
