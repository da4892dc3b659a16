// Flapping in words: what happened, and which directive the figures suggest to change.
//
// Purpose: the text of the warning line, and of whatever else shows the same.
// Thread safety: pure, but for the caller's buffer.
#ifndef CIRCUITBREAKER_HTTPD_EVENTS_FLAPPING_TEXT_HPP
#define CIRCUITBREAKER_HTTPD_EVENTS_FLAPPING_TEXT_HPP

#include "core/flapping.hpp"
#include "httpd/httpd_api.hpp"

namespace cb::httpd {

inline constexpr apr_size_t kFlappingText = 1280;
inline constexpr apr_size_t kFlappingSummary = 256;

/// English sentences without a full stop at the end; cut off if there should be no room.
void flapping_text(char (&text)[kFlappingText], const core::Flapping& figures) noexcept;

/// "opened 4 times within 10 of its open times: CircuitBreakerOpenTime", with the directives that the text names.
void flapping_summary(char (&text)[kFlappingSummary], const core::Flapping& figures) noexcept;

}  // namespace cb::httpd

#endif
