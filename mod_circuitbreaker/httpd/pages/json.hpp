// `?format=json`: the breakers as one JSON document.
//
// Purpose: the schema that mod_circuitbreaker/README.md documents. Fields may be added; none changes its meaning or
// goes without another "version".
// Thread safety: writes one request's response.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_JSON_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_JSON_HPP

#include "model.hpp"

namespace cb::httpd {

/// `token`: of the actions; nullptr where they are not allowed.
void write_json(request_rec* r, const MemberList& members, const char* token) noexcept;

}  // namespace cb::httpd

#endif
