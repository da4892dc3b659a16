// What two servers made of the same bytes, compared: byte for byte, but for what differs from one run of the same
// server to the next.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "differential_exchange.hpp"

namespace cb::test {

/// The client's bytes without what is new each time: the Date, and the boundary of multipart/byteranges, which each
/// server draws when it starts.
[[nodiscard]] std::string comparable(std::string answer);

/// The responses that an answer consists of; an interim one belongs to the one after it.
[[nodiscard]] std::vector<std::string> responses_of(const std::string& answer);

/// Of such a request a part may go to a member before httpd finds that the rest is wrong or missing, or none: that
/// depends on how many bytes were there when httpd looked (it reads without waiting, and buffers what it sends). No
/// member executes what it has got only a part of, so the parts are not compared.
[[nodiscard]] bool may_be_sent_in_parts(const Exchange& exchange);

/// What differs between the servers, to be read by people; empty if nothing does. It does not matter which member of a
/// balancer got a request.
[[nodiscard]] std::string difference(const Exchange& exchange, const Outcome& stock, const Outcome& tested);

/// The same for a server whose first member fails in that manner. `well` is a server that has only the member that is
/// well, `failing` one that has only the other.
[[nodiscard]] std::string difference_after_failover(const Exchange& exchange, const Outcome& well,
                                                    const Outcome& failing, const Outcome& tested, Manner first);

/// Printable, and not longer than a page.
[[nodiscard]] std::string shown(std::string_view bytes, std::size_t most = 1200);

}  // namespace cb::test
