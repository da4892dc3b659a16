// uwsgi on the wire: a small header, variables and the body; the answer is an HTTP server's.
//
// Thread safety: pure functions.
#pragma once

#include "wire_backend.hpp"

namespace cb::test {

[[nodiscard]] Dialect uwsgi();

}  // namespace cb::test
