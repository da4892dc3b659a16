// The directive table.
//
// Purpose: reads httpd.conf into Settings. A wrong value stops the start with the directive, the value and what would
// be right; httpd adds file and line.
// Thread safety: configuration time only.
#ifndef CIRCUITBREAKER_HTTPD_CONFIG_DIRECTIVES_HPP
#define CIRCUITBREAKER_HTTPD_CONFIG_DIRECTIVES_HPP

#include "settings.hpp"

namespace cb::httpd {

extern const command_rec kDirectiveTable[];

/// May it also stand in <Location>, <Directory>, <Files> and <If>?
[[nodiscard]] bool is_for_requests(Directive directive) noexcept;

}  // namespace cb::httpd

#endif
