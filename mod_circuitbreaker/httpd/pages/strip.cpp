#include "strip.hpp"

#include <algorithm>

#include "words.hpp"

namespace cb::httpd {
namespace {

// A unit of width is a second. However short, what is not closed must be seen.
constexpr core::Millis kWidth = kStripSpan / core::kMillisPerSecond;
constexpr core::Millis kLeastWidth = 20;
constexpr unsigned kHeight = 24;

/// Trouble stands tall, so that it shows without colours too.
unsigned height_of(core::State state) noexcept {
    switch (state) {
        case core::State::open:
        case core::State::forced_open:
            return kHeight;
        case core::State::half_open:
            return 17;
        case core::State::recovering:
            return 11;
        default:
            return 5;
    }
}

bool is_calm(core::State state) noexcept {
    return state == core::State::closed || state == core::State::forced_closed;
}

void write_stay(const HtmlOut& out, const MemberSnapshot& member, const Stay& stay) noexcept {
    const core::Millis begin = member.now > kStripSpan ? member.now - kStripSpan : 0;
    // Where the clock has not run for an hour yet, the strip is filled from the right all the same.
    const core::Millis offset = member.now > kStripSpan ? 0 : kStripSpan - member.now;
    core::Millis x = (stay.from - begin + offset) / core::kMillisPerSecond;
    core::Millis width = (stay.to - stay.from + core::kMillisPerSecond - 1) / core::kMillisPerSecond;
    if (!is_calm(stay.state)) width = std::max(width, kLeastWidth);
    width = std::min(width, kWidth);
    x = std::min(x, kWidth - width);
    const unsigned height = height_of(stay.state);
    const char* const state = core::name(stay.state);
    out.print("<rect class=\"%s\" x=\"%" APR_UINT64_T_FMT "\" y=\"%u\" width=\"%" APR_UINT64_T_FMT
              "\" height=\"%u\"><title>%s from %s, %s%s%s</title></rect>",
              state, x, kHeight - height, width, height, state, local_text(out.p, wall_time(member, stay.from)),
              span_text(out.p, stay.to - stay.from), stay.reason != core::Reason::none ? ": " : "",
              stay.reason != core::Reason::none ? core::name(stay.reason) : "");
}

}  // namespace

std::uint32_t stays_of(const MemberSnapshot& member, core::Millis span, Stay (&stays)[kMaxStays]) noexcept {
    const core::Millis begin = member.now > span ? member.now - span : 0;
    std::uint32_t count = 0;
    const auto add = [&](core::State state, core::Millis from, core::Millis to, core::Reason reason) noexcept {
        from = std::max(from, begin);
        to = std::min(to, member.now);
        // A round of probes may be over within a millisecond; it is what one looks for.
        if (from < to || (from == to && !is_calm(state))) stays[count++] = {from, to, state, reason};
    };
    if (member.changes == 0) {
        add(member.state(), member.since, member.now, core::Reason::none);
        return count;
    }
    // Every member begins closed.
    if (member.changes_ever == member.changes) add(core::State::closed, 0, member.change[0].at, core::Reason::none);
    for (std::uint32_t i = 0; i < member.changes; ++i) {
        const core::Millis end = i + 1 < member.changes ? member.change[i + 1].at : member.now;
        add(member.change[i].to, member.change[i].at, end, member.change[i].reason);
    }
    return count;
}

void write_strip(const HtmlOut& out, const MemberSnapshot& member) noexcept {
    Stay stays[kMaxStays];
    const std::uint32_t count = stays_of(member, kStripSpan, stays);
    std::uint32_t opened = 0;
    for (std::uint32_t i = 0; i < count; ++i)
        opened += stays[i].state == core::State::open ? 1U : 0U;
    out.print(
        "<svg class=\"strip\" viewBox=\"0 0 %u %u\" preserveAspectRatio=\"none\" role=\"img\" "
        "aria-label=\"States in the last hour: open %u times, now %s\">",
        static_cast<unsigned>(kWidth), kHeight, opened, core::name(member.state()));
    for (unsigned quarter = 1; quarter < 4; ++quarter) {
        out.print("<path class=\"tick\" d=\"M%u 0V%u\"/>", quarter * static_cast<unsigned>(kWidth) / 4, kHeight);
    }
    // The short ones, widened, lie over the long ones: an opening in an hour of peace, a probe in an hour of outage.
    constexpr core::State kOrder[] = {core::State::closed,      core::State::forced_closed, core::State::open,
                                      core::State::forced_open, core::State::recovering,    core::State::half_open};
    for (const core::State state : kOrder) {
        for (std::uint32_t i = 0; i < count; ++i) {
            if (stays[i].state == state) write_stay(out, member, stays[i]);
        }
    }
    out.put("</svg>");
}

}  // namespace cb::httpd
