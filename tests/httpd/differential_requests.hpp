// Requests by the thousand, from a seed: good ones, and what becomes of them by one mutation or two.
//
//     for (const Exchange& exchange : make_exchanges(seed, 3000)) ...
//
// Most of them are followed by a good request on the same connection, so that it shows whether the server has closed it
// and where, to the server, the first one ended. Bodies contain requests: a server that takes a body for what follows
// it executes them.
//
// Thread safety: values and pure functions; a Maker belongs to one thread.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "differential_exchange.hpp"

namespace cb::test {

/// A request in parts, to be put together however wrong they are.
struct Draft {
    std::string kind;
    std::string method = "GET";
    std::string target;
    std::string version = "HTTP/1.1";
    std::string first_line;  // instead of the three
    std::vector<std::string> fields;
    std::string body;  // as it is sent: in chunks, if `fields` say so
    std::string line_end = "\r\n";

    [[nodiscard]] std::string text() const;
};

class Maker {
  public:
    explicit Maker(std::uint64_t seed) : random_(seed) {}

    [[nodiscard]] std::size_t below(std::size_t limit) { return random_() % limit; }
    [[nodiscard]] bool one_in(std::size_t n) { return below(n) == 0; }
    template <typename List>
    [[nodiscard]] const auto& one_of(const List& list) {
        return *(std::begin(list) + static_cast<std::ptrdiff_t>(below(std::size(list))));
    }

    /// A good one; its body has a Content-Length.
    [[nodiscard]] Draft good();
    /// The same with a body of some size, most often a PUT.
    [[nodiscard]] Draft good_with_body();
    /// Bytes of a body, some of which look like requests.
    [[nodiscard]] std::string content(std::size_t size);
    [[nodiscard]] std::size_t size_of_body();
    [[nodiscard]] std::string target();

  private:
    std::mt19937_64 random_;
    unsigned targets_ = 0;
};

using Mutation = Draft (*)(Maker&);

/// @name What can be wrong, or just unusual (differential_syntax.cpp, differential_framing.cpp)
/// @{
[[nodiscard]] Draft with_unusual_request_line(Maker& make);
[[nodiscard]] Draft with_unusual_field(Maker& make);
[[nodiscard]] Draft with_feature(Maker& make);
[[nodiscard]] Draft with_expectation(Maker& make);
[[nodiscard]] Draft with_unusual_length(Maker& make);
[[nodiscard]] Draft with_good_chunks(Maker& make);
[[nodiscard]] Draft with_bad_chunks(Maker& make);
[[nodiscard]] Draft with_trailers(Maker& make);
/// @}

/// `count` exchanges, the same for the same seed.
[[nodiscard]] std::vector<Exchange> make_exchanges(std::uint64_t seed, unsigned count);

}  // namespace cb::test
