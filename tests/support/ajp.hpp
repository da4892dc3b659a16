// AJP 1.3 on the wire: packets with a length, CPING answered with CPONG.
//
// Thread safety: pure functions.
#pragma once

#include "wire_backend.hpp"

namespace cb::test {

/// With `answers_ping` false it takes a CPING and says nothing.
[[nodiscard]] Dialect ajp(bool answers_ping = true);

}  // namespace cb::test
