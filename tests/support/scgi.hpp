// SCGI on the wire: a netstring of variables and the body; the answer is a CGI script's.
//
// Thread safety: pure functions.
#pragma once

#include "wire_backend.hpp"

namespace cb::test {

[[nodiscard]] Dialect scgi();

}  // namespace cb::test
