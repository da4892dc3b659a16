// HTTP/2 without TLS on the wire, as much as one request a connection needs: frames, and headers that are not packed.
//
// Thread safety: pure functions.
#pragma once

#include "wire_backend.hpp"

namespace cb::test {

[[nodiscard]] Dialect h2c();

}  // namespace cb::test
