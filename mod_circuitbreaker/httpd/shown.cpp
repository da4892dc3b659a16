#include "shown.hpp"

#include <iterator>

namespace cb::httpd {
namespace {

/// In the order of httpd's numbers (httpd.h, M_GET and following).
constexpr const char* kMethods[] = {"GET",
                                    "PUT",
                                    "POST",
                                    "DELETE",
                                    "CONNECT",
                                    "OPTIONS",
                                    "TRACE",
                                    "PATCH",
                                    "PROPFIND",
                                    "PROPPATCH",
                                    "MKCOL",
                                    "COPY",
                                    "MOVE",
                                    "LOCK",
                                    "UNLOCK",
                                    "VERSION-CONTROL",
                                    "CHECKOUT",
                                    "UNCHECKOUT",
                                    "CHECKIN",
                                    "UPDATE",
                                    "LABEL",
                                    "REPORT",
                                    "MKWORKSPACE",
                                    "MKACTIVITY",
                                    "BASELINE-CONTROL",
                                    "MERGE"};
static_assert(M_GET == 0 && M_PATCH == 7 && M_UNLOCK == 14 && M_MERGE == 25 && std::size(kMethods) == M_MERGE + 1);

}  // namespace

UtcText::UtcText(apr_time_t at) noexcept {
    apr_time_exp_t parts;
    if (apr_time_exp_gmt(&parts, at) != APR_SUCCESS) parts = apr_time_exp_t{};
    apr_snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900, parts.tm_mon + 1,
                 parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, parts.tm_usec / 1000);
}

const char* method_name(int method) noexcept {
    return method >= 0 && static_cast<std::size_t>(method) < std::size(kMethods) ? kMethods[method] : "other";
}

}  // namespace cb::httpd
