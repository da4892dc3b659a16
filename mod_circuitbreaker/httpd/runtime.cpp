#include "runtime.hpp"

namespace cb::httpd {

constinit Runtime runtime;

}  // namespace cb::httpd
