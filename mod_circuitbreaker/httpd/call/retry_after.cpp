#include "retry_after.hpp"

#include <apr_date.h>

#include <algorithm>

#include "httpd/request/request.hpp"

namespace cb::httpd {

core::Millis retry_after_of(const request_rec* r) noexcept {
    const char* const value = answer_field(r, "Retry-After");
    if (value == nullptr) return 0;
    constexpr core::Millis kMaxSeconds = core::kDay / core::kMillisPerSecond;
    core::Millis seconds = 0;
    const char* at = value;
    for (; apr_isdigit(*at); ++at)
        seconds = std::min(seconds * 10 + static_cast<core::Millis>(*at - '0'), kMaxSeconds);
    if (at != value) return *at == '\0' ? seconds * core::kMillisPerSecond : 0;
    const apr_time_t date = apr_date_parse_http(value);
    const apr_time_t now = apr_time_now();  // an HTTP date is wall-clock time
    return date > now ? std::min(static_cast<core::Millis>((date - now) / 1000), core::kDay) : 0;
}

}  // namespace cb::httpd
