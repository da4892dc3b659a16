// FastCGI on the wire: records of a version, a type, a request id and a length.
//
// Thread safety: pure functions.
#pragma once

#include "wire_backend.hpp"

namespace cb::test {

[[nodiscard]] Dialect fcgi();

}  // namespace cb::test
