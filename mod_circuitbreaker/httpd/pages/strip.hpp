// The strip: a member's states over the last hour, as inline SVG.
//
// Purpose: whether it has just opened for the first time or has been going back and forth all night, in one look.
// Thread safety: pure, but for what it writes to.
#ifndef CIRCUITBREAKER_HTTPD_PAGES_STRIP_HPP
#define CIRCUITBREAKER_HTTPD_PAGES_STRIP_HPP

#include "html_out.hpp"
#include "model.hpp"

namespace cb::httpd {

inline constexpr core::Millis kStripSpan = 3600 * core::kMillisPerSecond;

/// One stay in a state, cut to the span.
struct Stay {
    core::Millis from;
    core::Millis to;
    core::State state;
    core::Reason reason;
};
inline constexpr std::uint32_t kMaxStays = shm::kHistory + 1;

/// Stays in the last `span`, oldest first; returns their number. What is not known any more (more changes than are
/// kept) or was before the member is left out.
std::uint32_t stays_of(const MemberSnapshot& member, core::Millis span, Stay (&stays)[kMaxStays]) noexcept;

void write_strip(const HtmlOut& out, const MemberSnapshot& member) noexcept;

}  // namespace cb::httpd

#endif
